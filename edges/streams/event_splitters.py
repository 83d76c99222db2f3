"""Splitters of a body into its events, in pieces of any size: server-sent events, lines, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from osbench.worker.http.wire.wire_errors import BadResponse

#: Longest event, bytes.
EVENT_LIMIT = 1 << 20

#: Line ends of server-sent events (https://html.spec.whatwg.org/#event-stream-interpretation).
_SSE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


class BadEvent(BadResponse):
    """An event of a stream is too long, or not in the format that the task names."""

    remedy = ""


class EventSplitter(Protocol):
    """A splitter of one body, without its content codings."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the text of each event that `data`, the next bytes, completes. Raises BadEvent."""

    def end(self) -> Iterator[bytes]:
        """Yield the event that the end of the body completes, if any. Raises BadEvent."""


class _LineBuffer:
    """The beginning of a line that is not complete; it costs no more than its bytes."""

    __slots__ = ("_parts", "size")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def add(self, part: bytes, before: int = 0) -> None:
        """Add bytes. Raises BadEvent if with `before`, bytes of the event, they are too many."""
        self.size += len(part)
        if self.size + before > EVENT_LIMIT:
            raise BadEvent(f"an event of the stream is longer than {EVENT_LIMIT >> 20} MiB")
        self._parts.append(part)
        if len(self._parts) > 1024:
            self._parts = [b"".join(self._parts)]

    def whole(self, part: bytes, before: int = 0) -> bytes:
        """Return the line that ends with `part`, and begin another one. Raises as `add` does."""
        if not self._parts and len(part) + before <= EVENT_LIMIT:
            return part
        self.add(part, before)
        line, self._parts, self.size = b"".join(self._parts), [], 0
        return line


class SseSplitter:
    """Splitter of server-sent events (text/event-stream), by the format of WHATWG.

    Lines end with CR LF, CR or LF. An empty line ends an event; an event without `data` is none.
    Comments, `event`, `id` and `retry` are read and not kept. An event that is cut by the end of
    the body is discarded.
    """

    __slots__ = ("_after_cr", "_begin", "_data", "_data_bytes", "_line")

    def __init__(self) -> None:
        self._line = _LineBuffer()
        #: The last byte was CR: an LF that follows belongs to it.
        self._after_cr = False
        #: First bytes, as long as they may be a byte order mark; None after them.
        self._begin: bytes | None = b""
        #: Values of `data` of the event so far.
        self._data: list[bytes] = []
        self._data_bytes = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._begin is not None:
            data = self._begin + data
            if len(data) < len(_BOM) and _BOM.startswith(data):
                self._begin = data
                return
            self._begin, data = None, data.removeprefix(_BOM)
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if not data:
            return
        self._after_cr = data.endswith(b"\r")
        *ends, rest = _SSE_END.split(data)
        for part in ends:
            line = self._line.whole(part, self._data_bytes)
            if line:
                self._field(line)
            elif self._data:
                event, self._data, self._data_bytes = b"\n".join(self._data), [], 0
                yield event
        if rest:
            self._line.add(rest, self._data_bytes)

    def end(self) -> Iterator[bytes]:
        return iter(())

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            value = value.removeprefix(b" ")
            # an empty line of data costs memory, too
            self._data_bytes += len(value) + 1
            if self._data_bytes > EVENT_LIMIT:
                raise BadEvent(f"an event of the stream is longer than {EVENT_LIMIT >> 20} MiB")
            self._data.append(value)


class LineSplitter:
    """Splitter into lines that end with LF or CR LF; an empty line is not an event.

    The end of the body ends the last line.
    """

    __slots__ = ("_line",)

    def __init__(self) -> None:
        self._line = _LineBuffer()

    def feed(self, data: bytes) -> Iterator[bytes]:
        *ends, rest = data.split(b"\n")
        for part in ends:
            if event := self.event(self._line.whole(part).removesuffix(b"\r")):
                yield event
        if rest:
            self._line.add(rest)

    def end(self) -> Iterator[bytes]:
        if event := self.event(self._line.whole(b"").removesuffix(b"\r")):
            yield event

    def event(self, line: bytes) -> bytes:
        """Return the text of a line's event; empty for none. Raises BadEvent if it is not one."""
        return line


class JsonLineSplitter(LineSplitter):
    """Splitter into lines that are JSON texts (https://github.com/ndjson/ndjson-spec)."""

    __slots__ = ()

    def event(self, line: bytes) -> bytes:
        if not line.strip():
            return b""
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            raise BadEvent("a line of the stream is not JSON") from None
        return line


class NoEvents:
    """Splitter of a body that has no events, or whose events are found by its transfer coding."""

    __slots__ = ()

    def feed(self, data: bytes) -> Iterator[bytes]:
        return iter(())

    def end(self) -> Iterator[bytes]:
        return iter(())


#: By the kind of events, "" for none.
SPLITTERS: Mapping[str, Callable[[], EventSplitter]] = {
    "": NoEvents,
    "chunks": NoEvents,
    "lines": LineSplitter,
    "json": JsonLineSplitter,
    "sse": SseSplitter,
}
