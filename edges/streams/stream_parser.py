"""Parser of responses whose bodies stream: notes when bytes came, and where chunks end."""

from __future__ import annotations

from typing import Any, cast

from osbench.common.network.response_bound import UNBOUNDED, ResponseBound
from osbench.common.ports import clock
from osbench.edges.streams.stream_body import StreamBody
from osbench.worker.http.wire.chunks import ChunkDecoder
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.raw_response import NOT_KEPT, RawResponse
from osbench.worker.http.wire.response_head import CHUNKED, ResponseHead
from osbench.worker.http.wire.response_parser import ResponseParser
from osbench.worker.http.wire.wire_request import WireRequest


class StreamParser(ResponseParser):
    """A parser whose `expect` takes a `StreamBody` for `keep_body`.

    The body of a response with a status from 200 to 299 goes to it; other bodies are kept.
    """

    __slots__ = ("phases", "stream")

    def __init__(self, lines_at_once: int | None = None) -> None:
        """`lines_at_once`: as for `ResponseParser`; None for any number."""
        if lines_at_once is None:
            super().__init__()
        else:
            super().__init__(lines_at_once)
        self.phases = ExchangePhases(0)
        self.stream: StreamBody | None = None

    def expect(self, *, bodiless: bool, keep_body: Any, bound: ResponseBound = UNBOUNDED) -> None:
        """Prepare for a response; see the class. The rest is as in `ResponseParser`."""
        self.stream = keep_body if isinstance(keep_body, StreamBody) else None
        super().expect(bodiless=bodiless, keep_body=True, bound=bound)

    def take(self, data: bytes) -> bool:
        """Take bytes as `ResponseParser` does; they were received just now.

        The number of received bytes is noted in the phases. Raises BadResponse, also for codings
        and events that are wrong.
        """
        stream = self.stream
        if stream is not None and data:
            stream.arrived_ns = clock.monotonic_ns()
        whole = super().take(data)
        self.phases.received_bytes = self.received
        if whole and stream is not None:
            if not stream.begun and self._streams(self._head):
                # all of a response with a head that was known
                pieces = cast("list[bytes]", self._body)
                self._body = stream
                stream.begin(self._head, self.phases)
                for piece in pieces:
                    stream.append(piece)
            if stream.begun:
                stream.end()
        return whole

    def end(self) -> None:
        """End the response, as `ResponseParser` does."""
        super().end()
        if self.stream is not None and self.stream.begun:
            self.stream.end()

    @property
    def is_over(self) -> bool:
        """Return whether reading has to end now, before the end of the body."""
        stream = self.stream
        if stream is None or not stream.begun:
            return False
        return stream.is_full or 0 < stream.until_ns <= clock.monotonic_ns()

    @property
    def until_ns(self) -> int:
        """Return when reading has to end, monotonic ns; 0 if that is not known."""
        return self.stream.until_ns if self.stream is not None else 0

    def answer(self, request: WireRequest, phases: ExchangePhases) -> RawResponse:
        """Return the response, whether it is complete or was left; note status and bytes."""
        response = super().answer(request, phases)
        stream = self.stream
        if stream is None or not stream.begun:
            return response
        if not stream.ended:
            self.reusable = False
        return StreamResponse(request, self._head, stream, phases, self._bound)

    def _begin(self, head: ResponseHead) -> None:
        stream = self.stream
        if stream is not None and self._streams(head):
            self._body = stream
            stream.begin(head, self.phases)
        super()._begin(head)
        if stream is not None and stream.begun and head.length == CHUNKED:
            self._chunks = _NotedChunks(self._lines_at_once, stream)

    @staticmethod
    def _streams(head: ResponseHead) -> bool:
        return 200 <= head.status < 300


class _NotedChunks(ChunkDecoder):
    """A decoder that reports the end of each chunk to a body."""

    __slots__ = ("_stream",)

    def __init__(self, at_once: int, stream: StreamBody) -> None:
        super().__init__(at_once)
        self._stream = stream

    def _line(self, line: bytes) -> None:
        is_end = self._ending
        super()._line(line)
        if is_end:
            self._stream.end_chunk()


class StreamResponse(RawResponse):
    """A response whose body was read as a stream; only its beginning is known."""

    __slots__ = ("_stream",)

    def __init__(
        self,
        request: WireRequest,
        head: ResponseHead,
        stream: StreamBody,
        phases: ExchangePhases,
        bound: ResponseBound,
    ) -> None:
        """Keep a response to `request`; `stream` is its body."""
        super().__init__(request, head, stream, phases, bound)
        self._stream = stream

    def body(self) -> bytes:
        """Return the beginning of the body, without its content codings; b"" if it was not kept."""
        return self._stream.shown

    def content(self) -> bytes:
        """Raise ValueError: the body was not kept."""
        raise ValueError(NOT_KEPT)
