"""Decoder of HTTP bodies that are sent in chunks (RFC 9112, 7.1)."""

from __future__ import annotations

import re
import sys
from typing import Protocol

from osbench.worker.http.wire.response_head import LINES_LIMIT, shown_bytes
from osbench.worker.http.wire.wire_errors import BadResponse

#: Longest line with the size of a chunk and its extensions, bytes.
LINE_LIMIT = 4096

#: Longest trailer section, bytes.
TRAILER_LIMIT = 16 * 1024

#: Pieces of the body that are not joined.
_SEVERAL = 64

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n\0]*)?")
_TRAILER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++:[^\r\n\0]*+")


class BodySink(Protocol):
    """Receiver of a body, piece by piece, such as a list."""

    def append(self, data: bytes, /) -> None:
        """Take the next bytes of the body."""


class ChunkDecoder:
    """Decoder of one chunked body; `take` gets its bytes in pieces of any size."""

    __slots__ = (
        "_at_once",
        "_ending",
        "_held",
        "_left",
        "_trailer",
        "_trailers",
        "behind",
        "finished",
    )

    def __init__(self, at_once: int = sys.maxsize) -> None:
        """Begin a body; a call of `take` parses at most `at_once` lines: sizes, ends, trailers."""
        self._at_once = at_once
        #: There are more, which another call of `take` looks at, with or without further bytes.
        self.behind = False
        self._held = b""
        #: Bytes that the chunk still has.
        self._left = 0
        #: The line end after a chunk is still to come.
        self._ending = False
        #: Bytes of the trailer section so far; -1 before it.
        self._trailer = -1
        self._trailers = 0
        self.finished = False

    def take(self, data: bytes, kept: BodySink | None) -> bytes:
        """Take received bytes; add the bytes of the body to `kept`, if there is one.

        Returns the bytes after the body once `finished`, else b"". With `behind` set afterwards,
        call again, with b"" if nothing more has come. Raises BadResponse if chunks or trailers are
        malformed or too long.
        """
        if self._held:
            data, self._held = self._held + data, b""
        found: list[bytes] = []
        at = self._chunks(data, None if kept is None else found)
        if kept is not None:
            if len(found) > _SEVERAL:
                # each piece costs more than a byte that it brings
                found = [b"".join(found)]
            for piece in found:
                kept.append(piece)
        return data[at:] if self.finished else b""

    def _chunks(self, data: bytes, found: list[bytes] | None) -> int:
        """Parse chunks and add their bytes to `found`, if given; return the end in `data`.

        Stores the beginning of an incomplete line, or the rest beyond `at_once` lines, for the next
        call. Raises BadResponse.
        """
        at = 0
        self.behind = False
        most = self._at_once
        while not self.finished:
            if self._left:
                end = min(at + self._left, len(data))
                if found is not None and end > at:
                    found.append(data[at:end])
                self._left -= end - at
                at = end
                if self._left:
                    return at
            limit = LINE_LIMIT if self._trailer < 0 else TRAILER_LIMIT - self._trailer
            if self._ending:
                limit = 0
            end = data.find(b"\r\n", at, at + limit + 2)
            if end < 0:
                self._held = _checked_rest(data[at:], limit)
                return at
            self._line(data[at:end])
            at = end + 2
            most -= 1
            if not most and not self.finished:
                self._held, self.behind = data[at:], True
                return at
        return at

    def _line(self, line: bytes) -> None:
        if self._ending:
            self._ending = False
        elif self._trailer >= 0:
            self._trailing(line)
        else:
            size = _SIZE.fullmatch(line)
            if size is None:
                raise BadResponse(f"the size of a chunk is malformed: {shown_bytes(line)}")
            self._left = int(size[1], 16)
            if self._left:
                self._ending = True
            else:
                self._trailer = 0

    def _trailing(self, line: bytes) -> None:
        if not line:
            self.finished = True
            return
        self._trailer += len(line) + 2
        self._trailers += 1
        if (
            self._trailers > LINES_LIMIT
            or self._trailer > TRAILER_LIMIT
            or not _TRAILER.fullmatch(line)
        ):
            raise BadResponse("a line after the last chunk is malformed, or there are too many")


def _checked_rest(rest: bytes, limit: int) -> bytes:
    """Return `rest`, the beginning of a line, unchanged.

    Raises BadResponse if it cannot become a valid line of at most `limit` bytes.
    """
    allowed = rest[:-1] if rest.endswith(b"\r") else rest
    if len(allowed) > max(limit, 0) or b"\n" in rest or b"\r" in allowed:
        raise BadResponse(f"a line of the chunked body is malformed: {shown_bytes(rest)}")
    return rest
