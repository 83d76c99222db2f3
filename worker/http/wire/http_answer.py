"""An answer: its status, header fields and body."""

from __future__ import annotations

from osbench.worker.http.wire.answer_head import AnswerHead
from osbench.worker.http.wire.content_codings import CONTENT_LIMIT, UnkeptBody, decoded
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.wire_errors import BadAnswer, TooLongAnswer
from osbench.worker.http.wire.wire_request import WireRequest


class HttpAnswer:
    """The whole answer to a request."""

    __slots__ = ("_body", "_content", "_head", "phases", "request", "status")

    def __init__(
        self,
        request: WireRequest,
        head: AnswerHead,
        body: list[bytes] | UnkeptBody | None,
        phases: ExchangePhases,
    ) -> None:
        self.request = request
        self.phases = phases
        self.status = head.status
        self._head = head
        self._body = body
        self._content: bytes | None = None

    @property
    def url(self) -> str:
        """Where it came from: the last one after redirects."""
        return self.request.url

    @property
    def reason(self) -> str:
        """The phrase after the status code, which may be empty."""
        return self._head.reason

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Header names in lower case with their values, in the order in which they came."""
        return self._head.fields

    @property
    def named_fields(self) -> list[tuple[str, str]]:
        """Header names as they were sent with their values, in the order in which they came."""
        return self._head.named_fields

    @property
    def version(self) -> int:
        """Of HTTP: 10 or 11."""
        return self._head.version

    def values(self, name: str) -> list[str]:
        """The values of a header, whose name is in lower case."""
        return self._head.values(name)

    def body(self) -> bytes:
        """The body as it was sent, in its content codings.

        Raises ValueError where the body was not kept.
        """
        if not isinstance(self._body, list):
            raise ValueError("the body of the answer was not kept")
        return self._body[0] if len(self._body) == 1 else b"".join(self._body)

    def content(self, limit: int = CONTENT_LIMIT) -> bytes:
        """The body without its content codings.

        Raises ValueError where the body was not kept, and BadAnswer where it is not what its
        codings say or would have more than `limit` bytes.
        """
        if self._content is None or len(self._content) > limit:
            raw = self.body()
            codings = self.values("content-encoding")
            self._content = decoded(raw, ",".join(codings), limit) if codings and raw else raw
        return self._content

    def look_at_body(self) -> None:
        """Note in the phases whether the body is cut short or not in the codings of its head.

        Whether or not anything reads it: a fast answer that is not whole is not a good one.
        """
        if not self._head.codings:
            return
        if isinstance(self._body, UnkeptBody):
            self.phases.false_body = self._body.is_false()
            return
        try:
            self.content()
        except TooLongAnswer:
            # all of it would cost too much, and so far it was right
            pass
        except BadAnswer:
            self.phases.false_body = True
