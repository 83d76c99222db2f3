"""The receiver's HTTP interface, as an ASGI application: OTLP/HTTP in protobuf and JSON.

Specification: https://opentelemetry.io/docs/specs/otlp/#otlphttp.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from osbench.edges.traces.receiving.intake_of_spans import Rejection, SpanIntake

#: Largest body of a request as it is sent, bytes.
BODY = 16 << 20
#: Bytes of all bodies that are received or wait to be read; beyond, requests are deferred.
WAITING = 64 << 20
#: Seconds after which a deferred request is to be sent again.
RETRY_AFTER_S = 1
#: Longest wait for more of a body, seconds.
BODY_S = 30.0
#: SDKs send these to the same endpoint unless they are configured otherwise.
OTHER_SIGNALS = ("/v1/metrics", "/v1/logs")
PROTOBUF, JSON = "application/x-protobuf", "application/json"

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class _RefusedRequest(Exception):
    """A request that is refused: HTTP status, message and further headers of the response."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers


class OtlpApplication:
    """The HTTP interface of the receiver: handles OTLP export requests as an ASGI application.

    Parsing and storing run in one thread, while the event loop receives other requests.
    """

    def __init__(self, intake: SpanIntake, token: str) -> None:
        """Pass requests to `intake`.

        `token`: bearer token that all requests must carry; "" if none is needed.
        """
        self._intake = intake
        self._expected = f"Bearer {token}".encode() if token else b""
        self._waiting = 0
        self._thread = ThreadPoolExecutor(1, "intake")

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle an HTTP request and send its response; ignore other kinds of connections."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
        as_json = _content_type(headers) == JSON
        try:
            body = await self._answer(scope, headers, receive, as_json=as_json)
        except _RefusedRequest as refused:
            status = _status(refused.message, as_json=as_json)
            kind = JSON if as_json else PROTOBUF
            await _send(send, refused.status, kind, status, refused.headers)
        else:
            await _send(send, 200, JSON if as_json else PROTOBUF, body, {})

    async def run(self, step: Callable[[], Any]) -> Any:
        """Call `step` in the intake's only thread, outside of the event loop; return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, step)

    async def _answer(
        self, scope: Message, headers: Mapping[str, bytes], receive: Receive, *, as_json: bool
    ) -> bytes:
        """Check a request and handle it; return the body of the response with status 200.

        Metrics and logs are read, counted and discarded. Raises _RefusedRequest, which has the
        status, if anything is wrong.
        """
        counts = self._intake.counts
        if self._expected and not hmac.compare_digest(
            headers.get("authorization", b""), self._expected
        ):
            counts.unauthorized_requests += 1
            raise _RefusedRequest(401, "a bearer token is needed, as [traces] otlp_token has it")
        other = scope["path"] in OTHER_SIGNALS
        if scope["path"] != "/v1/traces" and not other:
            raise _RefusedRequest(404, "spans are received at /v1/traces")
        if scope["method"] != "POST":
            raise _RefusedRequest(405, "send spans with POST", Allow="POST")
        if _content_type(headers) not in (PROTOBUF, JSON):
            raise _RefusedRequest(415, f"the content type is to be {PROTOBUF} or {JSON}")
        encoding = headers.get("content-encoding", b"identity").decode("latin-1").lower()
        if encoding not in ("gzip", "identity"):
            raise _RefusedRequest(415, "the content encoding must be gzip or none")
        if other:
            await self._body(receive, keep=False)
            counts.other_signals += 1
            return b"{}" if as_json else b""
        return await self._taken(receive, as_json=as_json, gzipped=encoding == "gzip")

    async def _taken(self, receive: Receive, *, as_json: bool, gzipped: bool) -> bytes:
        body = await self._body(receive)
        try:
            rejection = await self.run(
                lambda: self._intake.take(bytes(body), as_json=as_json, gzipped=gzipped)
            )
        except ValueError as error:
            raise _RefusedRequest(400, str(error)) from None
        finally:
            self._waiting -= len(body)
        return _success(rejection, as_json=as_json)

    async def _body(self, receive: Receive, *, keep: bool = True) -> bytearray:
        """Receive the body of a request; if `keep` is False, discard it and return an empty body.

        The size of a kept body counts as waiting until the caller subtracts it. Raises
        _RefusedRequest if the body is too large, cut off or slow, or too many bytes are waiting.
        """
        body, size, more = bytearray(), 0, True
        try:
            while more:
                message = await asyncio.wait_for(receive(), BODY_S)
                if message["type"] == "http.disconnect":
                    raise _RefusedRequest(400, "cut off")
                part = message.get("body", b"")
                size += len(part)
                more = message.get("more_body", False)
                if size > BODY:
                    raise _RefusedRequest(413, f"a request has at most {BODY >> 20} MiB")
                if not keep:
                    continue
                if self._waiting + len(part) > WAITING:
                    self._intake.counts.deferred_requests += 1
                    again = {"Retry-After": str(RETRY_AFTER_S)}
                    raise _RefusedRequest(429, "too many spans are waiting", **again)
                self._waiting += len(part)
                body += part
        except TimeoutError:
            self._waiting -= len(body)
            raise _RefusedRequest(408, "the body was not received in time") from None
        except _RefusedRequest:
            self._waiting -= len(body)
            raise
        return body


def _content_type(headers: Mapping[str, bytes]) -> str:
    return headers.get("content-type", b"").decode("latin-1").partition(";")[0].strip().lower()


def _success(rejection: Rejection, *, as_json: bool) -> bytes:
    """Return the body of a response with status 200.

    It has `partial_success` with number and reason if spans were rejected.
    """
    if as_json:
        if not rejection.spans:
            return b"{}"
        partial = {"rejectedSpans": str(rejection.spans), "errorMessage": rejection.reason}
        return json.dumps({"partialSuccess": partial}).encode()
    response = ExportTraceServiceResponse()
    if rejection.spans:
        response.partial_success.rejected_spans = rejection.spans
        response.partial_success.error_message = rejection.reason
    packed: bytes = response.SerializeToString()
    return packed


def _status(message: str, *, as_json: bool) -> bytes:
    """Return the body of an error response: a google.rpc.Status with the message only.

    In protobuf the message is field 2, cut to 120 bytes, so that its length fits one byte.
    """
    if as_json:
        return json.dumps({"message": message}).encode()
    text = message.encode()[:120]
    return b"\x12" + bytes([len(text)]) + text


async def _send(
    send: Send, status: int, kind: str, body: bytes, headers: Mapping[str, str]
) -> None:
    named = {"Content-Type": kind, "Content-Length": str(len(body)), **headers}
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode(), value.encode()) for name, value in named.items()],
        }
    )
    await send({"type": "http.response.body", "body": body})
