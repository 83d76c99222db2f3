"""An HTTP connection on an event loop; a single timer enforces its time limits."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
from collections.abc import Sequence
from time import monotonic_ns
from typing import cast

from osbench.worker.http.ready_requests import RequestLimits
from osbench.worker.http.server_names import peer_of
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.raw_response import RawResponse
from osbench.worker.http.wire.response_parser import ResponseParser
from osbench.worker.http.wire.tls_channel import TlsChannel
from osbench.worker.http.wire.wire_errors import EarlyEnd, ReceiveTimedOut
from osbench.worker.http.wire.wire_request import WireRequest

#: Lines of chunks that are looked at in one turn of the loop: some 5 ms.
_LINES_AT_ONCE = 4096

#: Bytes of a large body that are sent at once.
_PIECE = 64 * 1024

#: A connection that rests for longer is looked at before it is used, ns.
_RESTED_NS = 1_000_000


class LoopConnection(asyncio.Protocol):
    """An HTTP connection, used by one task at a time in the thread of its event loop.

    `begin` a request, `send_rest` if it has a large body, wait for the future, take the `answer`.
    The connection has to be closed if any of these raises or is cancelled.
    """

    __slots__ = (
        "_behind",
        "_drained",
        "_due_ns",
        "_early",
        "_fault",
        "_loop",
        "_over",
        "_parser",
        "_paused",
        "_phases",
        "_rested_ns",
        "_socket",
        "_timer",
        "_timer_ns",
        "_tls",
        "_transport",
        "_unsent",
        "_used",
        "_wait_ns",
        "_waiter",
        "_whole_due_ns",
        "sent",
    )

    def __init__(
        self, loop: asyncio.AbstractEventLoop, sock: socket.socket, tls: TlsChannel | None
    ) -> None:
        """Take a connected socket; the transport owns and closes it. `tls`: None for HTTP."""
        self._loop = loop
        self._socket = sock
        self._tls = tls
        self._parser = ResponseParser(_LINES_AT_ONCE)
        self._transport: asyncio.Transport | None = None
        #: Of the request whose response is awaited; None if nothing may come.
        self._phases: ExchangePhases | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._fault: ConnectionError | TimeoutError | None = None
        #: Bytes that came before the first request: they belong to its response.
        self._early = b""
        #: Bytes were received that the next turn of the loop looks at.
        self._behind = False
        #: The peer has ended the connection, or nothing of it can be trusted any more.
        self._over = False
        self._used = 0
        #: Some bytes of the last request may have gone out.
        self.sent = False
        self._rested_ns = 0
        # limits: when the next wait and all of the request have to be over, 0 for never
        self._due_ns = 0
        self._whole_due_ns = 0
        self._wait_ns = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns = 0
        # large bodies
        self._paused = False
        self._drained: asyncio.Future[None] | None = None
        self._unsent = False

    @property
    def untouched(self) -> bool:
        """Return whether no byte of the response to the last request has arrived."""
        return self._parser.untouched

    @property
    def in_body(self) -> bool:
        """Return whether the head of the last request's response has arrived, but not all of it."""
        return self._parser.in_body

    @property
    def peer(self) -> str:
        """Return the address of the server, IP:PORT."""
        return peer_of(self._socket)

    @property
    def reusable(self) -> bool:
        """Return whether another request may follow; valid after a complete response."""
        return self._parser.reusable and not self._over

    @property
    def tls(self) -> TlsChannel | None:
        """Return the TLS channel of the connection; None for plain HTTP."""
        return self._tls

    def spoilt(self, now_ns: int, *, certainly: bool = False) -> bool:
        """Return whether an idle connection is unusable: closed by the peer, or with unasked bytes.

        Mostly the loop has noticed. The socket is polled in addition after the first response,
        after 1 ms of rest until `now_ns` (monotonic), or with `certainly`.
        """
        transport = self._transport
        if self._over or transport is None or transport.is_closing():
            return True
        if self._used > 1 and not certainly and now_ns - self._rested_ns < _RESTED_NS:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Close the connection at once, even during an exchange."""
        if self._phases is not None:
            self._phases.received_bytes = self._parser.received
            self._phases = None
        self._over = True
        self._forget_timer()
        if self._transport is not None:
            self._transport.abort()

    def begin(
        self,
        request: WireRequest,
        own: Sequence[str],
        limits: RequestLimits,
        phases: ExchangePhases,
        *,
        keep_body: bool,
    ) -> asyncio.Future[None]:
        """Send a request, except its `rest`; the future is done when `answer` may be called.

        `own`: header lines to add. `limits`: from `phases.begun_ns`. Times and bytes are noted in
        `phases`. Without `keep_body` the body is read and discarded. The future raises no error of
        the exchange: `answer` does. Raises EarlyEnd if the peer has ended TLS.
        """
        transport, tls = self._transport, self._tls
        assert transport is not None
        self._parser.expect(bodiless=request.bodiless, keep_body=keep_body, bound=limits.bound)
        waiter = self._waiter = self._loop.create_future()
        self._fault = None
        self._due_ns = self._whole_due_ns = self._wait_ns = 0
        if limits.whole_s or limits.wait_s:
            self._limit(limits, phases)
        self._used += 1
        data = request.data(own)
        phases.sent_bytes = len(data) + len(request.rest)
        self._phases = phases
        if request.rest:
            # what follows must not overtake it
            transport.set_write_buffer_limits(0)
        self.sent = not transport.is_closing()
        if self.sent:
            transport.write(data if tls is None else tls.wrap(data))
        if self._used == 1 and (self._early or self._over):
            self._take_early()
        return waiter

    async def send_rest(self, rest: bytes) -> None:
        """Send a large body in pieces of 64 KiB; return early if the connection fails or ends.

        A response may still come then; the connection is not used again. Raises EarlyEnd if the
        peer has ended TLS.
        """
        tls = self._tls
        self._unsent = True
        for at in range(0, len(rest), _PIECE):
            piece = rest[at : at + _PIECE]
            wire = memoryview(piece if tls is None else tls.wrap(piece))
            if not await self._send_piece(wire):
                return
        self._unsent = False

    def answer(self, request: WireRequest, phases: ExchangePhases) -> RawResponse:
        """Return the complete response, after the future of `begin` is done; note status and bytes.

        Raises BadResponse, EarlyEnd and ReceiveTimedOut if the exchange has failed.
        """
        fault, self._fault = self._fault, None
        if fault is not None:
            try:
                raise fault
            finally:
                # an error that is kept here would keep itself
                del fault
        if self._unsent:
            self._parser.reusable = False
        return self._parser.answer(request, phases)

    def plain_status(self, phases: ExchangePhases) -> int:
        """Return the status code of the complete response, after the future of `begin` is done.

        Returns 0 if `answer` has to be called instead: after a fault, after a body that was not
        sent completely, and for content codings. Notes status and bytes in `phases`, unless 0.
        """
        if self._fault is not None or self._unsent:
            return 0
        return self._parser.plain_status(phases)

    # called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # the transport of uvloop does not inherit from asyncio.Transport
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        phases = self._phases
        if phases is None:
            self._unasked(data)
            return
        tls = self._tls
        try:
            if tls is not None:
                data = self._unwrapped(tls, data)
            if data:
                if not phases.first_byte_ns:
                    phases.first_byte_ns = monotonic_ns()
                if self._parser.take(data):
                    phases.ended_ns = self._rested_ns = monotonic_ns()
                    self._finish()
                else:
                    self._await_more(phases)
            elif tls is not None and tls.ended:
                self._end(phases)
        except ConnectionError as error:
            self._finish(error)

    def _await_more(self, phases: ExchangePhases) -> None:
        """Parse on later, or end an incomplete response if TLS has ended (EarlyEnd), or wait on."""
        tls = self._tls
        if self._parser.behind:
            self._pause()
        elif tls is not None and tls.ended:
            self._end(phases)
        elif self._wait_ns:
            self._wait_again()

    def _end(self, phases: ExchangePhases) -> None:
        """End the response, as the stream has ended; raises EarlyEnd if it is incomplete."""
        self._parser.end()
        phases.ended_ns = self._rested_ns = monotonic_ns()
        self._finish()

    def _pause(self) -> None:
        """Pause reading; parse on after other tasks: a response may have chunks of one byte."""
        transport = self._transport
        if not self._behind and transport is not None and not transport.is_closing():
            transport.pause_reading()
        self._behind = True
        self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        phases, transport = self._phases, self._transport
        if phases is None:
            return
        try:
            if self._parser.take(b""):
                phases.ended_ns = self._rested_ns = monotonic_ns()
                self._finish()
            else:
                self._await_more(phases)
        except ConnectionError as error:
            self._finish(error)
        if self._parser.behind and self._phases is not None:
            return
        self._behind = False
        if self._over and self._phases is not None:
            self.eof_received()
        elif transport is not None and not transport.is_closing():
            transport.resume_reading()

    def eof_received(self) -> None:
        self._over = True
        if self._behind:
            # what was received comes first
            return
        phases = self._phases
        if phases is None:
            self._wake_sender()
            return
        try:
            self._parser.end()
        except EarlyEnd as error:
            self._finish(error)
        else:
            phases.ended_ns = monotonic_ns()
            self._finish()

    def connection_lost(self, exc: Exception | None) -> None:
        self._over = True
        self._forget_timer()
        if isinstance(exc, OSError):
            self._take_left()
        if self._phases is not None:
            said = exc.strerror if isinstance(exc, OSError) else ""
            self._finish(EarlyEnd(said or "the connection failed"))
        else:
            self._wake_sender()

    def _take_left(self) -> None:
        """Take bytes that had arrived: a transport that fails to send does not read them."""
        with contextlib.suppress(OSError):
            while self._phases and not self._behind and (data := self._socket.recv(_PIECE)):
                self.data_received(data)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._wait_ns:
            self._wait_again()
        self._wake_sender()

    def _take_early(self) -> None:
        early, self._early = self._early, b""
        if early:
            self.data_received(early)
        if self._over and self._phases is not None:
            self.eof_received()

    def _unasked(self, data: bytes) -> None:
        """Take bytes that arrive while no response is expected.

        Before the first request about 64 KiB are stored as the beginning of its response. Further
        and later bytes close the connection, except messages of TLS itself, such as session
        tickets.
        """
        if not self._used and len(self._early) < _PIECE:
            self._early += data
            return
        tls = self._tls
        if tls is not None:
            try:
                if not self._unwrapped(tls, data) and not tls.ended:
                    # of TLS itself, such as tickets for its sessions
                    return
            except EarlyEnd:
                pass
        self.close()

    def _unwrapped(self, tls: TlsChannel, data: bytes) -> bytes:
        data = tls.unwrap(data)
        words = tls.last_words()
        if words and self._transport is not None and not self._transport.is_closing():
            self._transport.write(words)
        return data

    def _finish(self, fault: ConnectionError | TimeoutError | None = None) -> None:
        """`answer` then raises `fault`, if any. A task that waits to send is woken, too."""
        if fault is not None and self._phases is not None:
            # also the bytes of a response that is cut
            self._phases.received_bytes = self._parser.received
        self._phases = None
        self._fault = fault
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        if self._drained is not None:
            self._wake_sender()

    # limits: the timer of a connection is rarely set anew, as most requests take less time

    def _limit(self, limits: RequestLimits, phases: ExchangePhases) -> None:
        if limits.whole_s:
            self._whole_due_ns = phases.begun_ns + int(limits.whole_s * 1e9)
            self._bound(self._whole_due_ns)
        if limits.wait_s:
            self._wait_ns = int(limits.wait_s * 1e9)
            self._wait_again()

    def _wait_again(self) -> None:
        due_ns = monotonic_ns() + self._wait_ns
        whole_due_ns = self._whole_due_ns
        self._bound(min(due_ns, whole_due_ns) if whole_due_ns else due_ns)

    def _bound(self, due_ns: int) -> None:
        """End the wait for the peer at `due_ns`, monotonic ns, instead of the earlier time.

        A running timer that fires earlier stays: it is set anew when it fires.
        """
        self._due_ns = due_ns
        if self._timer is not None:
            if self._timer_ns <= due_ns:
                return
            self._timer.cancel()
        self._set_timer(due_ns)

    def _set_timer(self, due_ns: int) -> None:
        self._timer_ns = due_ns
        left_s = max(0, due_ns - monotonic_ns()) / 1e9
        self._timer = self._loop.call_later(left_s, self._ring)

    def _ring(self) -> None:
        self._timer = None
        sends = self._drained is not None and not self._drained.done()
        if not self._due_ns or not (sends or self._phases is not None):
            # who waits next sets it again
            return
        if self._due_ns > monotonic_ns():
            self._set_timer(self._due_ns)
            return
        self._finish(ReceiveTimedOut("timed out"))

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # large bodies

    async def _send_piece(self, wire: memoryview) -> bool:
        """Send a piece of a body; return False if the connection has failed or ended.

        Other tasks run first. Each part that is sent begins the limit of a wait anew.
        """
        transport = self._transport
        assert transport is not None
        # other users run, and bytes from the peer are received meanwhile
        await asyncio.sleep(0)
        while True:
            while self._paused and self._fault is None and not self._over:
                if self._due_ns:
                    self._bound(self._due_ns)
                self._drained = self._loop.create_future()
                await self._drained
            if self._fault is not None or self._over or transport.is_closing():
                return False
            if not wire:
                return True
            try:
                # not by the transport: if that fails to send, it receives no more either
                wire = wire[self._socket.send(wire) :]
                if self._wait_ns:
                    self._wait_again()
            except BlockingIOError:
                transport.write(wire)
                wire = wire[len(wire) :]
            except OSError:
                return False

    def _wake_sender(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
