"""An HTTP response as it was received: its status, header fields and body."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from osbench.common.network.response_bound import UNBOUNDED, ResponseBound
from osbench.worker.http.wire.content_codings import UnkeptBody, at_once, decoding
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.response_head import PARTIAL, ResponseHead
from osbench.worker.http.wire.wire_errors import BadResponse, TooLongResponse
from osbench.worker.http.wire.wire_request import WireRequest

#: Message of a ValueError.
NOT_KEPT = "the body of the response was not kept"


class RawResponse:
    """The complete response to one request, redirects not followed."""

    __slots__ = ("_body", "_bound", "_content", "_fault", "_head", "phases", "request", "status")

    def __init__(
        self,
        request: WireRequest,
        head: ResponseHead,
        body: list[bytes] | UnkeptBody | None,
        phases: ExchangePhases,
        bound: ResponseBound = UNBOUNDED,
    ) -> None:
        """Keep a response. `body`: the pieces kept; a body that was only checked; None: discarded.

        `bound` limits the decoded body.
        """
        self.request = request
        self.phases = phases
        self.status = head.status
        self._head = head
        self._body = body
        self._bound = bound
        self._content: bytes | None = None
        #: Why the body cannot be decoded.
        self._fault: BadResponse | None = None

    @property
    def url(self) -> str:
        """Return the URL of the request with this response: the last one after redirects."""
        return self.request.url

    @property
    def reason(self) -> str:
        """Return the reason phrase, which follows the status code; may be empty."""
        return self._head.reason

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Return the header fields in order: names in lower case, with their values."""
        return self._head.fields

    @property
    def named_fields(self) -> list[tuple[str, str]]:
        """Return the header fields in order: names as they were sent, with their values."""
        return self._head.named_fields

    @property
    def version(self) -> int:
        """Return the HTTP version: 10 for HTTP/1.0, 11 for HTTP/1.1."""
        return self._head.version

    def values(self, name: str) -> list[str]:
        """Return the values of header `name` (in lower case), in order; empty if there is none."""
        return self._head.values(name)

    def body(self) -> bytes:
        """Return the body as it was sent, in its content codings.

        Raises ValueError if the body was not kept.
        """
        if not isinstance(self._body, list):
            raise ValueError(NOT_KEPT)
        return self._body[0] if len(self._body) == 1 else b"".join(self._body)

    @property
    def coded(self) -> bool:
        """Return whether the head names content codings."""
        return self._head.coded

    def content(self) -> bytes:
        """Return the body without its content codings; decoded once.

        Raises ValueError if the body was not kept, BadResponse if it does not match its codings,
        and TooLongResponse if it decodes to more bytes than are allowed.
        """
        if self._content is None and self._fault is None:
            at_once(self._decode())
        if self._content is None:
            assert self._fault is not None
            raise self._fault
        return self._content

    def look_at_body(self) -> Iterator[None]:
        """Check the body against its content codings in steps; set `false_body` of the phases.

        Yields None after each step, so that other users may run. Done even if nothing reads the
        body: a fast but incomplete response is not a good one. Raises TooLongResponse if a body
        that is kept decodes to more bytes than are allowed.
        """
        if isinstance(self._body, UnkeptBody):
            while self._body.look():
                yield
            self.phases.false_body = self._body.is_false()
        elif self._body is not None:
            yield from self._decode()
            if isinstance(self._fault, TooLongResponse):
                raise self._fault
            # a part cannot be decoded by itself
            self.phases.false_body = self._fault is not None and self.status != PARTIAL

    def _decode(self) -> Generator[None, None, None]:
        raw = self.body()
        codings = self.values("content-encoding") if raw else []
        try:
            if codings:
                raw = yield from decoding(raw, ",".join(codings), self._bound)
        except BadResponse as error:
            self._fault = error
        else:
            self._content = raw
