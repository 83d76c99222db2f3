"""Notes the HTTP requests of an iteration that is looked at, with their bodies, in the log book."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import requests

from osbench.common.escaping import decoded
from osbench.common.ports.clock import monotonic
from osbench.common.secrets.masking import mask, mask_field, mask_text
from osbench.worker.http.on_loop.loop_client import LoopClient
from osbench.worker.http.socket_client import SocketClient
from osbench.worker.http.wire.http_answer import HttpAnswer
from osbench.worker.http.wire.wire_request import WireRequest
from osbench.worker.session.log_book import LogBook

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
    """Has the HTTP clients of this process, and requests, note what they send and receive.

    Other libraries are not seen. While nothing is to be shown the clients are as they were: a load
    pays nothing for it.
    """

    def __init__(self, book: LogBook) -> None:
        self._book = book
        self._level = 0
        self._restore: list[Callable[[], None]] = []

    def begin(self, level: int, scenario: type) -> None:
        """Show requests from now on; 0 shows none.

        The logger of the module of `scenario` is told to log more, too.
        """
        self.end()
        if not level:
            return
        self._level = level
        self._replace(SocketClient, "exchange", self._of_threads)
        self._replace(LoopClient, "_exchange", self._of_loops)
        self._replace(requests.Session, "send", self._of_requests)
        logger = logging.getLogger(scenario.__module__)
        before = logger.level
        logger.setLevel(logging.DEBUG if level == WHOLE else logging.INFO)
        self._restore.append(lambda: logger.setLevel(before))

    def end(self) -> None:
        """Show no requests any more."""
        while self._restore:
            self._restore.pop()()

    def _replace(self, cls: type, name: str, made: Callable[[Any], Any]) -> None:
        original = getattr(cls, name)
        setattr(cls, name, made(original))
        self._restore.append(lambda: setattr(cls, name, original))

    def _of_threads(self, original: Callable[..., HttpAnswer]) -> Callable[..., HttpAnswer]:
        def exchange(
            client: SocketClient,
            request: WireRequest,
            own: Sequence[str],
            limits: Any,
            phases: Any,
            *,
            keep_body: bool,
        ) -> HttpAnswer:
            begun_s = monotonic()
            try:
                answer = original(client, request, own, limits, phases, keep_body=True)
            except Exception as error:
                self._note_failure(request, own, error)
                raise
            self._note_answer(request, own, answer, monotonic() - begun_s)
            return answer

        return exchange

    def _of_loops(self, original: Callable[..., Any]) -> Callable[..., Any]:
        async def exchange(
            client: LoopClient,
            request: WireRequest,
            own: Sequence[str],
            limits: Any,
            phases: Any,
            keep_body: bool,
        ) -> HttpAnswer:
            begun_s = monotonic()
            try:
                answer: HttpAnswer = await original(client, request, own, limits, phases, True)
            except Exception as error:
                self._note_failure(request, own, error)
                raise
            self._note_answer(request, own, answer, monotonic() - begun_s)
            return answer

        return exchange

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
                answer = original(session, request, **options)
            except Exception as error:
                self._book.add(SOURCE, "\n".join([f"{lines[0]} -> {error}", *lines[1:]]))
                raise
            lines[0] += f" -> {_status(answer.status_code, answer.reason, monotonic() - begun_s)}"
            # what is streamed is left to whoever reads it, where it has not been read
            unread = options.get("stream") and not getattr(answer, "_content_consumed", False)
            got = b"" if unread else answer.content
            lines += self._part("<", answer.headers.items(), got)
            self._book.add(SOURCE, "\n".join(lines))
            return answer

        return send

    def _note_answer(
        self, request: WireRequest, own: Sequence[str], answer: HttpAnswer, took_s: float
    ) -> None:
        try:
            body = answer.content()
        except (ValueError, ConnectionError):
            body = answer.body()
        first, *lines = self._sent(request, own)
        lines.insert(0, f"{first} -> {_status(answer.status, answer.reason, took_s)}")
        self._book.add(SOURCE, "\n".join([*lines, *self._part("<", answer.named_fields, body)]))

    def _note_failure(self, request: WireRequest, own: Sequence[str], error: Exception) -> None:
        first, *lines = self._sent(request, own)
        self._book.add(SOURCE, "\n".join([f"{first} -> {error}", *lines]))

    def _sent(self, request: WireRequest, own: Sequence[str]) -> list[str]:
        head, _, body = request.data(own).partition(b"\r\n\r\n")
        fields = [tuple(line.split(": ", 1)) for line in decoded(head).split("\r\n")[1:]]
        pairs = [(field[0], field[-1]) for field in fields]
        return [f"{request.verb} {request.url}", *self._part(">", pairs, body + request.rest)]

    def _part(self, sign: str, fields: Fields, body: bytes) -> list[str]:
        """Header fields, where they are wanted, and the body of a request or an answer."""
        lines = []
        if self._level == WHOLE:
            lines = [f"{sign} {name}: {mask_field(name, v)}" for name, v in fields]
        if body:
            lines.append(f"{sign} {_shown(body, _BODY_BYTES[self._level])}")
        return lines


def _status(code: int, reason: str | None, took_s: float) -> str:
    return f"{code} {reason or ''}".rstrip() + f" in {took_s * 1000:.1f} ms"


def _shown(body: bytes, limit: int) -> str:
    """The beginning of a body, its secrets masked by name where it is JSON."""
    try:
        text = json.dumps(mask(json.loads(body)), ensure_ascii=False)
    except (ValueError, RecursionError):
        if b"\0" in body[:limit]:
            return f"({len(body)} bytes that are no text)"
        # masked before it is cut: nothing recognizes the rest of a secret
        text = mask_text(decoded(body[: limit * _MASKED]))
    cut = len(text) > limit or len(body) > limit * _MASKED
    return f"{text[:limit]}... ({len(body)} bytes)" if cut else text
