"""Connections for responses that stream, over blocking sockets and on event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from osbench.common.ports import clock
from osbench.edges.streams.stream_body import StreamEnded
from osbench.edges.streams.stream_parser import StreamParser
from osbench.worker.http.on_loop.loop_connection import LoopConnection
from osbench.worker.http.ready_requests import RequestLimits
from osbench.worker.http.socket_connection import SocketConnection
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.raw_response import RawResponse
from osbench.worker.http.wire.tls_channel import TlsChannel
from osbench.worker.http.wire.wire_errors import ReceiveTimedOut
from osbench.worker.http.wire.wire_request import WireRequest

#: Lines of chunks that are parsed in one turn of a loop: some 5 ms.
_LINES_AT_ONCE = 4096
#: The kernel rounds the limit of a wait.
_ROUNDED_NS = 5_000_000
#: A wait may end so much after the end that the wish names, seconds.
_NEAR_S = 0.001


class StreamConnection(SocketConnection):
    """A connection over a blocking socket whose responses may be left before their end."""

    __slots__ = ()

    def __init__(self, sock: Any, tls: TlsChannel | None) -> None:
        super().__init__(sock, tls)
        self._parser: StreamParser = StreamParser()

    def exchange(
        self,
        request: WireRequest,
        own: Sequence[str],
        limits: RequestLimits,
        phases: ExchangePhases,
        *,
        keep_body: bool,
    ) -> RawResponse:
        """Send a request and return its response, as `SocketConnection.exchange` does.

        `keep_body` may be a `StreamBody`, whose wish may end the response.
        """
        parser = self._parser
        parser.phases = phases
        try:
            return super().exchange(request, own, limits, phases, keep_body=keep_body)
        except StreamEnded:
            pass
        except ReceiveTimedOut:
            if not parser.until_ns or parser.until_ns - clock.monotonic_ns() > _ROUNDED_NS:
                raise
        phases.ended_ns = clock.monotonic_ns()
        return parser.answer(request, phases)

    def _bound(self, limits: RequestLimits, begun_ns: int) -> None:
        """Bound the next wait also by the end that the stream's wish names.

        Raises StreamEnded if it has come, and ReceiveTimedOut.
        """
        parser = self._parser
        if parser.is_over:
            raise StreamEnded
        until_ns = parser.until_ns
        whole_due_ns = begun_ns + int(limits.whole_s * 1e9) if limits.whole_s else until_ns
        if not until_ns or limits.wait_s or whole_due_ns < until_ns:
            super()._bound(limits, begun_ns)
        if until_ns:
            left_s = max(until_ns - clock.monotonic_ns(), 1) / 1e9
            # not about, as the limit of a request: a stream that rests would be read for longer
            if not 0 < self._limited_s <= left_s + _NEAR_S:
                self._limit(left_s)


class LoopStreamConnection(LoopConnection):
    """A connection on an event loop whose responses may be left before their end."""

    __slots__ = ()

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: Any, tls: TlsChannel | None) -> None:
        """Take a connected socket; see `LoopConnection`."""
        super().__init__(loop, sock, tls)
        self._parser: StreamParser = StreamParser(_LINES_AT_ONCE)

    @classmethod
    def instead_of(cls, made: LoopConnection) -> LoopStreamConnection:
        """Return a connection that takes the place of `made`, over which nothing was sent yet."""
        found = cls(made._loop, made._socket, made._tls)
        transport = made._transport
        assert transport is not None
        transport.set_protocol(found)
        found.connection_made(transport)
        found._early, found._over = made._early, made._over
        return found

    def begin(
        self,
        request: WireRequest,
        own: Sequence[str],
        limits: RequestLimits,
        phases: ExchangePhases,
        *,
        keep_body: bool,
    ) -> asyncio.Future[None]:
        """Send a request, as `LoopConnection.begin` does.

        `keep_body` may be a `StreamBody`, whose wish may end the response.
        """
        self._parser.phases = phases
        return super().begin(request, own, limits, phases, keep_body=keep_body)

    def _await_more(self, phases: ExchangePhases) -> None:
        parser = self._parser
        if parser.is_over:
            self._leave(phases)
            return
        super()._await_more(phases)
        if parser.until_ns and self._phases is not None:
            self._bound(min(self._due_ns or parser.until_ns, parser.until_ns))

    def _finish(self, fault: ConnectionError | TimeoutError | None = None) -> None:
        phases = self._phases
        if isinstance(fault, ReceiveTimedOut) and phases is not None and self._parser.is_over:
            # the wait that ended was for the end that the wish names
            self._leave(phases)
        else:
            super()._finish(fault)

    def _leave(self, phases: ExchangePhases) -> None:
        """Complete the response as it is; the connection is not used again."""
        self._over = True
        phases.ended_ns = clock.monotonic_ns()
        super()._finish()
