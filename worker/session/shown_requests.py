"""Notes the HTTP requests of iterations, with their bodies, in the log book, if requested."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from osbench.common.ports.clock import monotonic
from osbench.common.secrets.hiding import hide
from osbench.common.secrets.masking import mask, mask_field, mask_text
from osbench.common.text.escaping import decoded_text
from osbench.worker.http.wire.raw_response import RawResponse
from osbench.worker.http.wire.wire_request import WireRequest
from osbench.worker.session.log_book import LogBook

if TYPE_CHECKING:
    import requests

#: The source of these entries.
SOURCE = "request"
#: Values of `Specification.shown`: the beginning of bodies; header fields, too, and more of bodies.
BRIEF, WHOLE = 1, 2
#: Bytes of a body that are shown.
_BODY_BYTES = {BRIEF: 1000, WHOLE: 3000}
#: Times as many are looked at for secrets in a body that is not JSON.
_MASKED = 8

Fields = Iterable[tuple[str, str]]


class ShownRequests:
    """Notes requests and responses of osbench's HTTP clients, and of the library `requests`.

    They become entries of the log book. Requests of other libraries and of libcurl are not noted.
    """

    def __init__(self, book: LogBook) -> None:
        self._book = book
        self._level = 0
        self._restore: list[Callable[[], None]] = []

    def begin(self, level: int, scenario: type) -> None:
        """Note requests from now on: at `level` BRIEF, or WHOLE with header fields; 0 notes none.

        Replaces `requests.Session.send` until `end`. The logger of the module of `scenario` is set
        to INFO, or DEBUG for WHOLE.
        """
        self.end()
        if not level:
            return
        # few runs show requests, and workers start sooner without it
        import requests  # noqa: PLC0415 - see above

        self._level = level
        original = requests.Session.send
        # scenarios call requests themselves: there is no other place to see it
        requests.Session.send = self._of_requests(original)  # type: ignore[method-assign]
        self._restore.append(lambda: setattr(requests.Session, "send", original))
        logger = logging.getLogger(scenario.__module__)
        before = logger.level
        logger.setLevel(logging.DEBUG if level == WHOLE else logging.INFO)
        self._restore.append(lambda: logger.setLevel(before))

    def end(self) -> None:
        """Note no requests any more; undo the changes of `begin`."""
        self._level = 0
        while self._restore:
            self._restore.pop()()

    def note(
        self,
        request: WireRequest,
        own: Sequence[str],
        outcome: RawResponse | Exception,
        took_s: float,
    ) -> None:
        """Note a request of osbench's clients with its response or error, and its seconds `took_s`.

        An `Observer`: the clients call it. Does nothing before `begin` and after `end`.
        """
        if not self._level:
            return
        first, *lines = self._sent(request, own)
        if isinstance(outcome, Exception):
            said = str(outcome)
        else:
            said = _status(outcome.status, outcome.reason, took_s)
            try:
                body = outcome.content()
            except (ValueError, ConnectionError):
                body = outcome.body()
            lines += self._part("<", outcome.named_fields, body)
        self._book.add(SOURCE, "\n".join([f"{first} -> {said}", *lines]))

    def _of_requests(
        self, original: Callable[..., requests.Response]
    ) -> Callable[..., requests.Response]:
        def send(
            session: requests.Session, request: requests.PreparedRequest, **options: Any
        ) -> requests.Response:
            body = request.body
            sent = body.encode() if isinstance(body, str) else body
            lines = [
                f"{request.method} {request.url}",
                *self._part(">", request.headers.items(), sent if isinstance(sent, bytes) else b""),
            ]
            begun_s = monotonic()
            try:
                response = original(session, request, **options)
            except Exception as error:
                self._book.add(SOURCE, "\n".join([f"{lines[0]} -> {error}", *lines[1:]]))
                raise
            took_s = monotonic() - begun_s
            lines[0] += f" -> {_status(response.status_code, response.reason, took_s)}"
            # the body of a streamed response is left to its reader, if it has not been read
            unread = options.get("stream") and not getattr(response, "_content_consumed", False)
            got = b"" if unread else response.content
            lines += self._part("<", response.headers.items(), got)
            self._book.add(SOURCE, "\n".join(lines))
            return response

        return send

    def _sent(self, request: WireRequest, own: Sequence[str]) -> list[str]:
        head, _, body = request.data(own).partition(b"\r\n\r\n")
        fields = [tuple(line.split(": ", 1)) for line in decoded_text(head).split("\r\n")[1:]]
        pairs = [(field[0], field[-1]) for field in fields]
        return [f"{request.verb} {request.url}", *self._part(">", pairs, body + request.rest)]

    def _part(self, sign: str, fields: Fields, body: bytes) -> list[str]:
        """Return lines of a request (`sign` is ">") or response ("<"), secrets masked.

        One per header field at level `WHOLE`, none at `BRIEF`; then the beginning of the body, if
        any.
        """
        lines = []
        if self._level == WHOLE:
            lines = [f"{sign} {name}: {mask_field(name, v)}" for name, v in fields]
        if body:
            lines.append(f"{sign} {_body_text(body, _BODY_BYTES[self._level])}")
        return lines


def _status(code: int, reason: str | None, took_s: float) -> str:
    return f"{code} {reason or ''}".rstrip() + f" in {took_s * 1000:.1f} ms"


def _body_text(body: bytes, limit: int) -> str:
    """Return the beginning of a body as text, at most `limit` characters, with secrets masked.

    In JSON, members with names of secrets are masked. A body with a NUL byte near its beginning
    becomes its size in brackets. If it is cut, "..." and the size follow.
    """
    try:
        text = hide(json.dumps(mask(json.loads(body)), ensure_ascii=False))
    except (ValueError, RecursionError):
        if b"\0" in body[:limit]:
            return f"({len(body)} bytes that are not text)"
        # masked before it is cut: nothing recognizes the rest of a secret
        text = mask_text(hide(decoded_text(body[: limit * _MASKED])))
    cut = len(text) > limit or len(body) > limit * _MASKED
    return f"{text[:limit]}... ({len(body)} bytes)" if cut else text
