"""Opening of connections: name lookup, the addresses of the host in turn, TLS; without I/O."""

from __future__ import annotations

import contextlib
import socket
import ssl
from functools import partial
from time import monotonic_ns

from osbench.worker.http.addresses import without_zone
from osbench.worker.http.exchange_steps import (
    Connect,
    HttpConnection,
    LookUp,
    Read,
    Receive,
    Send,
    Steps,
    Wrap,
)
from osbench.worker.http.name_lookups import LOOK_THERE, Address, NameLookups
from osbench.worker.http.ready_requests import RequestLimits
from osbench.worker.http.tls_contexts import TlsContexts, Trust
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.tls_channel import NO_TLS, TlsChannel
from osbench.worker.http.wire.wire_errors import CannotConnect, CannotSecure, ConnectTimedOut
from osbench.worker.http.wire.wire_request import WireRequest

#: Seconds after which the next address of a host is tried, if it has another.
NEXT_ADDRESS_S = 3.0


class Opener:
    """Opens connections for all threads and event loops of a process.

    Shared caches hold the addresses of hosts, the TLS contexts, and the TLS sessions to resume.
    """

    def __init__(self) -> None:
        self._lookups = NameLookups()
        self._contexts = TlsContexts()

    def open(
        self, request: WireRequest, limits: RequestLimits, phases: ExchangePhases
    ) -> Steps[HttpConnection]:
        """Open a connection to the origin of a request and return it; set the times in `phases`.

        A generator of steps: name lookup, connecting to each address of the host until one works,
        and the TLS handshake if the request is secure. Raises CannotConnect, CannotSecure and
        ConnectTimedOut; the socket is closed then.
        """
        clock = _ConnectClock(limits, phases.begun_ns)
        left_s = clock.left_s()
        found = self._lookups.kept(request.host, request.port)
        if found is None:
            found = yield from self._looked_up(request, left_s)
        phases.looked_up_ns = monotonic_ns()
        unlimited = not limits.wait_s and not limits.whole_s
        sock = yield from self._connected(request, found, clock, unlimited=unlimited)
        phases.connected_ns = monotonic_ns()
        try:
            tls = None
            if request.secure:
                tls = yield from self._secured(sock, request, clock)
                phases.secured_ns = monotonic_ns()
            connection: HttpConnection = yield Wrap(sock, tls)
        except ConnectTimedOut as error:
            sock.close()
            error.connected = True
            raise
        except BaseException:
            sock.close()
            raise
        return connection

    def keep_session(self, request: WireRequest, connection: HttpConnection) -> None:
        """Cache the TLS session of a connection for the next connection to its origin.

        Called after the first response. Does nothing for plain HTTP and for resumed sessions.
        """
        self._contexts.keep_of(request.origin, connection.tls)

    def _looked_up(self, request: WireRequest, left_s: float | None) -> Steps[list[Address]]:
        host, port = request.host, request.port
        try:
            found: list[Address] = yield LookUp(self._lookups.look_up(host, port), left_s)
        except TimeoutError:
            raise ConnectTimedOut(f"name lookup of {host} timed out{LOOK_THERE}") from None
        return self._lookups.in_turn(host, port, found)

    def _connected(
        self, request: WireRequest, found: list[Address], clock: _ConnectClock, *, unlimited: bool
    ) -> Steps[socket.socket]:
        place = request.host, request.port
        for number, address in enumerate(found, 1):
            last = number == len(found)
            left_s = clock.for_address_s(last=last)
            try:
                sock: socket.socket = yield Connect(address, left_s, unlimited)
            except OSError as error:
                self._lookups.refused(*place, address, error.strerror or "timed out")
                if last:
                    raise _refusal(request, error) from error
            else:
                self._lookups.took(*place, address)
                return sock
        raise CannotConnect(f"{request.host} has no address{LOOK_THERE}")

    def _secured(
        self, sock: socket.socket, request: WireRequest, clock: _ConnectClock
    ) -> Steps[TlsChannel]:
        trust = request.trust
        assert isinstance(trust, Trust)
        session = self._contexts.session(request.origin)
        try:
            context: ssl.SSLContext | None = self._contexts.kept(trust)
            if context is None:
                # reading a CA bundle takes tens of ms
                context = yield Read(partial(self._contexts.context, trust), clock.left_s())
            tls = TlsChannel(context, without_zone(request.host), session)
            yield from _shake_hands(sock, tls, clock)
        except (CannotSecure, ConnectTimedOut):
            raise
        except OSError as error:
            if isinstance(error, TimeoutError) and error.errno is None:
                raise ConnectTimedOut(f"the TLS handshake timed out{NO_TLS}") from None
            raise CannotSecure(f"the TLS handshake failed: {error.strerror}{NO_TLS}") from error
        return tls


class _ConnectClock:
    """Time left for opening a connection: the shorter of the connect and total limits.

    It counts from `begun_ns`, the beginning of the request, monotonic ns.
    """

    def __init__(self, limits: RequestLimits, begun_ns: int) -> None:
        given = [limit_s for limit_s in (limits.connect_s, limits.whole_s) if limit_s]
        self._limit_s = min(given) if given else 0.0
        self._begun_ns = begun_ns

    def left_s(self) -> float | None:
        """Return the seconds left, None without a limit. Raises ConnectTimedOut if none is left."""
        if not self._limit_s:
            return None
        left_s = self._limit_s - (monotonic_ns() - self._begun_ns) / 1e9
        if left_s <= 0:
            raise ConnectTimedOut("connecting timed out")
        return left_s

    def for_address_s(self, *, last: bool) -> float | None:
        """Return the seconds for trying one address; None for no limit. Raises ConnectTimedOut.

        The `last` address of a host gets all time left; others at most NEXT_ADDRESS_S, and at most
        half of the time left.
        """
        left_s = self.left_s()
        if last:
            return left_s
        return min(NEXT_ADDRESS_S, left_s / 2 if left_s else NEXT_ADDRESS_S)


def _refusal(request: WireRequest, error: OSError) -> CannotConnect | ConnectTimedOut:
    if isinstance(error, TimeoutError):
        return ConnectTimedOut(f"connecting to {request.host}:{request.port} timed out")
    return CannotConnect(f"cannot connect to {request.host}:{request.port}: {error.strerror}")


def _shake_hands(sock: socket.socket, tls: TlsChannel, clock: _ConnectClock) -> Steps[None]:
    received = b""
    while True:
        try:
            finished, sent = tls.shake(received)
        except CannotSecure:
            # the alert, so that the peer knows why
            with contextlib.suppress(OSError):
                yield Send(sock, tls.last_words(), clock.left_s())
            raise
        if sent:
            yield Send(sock, sent, clock.left_s())
        if finished:
            return
        received = yield Receive(sock, clock.left_s())
        if not received:
            raise CannotSecure(f"the connection ended in the TLS handshake{NO_TLS}")
