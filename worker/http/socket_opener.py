"""New connections: name lookup, the addresses of the host in turn, TLS."""

from __future__ import annotations

import contextlib
import socket
from time import monotonic_ns

from osbench.worker.http.connect_clock import ConnectClock, refusal
from osbench.worker.http.name_lookups import Address, NameLookups
from osbench.worker.http.ready_requests import RequestLimits
from osbench.worker.http.socket_connection import SocketConnection, bound_waits
from osbench.worker.http.tls_contexts import TlsContexts, Trust
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.tls_channel import TlsChannel
from osbench.worker.http.wire.wire_errors import (
    CannotConnect,
    CannotSecure,
    ConnectTimedOut,
)
from osbench.worker.http.wire.wire_request import WireRequest

_PIECE = 64 * 1024

#: Where a request has no limit, the kernel looks after 60 s of silence whether the peer is there,
#: and gives up 60 s later, as in keystoneauth1.
_ALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
)


class SocketOpener:
    """Opens connections for all threads of a process."""

    def __init__(self) -> None:
        self._lookups = NameLookups()
        self._contexts = TlsContexts()

    def open(
        self, request: WireRequest, limits: RequestLimits, phases: ExchangePhases
    ) -> SocketConnection:
        """Connect to where a request goes, and note the instants.

        Raises CannotConnect, CannotSecure and ConnectTimedOut.
        """
        clock = ConnectClock(limits, phases.begun_ns)
        host, port = request.host, request.port
        addresses = self._lookups.addresses(host, port, clock.left_s())
        phases.looked_up_ns = monotonic_ns()
        sock = self._connected(request, addresses, clock)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not limits.wait_s and not limits.whole_s:
                for option in _ALIVE:
                    sock.setsockopt(*option)
            phases.connected_ns = monotonic_ns()
            tls = None
            if request.secure:
                tls = self._secured(sock, request, clock)
                phases.secured_ns = monotonic_ns()
        except ConnectTimedOut as error:
            sock.close()
            error.connected = True
            raise
        except BaseException:
            sock.close()
            raise
        return SocketConnection(sock, tls)

    def keep_session(self, request: WireRequest, connection: SocketConnection) -> None:
        """Keep the TLS session of a new connection, after its first answer, for the next one."""
        self._contexts.keep_of(request.origin, connection.tls)

    def _connected(
        self, request: WireRequest, addresses: list[Address], clock: ConnectClock
    ) -> socket.socket:
        for number, address in enumerate(addresses, 1):
            last = number == len(addresses)
            left_s = clock.for_address_s(last=last)
            try:
                sock = _connect(address, left_s)
            except OSError as error:
                why = error.strerror or "timed out"
                self._lookups.refused(request.host, request.port, address, why)
                if last:
                    raise refusal(request, error) from error
            else:
                self._lookups.took(request.host, request.port, address)
                return sock
        raise CannotConnect(f"{request.host} has no address")

    def _secured(
        self, sock: socket.socket, request: WireRequest, clock: ConnectClock
    ) -> TlsChannel:
        trust = request.trust
        assert isinstance(trust, Trust)
        session = self._contexts.session(request.origin)
        tls = TlsChannel(self._contexts.context(trust), request.host, session)
        received = b""
        try:
            while True:
                try:
                    finished, sent = tls.shake(received)
                except CannotSecure:
                    # the alert, so that the peer knows why
                    with contextlib.suppress(OSError):
                        sock.sendall(tls.last_words())
                    raise
                if sent:
                    sock.sendall(sent)
                if finished:
                    return tls
                left_s = clock.left_s()
                if left_s is not None:
                    bound_waits(sock, left_s)
                received = sock.recv(_PIECE)
                if not received:
                    raise CannotSecure("the connection ended in the TLS handshake")
        except BlockingIOError:
            raise ConnectTimedOut("the TLS handshake timed out") from None
        except OSError as error:
            if isinstance(error, CannotSecure | ConnectTimedOut):
                raise
            raise CannotSecure(f"the TLS handshake failed: {error.strerror}") from error


def _connect(address: Address, limit_s: float | None) -> socket.socket:
    sock = socket.socket(address[0], socket.SOCK_STREAM)
    try:
        if limit_s is not None:
            bound_waits(sock, limit_s)
        sock.connect(address[1])
    except BaseException:
        sock.close()
        raise
    return sock
