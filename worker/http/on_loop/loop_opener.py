"""New connections of an event loop: name lookup, the addresses of the host in turn, TLS."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from concurrent.futures import Future
from time import monotonic_ns

from osbench.worker.http.connect_clock import ConnectClock, refusal
from osbench.worker.http.name_lookups import Address, NameLookups
from osbench.worker.http.on_loop.loop_connection import LoopConnection
from osbench.worker.http.ready_requests import RequestLimits
from osbench.worker.http.tls_contexts import TlsContexts, Trust
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.prepared_request import PreparedRequest
from osbench.worker.http.wire.tls_channel import TlsChannel
from osbench.worker.http.wire.wire_errors import CannotConnect, CannotSecure, ConnectTimedOut

_PIECE = 64 * 1024

_UNDER_WAY = (errno.EINPROGRESS, errno.EAGAIN)


class LoopOpener:
    """Opens connections for all event loops of a process."""

    def __init__(self) -> None:
        self._lookups = NameLookups()
        self._contexts = TlsContexts()

    async def open(
        self, request: PreparedRequest, limits: RequestLimits, phases: ExchangePhases
    ) -> LoopConnection:
        """Connect to where a request goes, and note the instants.

        Raises CannotConnect, CannotSecure and ConnectTimedOut.
        """
        loop = asyncio.get_running_loop()
        clock = ConnectClock(limits, phases.begun_ns)
        addresses = await self._addresses(loop, request, clock)
        phases.looked_up_ns = monotonic_ns()
        sock = await self._connected(loop, request, addresses, clock)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            phases.connected_ns = monotonic_ns()
            tls = None
            if request.secure:
                tls = await self._secured(loop, sock, request, clock)
                phases.secured_ns = monotonic_ns()
            connection = LoopConnection(loop, sock, tls)
            await loop.create_connection(lambda: connection, sock=sock)
        except BaseException:
            sock.close()
            raise
        return connection

    def keep_session(self, request: PreparedRequest, connection: LoopConnection) -> None:
        """Keep the TLS session of a new connection, after its first answer, for the next one."""
        self._contexts.keep_of(request.origin, connection.tls)

    async def _addresses(
        self, loop: asyncio.AbstractEventLoop, request: PreparedRequest, clock: ConnectClock
    ) -> list[Address]:
        left_s = clock.left_s()
        found = self._lookups.kept(request.host, request.port)
        if found is not None:
            return found
        pending = self._lookups.look_up(request.host, request.port)
        found_out = loop.create_future()

        def tell(_: Future[list[Address]]) -> None:
            # the loop may have ended meanwhile
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_done, found_out)

        # others wait for the same lookup: it must not be cancelled with this request
        pending.add_done_callback(tell)
        try:
            async with asyncio.timeout(left_s):
                await found_out
        except TimeoutError:
            raise ConnectTimedOut(f"name lookup of {request.host} timed out") from None
        return self._lookups.in_turn(request.host, request.port, pending.result())

    async def _connected(
        self,
        loop: asyncio.AbstractEventLoop,
        request: PreparedRequest,
        addresses: list[Address],
        clock: ConnectClock,
    ) -> socket.socket:
        for number, address in enumerate(addresses, 1):
            last = number == len(addresses)
            left_s = clock.for_address_s(last=last)
            try:
                async with asyncio.timeout(left_s):
                    sock = await _connect(loop, address)
            except OSError as error:
                why = error.strerror or "timed out"
                self._lookups.refused(request.host, request.port, address, why)
                if last:
                    raise refusal(request, error) from error
            else:
                self._lookups.took(request.host, request.port, address)
                return sock
        raise CannotConnect(f"{request.host} has no address")

    async def _secured(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        request: PreparedRequest,
        clock: ConnectClock,
    ) -> TlsChannel:
        trust = request.trust
        assert isinstance(trust, Trust)
        session = self._contexts.session(request.origin)
        try:
            async with asyncio.timeout(clock.left_s()):
                context = self._contexts.kept(trust)
                if context is None:
                    # reading a CA bundle would keep the loop for tens of ms
                    context = await asyncio.to_thread(self._contexts.context, trust)
                tls = TlsChannel(context, request.host, session)
                await _shake_hands(loop, sock, tls)
        except (CannotSecure, ConnectTimedOut):
            raise
        except OSError as error:
            if isinstance(error, TimeoutError) and error.errno is None:
                raise ConnectTimedOut("the TLS handshake timed out") from None
            raise CannotSecure(f"the TLS handshake failed: {error.strerror}") from error
        return tls


async def _connect(loop: asyncio.AbstractEventLoop, address: Address) -> socket.socket:
    # not by the loop's `sock_connect`: that of uvloop loses the scope of an IPv6 address
    sock = socket.socket(address[0], socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        code = sock.connect_ex(address[1])
        if code in _UNDER_WAY:
            writable = loop.create_future()
            loop.add_writer(sock, _done, writable)
            try:
                await writable
            finally:
                loop.remove_writer(sock)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
    except BaseException:
        sock.close()
        raise
    return sock


async def _shake_hands(
    loop: asyncio.AbstractEventLoop, sock: socket.socket, tls: TlsChannel
) -> None:
    received = b""
    while True:
        try:
            finished, sent = tls.shake(received)
        except CannotSecure:
            # the alert, so that the peer knows why
            with contextlib.suppress(OSError):
                await loop.sock_sendall(sock, tls.last_words())
            raise
        if sent:
            await loop.sock_sendall(sock, sent)
        if finished:
            return
        received = await loop.sock_recv(sock, _PIECE)
        if not received:
            raise CannotSecure("the connection ended in the TLS handshake")


def _done(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
