"""A service that sends its spans by OTLP: a small version of OpenTelemetry's SDKs.

    GET /items       ten items; slow for about 3 % of requests

    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 python samples/otlp_service.py --port 8080

It needs nothing but Python, so that it runs anywhere. A service of yours has an SDK, which reads
the same environment variables.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import re
import secrets
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SLOW_SHARE = 0.03
SLOW_S = 0.2
#: Between two requests with spans, seconds, and most spans of one.
DELAY_S = 0.5
TOGETHER = 512
#: Version, trace, span and flags of a request (W3C Trace Context).
PARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


class Spans:
    """Spans that wait to be sent, and the thread that sends them."""

    def __init__(self, endpoint: str, headers: str) -> None:
        self._url = f"{endpoint.rstrip('/')}/v1/traces"
        self._headers = {"Content-Type": "application/json"}
        for pair in filter(None, headers.split(",")):
            name, _, value = pair.partition("=")
            self._headers[name.strip()] = value.strip().replace("%20", " ")
        self._waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._send, daemon=True).start()

    @contextmanager
    def span(
        self, trace: str, parent: str, name: str, kind: int = 1, **attributes: str
    ) -> Iterator[str]:
        """Record a span around a block; yield its id."""
        span_id, begin = secrets.token_hex(8), time.time_ns()
        try:
            yield span_id
        finally:
            self._waiting.put(
                {
                    "traceId": trace,
                    "spanId": span_id,
                    "parentSpanId": parent,
                    "name": name,
                    "kind": kind,
                    "startTimeUnixNano": str(begin),
                    "endTimeUnixNano": str(time.time_ns()),
                    "attributes": [_pair(key, value) for key, value in attributes.items()],
                }
            )

    def _send(self) -> None:
        resource = {"service.name": "items", "host.name": socket.gethostname()}
        about = [_pair(key, value) for key, value in resource.items()]
        spans: list[dict[str, Any]] = []
        while True:
            if len(spans) < TOGETHER:
                time.sleep(DELAY_S)
            spans = []
            with suppress(queue.Empty):
                while len(spans) < TOGETHER:
                    spans.append(self._waiting.get_nowait())
            if spans:
                group = {"resource": {"attributes": about}, "scopeSpans": [{"spans": spans}]}
                self._post(json.dumps({"resourceSpans": [group]}).encode())

    def _post(self, body: bytes) -> None:
        request = urllib.request.Request(self._url, body, self._headers)  # noqa: S310 - as configured
        while True:
            try:
                urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 - as configured
            except urllib.error.HTTPError as error:
                if error.code == 429:
                    time.sleep(float(error.headers.get("Retry-After") or 1))
                    continue
            except OSError:
                # there is no receiver
                pass
            return


class Service(ThreadingHTTPServer):
    """A service with items; `slow` is the cause of slow requests: db, lock or queue."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, slow: str, spans: Spans) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.slow, self.spans = slow, spans


class Handler(BaseHTTPRequestHandler):
    """Serves a request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Service

    def do_GET(self) -> None:
        """Serve the items, in a span of the caller's trace if it has a sampled one."""
        slow = self.server.slow if random.random() < SLOW_SHARE else ""
        if slow == "queue":
            # before the work begins, as behind a pool that is too small
            time.sleep(SLOW_S)
        found = PARENT.fullmatch(self.headers.get("traceparent", ""))
        trace, parent, flags = found.groups() if found else (secrets.token_hex(16), "", "01")
        if flags != "01":
            self._answer()
            return
        spans = self.server.spans
        with spans.span(trace, parent, "GET /items", 2, **{"http.route": "/items"}) as own:
            with spans.span(trace, own, "acquire lock"):
                time.sleep(SLOW_S if slow == "lock" else 0)
            statement = "SELECT * FROM items WHERE owner = 'anna' LIMIT 10"
            with spans.span(trace, own, "SELECT", 3, **{"db.query.text": statement}):
                time.sleep(SLOW_S if slow == "db" else 0.001)
        self._answer()

    def _answer(self) -> None:
        body = json.dumps([{"id": number} for number in range(10)]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def _pair(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description="A service that sends its spans by OTLP.")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--slow", choices=("db", "lock", "queue"), default="db")
    given = parser.parse_args()
    endpoint = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    spans = Spans(endpoint, os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""))
    with suppress(KeyboardInterrupt), Service(given.port, given.slow, spans) as service:
        service.serve_forever()


if __name__ == "__main__":
    main()
