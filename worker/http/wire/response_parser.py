"""Incremental parser of the HTTP responses on a connection."""

from __future__ import annotations

import sys
from typing import Final

from osbench.common.network.response_bound import UNBOUNDED, ResponseBound
from osbench.worker.http.wire.chunks import ChunkDecoder
from osbench.worker.http.wire.content_codings import UnkeptBody
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.raw_response import RawResponse
from osbench.worker.http.wire.response_head import (
    CHUNKED,
    HEAD_LIMIT,
    UNTIL_CLOSE,
    ResponseHead,
    refuse_early,
)
from osbench.worker.http.wire.wire_errors import BadResponse, EarlyEnd, TooLongResponse
from osbench.worker.http.wire.wire_request import WireRequest

#: Most interim responses (100 Continue and the like) before one response.
INTERIM_LIMIT = 32

#: Most pieces of a body that are not joined.
_PIECES = 4096

_END = b"\r\n\r\n"
#: Stands for the head before the first one; no response has its length.
_NO_HEAD: Final = ResponseHead(b"HTTP/1.1 999 \r\n\r\n")

# kinds of the bytes that come next, if it is not a number of bytes
_IDLE, _HEAD, _CHUNKS, _TO_END = -10, -11, -12, -13


class ResponseParser:
    """Parser of one response after another; each connection has its own.

    The head of a response is mostly equal to the head before it on the same connection, byte for
    byte, since `Date` changes once per second. Such a head is not parsed again.
    """

    __slots__ = (
        "_bodiless",
        "_body",
        "_bound",
        "_chunks",
        "_head",
        "_held",
        "_interim",
        "_joined",
        "_known",
        "_left",
        "_lines_at_once",
        "in_body",
        "received",
        "reusable",
    )

    def __init__(self, lines_at_once: int = sys.maxsize) -> None:
        """Create a parser; a call of `take` parses at most `lines_at_once` lines of chunks.

        `behind` is true while there are more.
        """
        self._lines_at_once = lines_at_once
        self._known = _NO_HEAD
        self._head = _NO_HEAD
        self._held = b""
        self._left = _IDLE
        self._bodiless = False
        self._body: list[bytes] | UnkeptBody | None = None
        self._chunks = ChunkDecoder(lines_at_once)
        self._interim = 0
        #: Pieces of the body that are as long as they are to become.
        self._joined = 0
        self._bound = UNBOUNDED
        #: Whether the head of the response has arrived; not set if the response came in one piece
        #: with it.
        self.in_body = False
        #: Bytes of the response so far, with its head.
        self.received = 0
        #: Whether the connection may carry another request; valid once a response is complete.
        self.reusable = False

    @property
    def untouched(self) -> bool:
        """Return whether no byte of the response to the last request has arrived."""
        return not self.received

    @property
    def behind(self) -> bool:
        """Return whether received bytes are unparsed; another `take`, even of b"", parses them."""
        return self._chunks.behind

    def expect(self, *, bodiless: bool, keep_body: bool, bound: ResponseBound = UNBOUNDED) -> None:
        """Prepare for the response to the next request; `bodiless`: no body follows, as for HEAD.

        Without `keep_body` the body is discarded; one with content codings is checked first.
        `bound` limits head and body of a response that is kept; a response that is not kept may be
        longer.
        """
        self._left = _HEAD
        self._bodiless = bodiless
        self._body = [] if keep_body else None
        self._bound = bound
        self.in_body = False
        self.received = 0
        self.reusable = False

    def take(self, data: bytes) -> bool:
        """Take bytes that were received; return whether the response is complete.

        Raises BadResponse for malformed bytes and if no response is expected, and TooLongResponse
        for a kept body beyond the bound.
        """
        left = self._left
        before = self.received
        self.received = before + len(data)
        if left == _HEAD and not before:
            known = self._known
            # the whole of a response like the one before: most responses
            if (
                data.startswith(known.raw)
                and len(data) - known.size == known.length
                and not self._bodiless
            ):
                self._head = known
                if known.codings and self._body is None:
                    self._body = UnkeptBody(known.codings, self._bound)
                if self._body is not None:
                    self._body.append(data[known.size :])
                self._left = _IDLE
                self.reusable = known.keep
                return True
        try:
            return self._take(data)
        except BadResponse:
            self._left = _IDLE
            self._held = b""
            raise

    def end(self) -> None:
        """End the response because the stream has ended, which completes a body without a length.

        Raises EarlyEnd if the response is incomplete. The connection is not reusable.
        """
        left, self._left = self._left, _IDLE
        self._held = b""
        self.reusable = False
        if left != _TO_END:
            raise EarlyEnd(
                "the connection ended in the middle of the response"
                if self.received
                else "the connection ended without a response"
            )

    def plain_status(self, phases: ExchangePhases) -> int:
        """Return the status code of the complete response; set status and bytes of `phases`.

        Returns 0, and sets nothing, if the response has content codings.
        """
        head = self._head
        if head.coded:
            return 0
        phases.received_bytes = self.received
        phases.status = status = head.status
        return status

    def answer(self, request: WireRequest, phases: ExchangePhases) -> RawResponse:
        """Return the complete response to `request`; set status and received bytes of `phases`.

        Called once `take` has returned True, or after `end`.
        """
        phases.received_bytes = self.received
        phases.status = self._head.status
        return RawResponse(request, self._head, self._body, phases, self._bound)

    def _take(self, data: bytes) -> bool:
        if self.received > self._bound.most_bytes and isinstance(self._body, list):
            raise TooLongResponse(self._bound.message())
        if self._left == _HEAD:
            body = self._heads(data)
            if body is None:
                return False
            data = body
        left = self._left
        if left >= 0:
            if len(data) < left:
                self._left = left - len(data)
                self._keep(data)
                return False
            self._keep(data[:left])
            data = data[left:]
        elif left == _TO_END:
            self._keep(data)
            return False
        elif left == _CHUNKS:
            data = self._chunks.take(data, self._body)
            self._join()
            if not self._chunks.finished:
                return False
        else:
            raise BadResponse("bytes came without a request")
        self._left = _IDLE
        # bytes after a response are unsolicited: nothing after them can be trusted
        self.reusable = not data and self._head.keep
        return True

    def _heads(self, data: bytes) -> bytes | None:
        """Parse heads up to the final response's; return the bytes after it.

        Returns None if the head is incomplete; its beginning is stored. Interim responses (1xx) are
        skipped. Raises BadResponse and TooLongResponse.
        """
        known = self._known
        if not self._held and data.startswith(known.raw):
            self._begin(known)
            return data[known.size :]
        seen = len(self._held)
        data = self._held + data
        while True:
            end = data.find(_END, max(0, seen - 3), HEAD_LIMIT + len(_END))
            if end < 0:
                refuse_early(data, max(0, seen - 1))
                self._held = data
                return None
            end += len(_END)
            head, data, seen = known.next(data[:end]), data[end:], 0
            if head.status >= 200:
                self._held = b""
                self._known = head
                self._begin(head)
                return data
            self._between(head)

    def _between(self, head: ResponseHead) -> None:
        """Skip an interim response (1xx). Raises BadResponse for 101 and above `INTERIM_LIMIT`."""
        self._interim += 1
        if head.status == 101:
            raise BadResponse("a response 101 (Switching Protocols) that was not requested")
        if self._interim > INTERIM_LIMIT:
            raise BadResponse(f"more than {INTERIM_LIMIT} interim responses (1xx) before one")

    def _begin(self, head: ResponseHead) -> None:
        self._head = head
        if head.codings and self._body is None:
            self._body = UnkeptBody(head.codings, self._bound)
        self._interim = self._joined = 0
        self.in_body = True
        if self._bodiless:
            self._left = 0
        elif head.length == CHUNKED:
            self._left = _CHUNKS
            self._chunks = ChunkDecoder(self._lines_at_once)
        else:
            self._left = _TO_END if head.length == UNTIL_CLOSE else head.length
            if head.length > self._bound.most_bytes and isinstance(self._body, list):
                raise TooLongResponse(self._bound.message(head.length))

    def _keep(self, data: bytes) -> None:
        if self._body is not None and data:
            self._body.append(data)
            self._join()

    def _join(self) -> None:
        """Join the pieces of a kept body whenever `_PIECES` more have come: each costs memory."""
        body = self._body
        if isinstance(body, list) and len(body) - self._joined > _PIECES:
            body[self._joined :] = [b"".join(body[self._joined :])]
            self._joined += 1
