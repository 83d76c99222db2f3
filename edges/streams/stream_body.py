"""A body that is read event by event as it comes: decoded, timed, counted, and discarded."""

from __future__ import annotations

from collections.abc import Iterable

from osbench.common.network.response_bound import UNBOUNDED
from osbench.common.plugin.atomic import Recorder
from osbench.edges.streams.event_splitters import SPLITTERS, BadEvent
from osbench.edges.streams.event_times import EventTimes
from osbench.edges.streams.stream_wish import StreamWish
from osbench.worker.http.wire.content_codings import BodyDecoder, UnkeptBody
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.response_head import CHUNKED, ResponseHead

#: Bytes of the beginning of a body that are kept for `run --once`.
SHOWN_BYTES = 16 * 1024
#: Bytes that one received piece may decode to, without and with events that are looked for, and
#: events in it: other users of a loop wait for it, some seconds at most.
_DECODED_LIMIT, _SPLIT_LIMIT, _EVENTS_LIMIT = 64 << 20, 16 << 20, 500_000
#: Characters of a content type in messages.
_TYPE_CHARS = 100


class StreamBody(UnkeptBody):
    """The body of one response, whose events are recorded when their last byte comes.

    `arrived_ns` has to be set before `append`: when the bytes were received, monotonic ns.
    """

    __slots__ = (
        "_coded",
        "_most_shown",
        "_splitter",
        "_until",
        "arrived_ns",
        "begun",
        "body_bytes",
        "content_type",
        "ended",
        "is_full",
        "shown",
        "times",
        "until_ns",
        "wish",
    )

    def __init__(self, wish: StreamWish, recorder: Recorder, *, shows: bool = False) -> None:
        """`recorder`: of the iteration; its action that is open now is the request's.

        `shows`: the beginning of the body is kept.
        """
        super().__init__("")
        self.wish = wish
        self.times = EventTimes(recorder)
        self.arrived_ns = 0
        #: The head of the response has come, with a status that has a body to stream.
        self.begun = False
        #: The body has ended by itself, and was not left before its end.
        self.ended = False
        #: The wish is fulfilled: nothing more is to be read.
        self.is_full = False
        #: Reading ends well then, monotonic ns; 0 for never.
        self.until_ns = 0
        #: As they were received, in content codings.
        self.body_bytes = 0
        self.content_type = ""
        #: The beginning of the body, without its content codings; b"" unless it is kept.
        self.shown = b""
        self._most_shown = SHOWN_BYTES if shows else 0
        self._coded: BodyDecoder | None = None
        self._splitter = SPLITTERS[wish.events]()
        self._until = wish.until.encode()

    def begin(self, head: ResponseHead, phases: ExchangePhases) -> None:
        """Begin the body after its head. Raises BadResponse if it cannot have the wanted events."""
        self.begun = True
        self.times.begun_ns = phases.secured_ns or phases.connected_ns or phases.begun_ns
        self.content_type = ", ".join(head.values("content-type"))[:_TYPE_CHARS]
        if self.wish.read_for_s:
            self.until_ns = self.arrived_ns + int(self.wish.read_for_s * 1e9)
        if self.wish.events == "chunks" and head.length != CHUNKED:
            raise BadEvent(
                "the response is not sent in chunks, which events: chunks of stream needs; use"
                " lines, json or sse"
            )
        if head.codings:
            # each piece is discarded, so that any number may follow
            self._coded = BodyDecoder(head.codings, UNBOUNDED)

    def append(self, data: bytes, /) -> None:
        """Take the next bytes of the body. Raises BadResponse for wrong codings and events."""
        self.body_bytes += len(data)
        if self.is_full:
            # what came with the last event is counted as bytes only
            return
        pieces = (data,) if self._coded is None else self._coded.feed(data)
        decoded_bytes, before = 0, self.times.count
        limit = _SPLIT_LIMIT if self.wish.events else _DECODED_LIMIT
        for piece in pieces:
            decoded_bytes += len(piece)
            if decoded_bytes > limit or self.times.count - before > _EVENTS_LIMIT:
                found = f"{limit >> 20} MiB"
                if self.wish.events:
                    found += f", or {_EVENTS_LIMIT:,} events"
                raise BadEvent(f"{len(data):,} bytes of the stream decode to more than {found}")
            if len(self.shown) < self._most_shown:
                self.shown += piece[: self._most_shown - len(self.shown)]
            if self._take(self._splitter.feed(piece)):
                return

    def end_chunk(self) -> None:
        """Note that a chunk of the transfer coding has ended."""
        if self.wish.events == "chunks" and not self.is_full:
            self._take((b"",))

    def end(self) -> None:
        """Note that the body has ended. Raises BadResponse if its codings or events are cut."""
        if self.ended:
            return
        self.ended = True
        if self.is_full:
            return
        if self._coded is not None:
            self._coded.end()
        self._take(self._splitter.end())

    def _take(self, events: Iterable[bytes]) -> bool:
        """Record events; return whether the wish is fulfilled, so that no more are to be read."""
        most = self.wish.max_events
        for event in events:
            self.times.add(self.arrived_ns)
            found = bool(self._until) and self._until in event
            if found or self.times.count == most:
                self.is_full = True
                return True
        return False

    def look(self) -> bool:
        """Return False: all of the body was decoded as it came."""
        return False

    def is_false(self) -> bool:
        """Return False: a body that does not match its codings has failed the request."""
        return False

    @property
    def problem(self) -> str:
        """Return why a response that has come is not the wanted stream; "" if it is."""
        wish, count = self.wish, self.times.count
        if not self.begun or not wish.events or self.is_full or not self.ended:
            return ""
        kind = f"; its content type is {self.content_type}" if self.content_type else ""
        if not count:
            return f"the stream ended without an event{kind}"
        if wish.until:
            return f"the stream ended without the text that until names{kind}"
        return ""

    def so_far(self, now_ns: int) -> str:
        """Return the progress of a stream that fails, in words; `now_ns`: monotonic."""
        received = f"{self.body_bytes:,} bytes of the body came"
        if not self.wish.events:
            return received
        count = self.times.count
        if not count:
            return f"no event and {received}"
        ago_s = max(0, now_ns - self.times.last_ns) / 1e9
        events = "1 event" if count == 1 else f"{count:,} events"
        return f"{events} and {received}, the last event {ago_s:.3g} s before"


class StreamEnded(Exception):
    """Ends the reading of a stream before its body ends, as its task wants."""
