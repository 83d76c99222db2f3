"""A service whose calls do more work the fuller it is, each by another law; it sends its spans.

    GET /status   one statement, however full it is
    GET /search   a statement for each doubling of the ports
    GET /names    one statement, and a list of all ports: linear by nature
    GET /ports    a list of all ports, with a statement for each of them: N+1
    GET /pairs    statements that grow with the square of the ports

    python samples/filling_service.py --port 8080
    python samples/filling_service.py --port 8080 --fill 1000

The second command fills the first one's service. Spans are sent by OTLP to
OTEL_EXPORTER_OTLP_ENDPOINT, by default http://127.0.0.1:4318.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import secrets
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

#: Version, trace, span and flags of a request (W3C Trace Context).
PARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-01")

LAWS: dict[str, Callable[[int], float]] = {
    "constant": lambda n: 0,
    "logarithmic": math.log2,
    "linear": lambda n: n,
    "quadratic": lambda n: n * n,
}


class Call(NamedTuple):
    """A call of the service: base + each * law(ports) statements, and the things it returns."""

    law: str
    base: float
    each: float
    returns_all: bool = False
    #: Seconds of a statement, and of a returned port.
    statement_s: float = 0.0002
    port_s: float = 0.00002

    def statements(self, ports: int) -> int:
        """Return the number of statements at a number of ports."""
        return round(self.base + self.each * LAWS[self.law](ports))


CALLS = {
    "/status": Call("constant", 1, 0),
    "/search": Call("logarithmic", 1, 1),
    "/names": Call("constant", 1, 0, returns_all=True),
    "/ports": Call("linear", 1, 1, returns_all=True),
    "/pairs": Call("quadratic", 1, 0.01),
}


class Service(ThreadingHTTPServer):
    """The service with its ports; `endpoint` receives its spans."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, calls: dict[str, Call], endpoint: str) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.calls, self.endpoint = calls, endpoint
        self.ports = 1

    def send_spans(self, spans: list[dict[str, Any]]) -> None:
        """Send the spans of a request; they are lost if there is no receiver."""
        about = [_pair("service.name", "filling")]
        group = {"resource": {"attributes": about}, "scopeSpans": [{"spans": spans}]}
        request = urllib.request.Request(  # noqa: S310 - as configured
            f"{self.endpoint.rstrip('/')}/v1/traces",
            json.dumps({"resourceSpans": [group]}).encode(),
            {"Content-Type": "application/json"},
        )
        with suppress(OSError):
            urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 - as configured


class Handler(BaseHTTPRequestHandler):
    """Serves a request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Service

    def do_GET(self) -> None:
        """Serve a call, and send a span for it and for each of its statements."""
        call = self.server.calls.get(self.path)
        if call is None:
            self._answer(404, {"error": "no such call"})
            return
        ports = self.server.ports
        statements = call.statements(ports)
        begin = time.time_ns()
        time.sleep(statements * call.statement_s + ports * call.port_s * call.returns_all)
        end = time.time_ns()
        found = PARENT.fullmatch(self.headers.get("traceparent", ""))
        if found:
            self.server.send_spans(_spans(self.path, *found.groups(), statements, begin, end))
        listed = [f"port-{number:08}" for number in range(ports)] if call.returns_all else []
        self._answer(200, {"ports": listed})

    def do_PUT(self) -> None:
        """Fill the service: the body is the number of its ports."""
        self.server.ports = int(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(200, {"filled": self.server.ports})

    def _answer(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def _spans(
    path: str, trace: str, parent: str, statements: int, begin: int, end: int
) -> list[dict[str, Any]]:
    own = secrets.token_hex(8)
    route = {"http.request.method": "GET", "http.route": path}
    spans = [_span(trace, own, parent, f"GET {path}", 2, (begin, end), route)]
    lasts = (end - begin) // (statements + 1)
    query = {"db.query.text": "SELECT * FROM ports WHERE id = 7"}
    for number in range(statements):
        at = begin + number * lasts
        spans.append(_span(trace, secrets.token_hex(8), own, "SELECT", 3, (at, at + lasts), query))
    return spans


def _span(
    trace: str,
    span: str,
    parent: str,
    name: str,
    kind: int,
    times: tuple[int, int],
    attributes: dict[str, str],
) -> dict[str, Any]:
    return {
        "traceId": trace,
        "spanId": span,
        "parentSpanId": parent,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(times[0]),
        "endTimeUnixNano": str(times[1]),
        "attributes": [_pair(key, value) for key, value in attributes.items()],
    }


def _pair(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def main() -> None:
    """Serve until Ctrl-C, or fill a service that runs."""
    parser = argparse.ArgumentParser(description="A service that gets slower as it fills.")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument(
        "--fill", type=int, metavar="N", help="fill the service that runs at --port"
    )
    parser.add_argument(
        "--calls", type=Path, help="JSON file of other calls: path -> fields of Call"
    )
    given = parser.parse_args()
    if given.fill is not None:
        address = f"http://127.0.0.1:{given.port}/ports"
        request = urllib.request.Request(address, str(given.fill).encode(), method="PUT")
        urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 - the service above
        return
    calls = CALLS
    if given.calls is not None:
        read = json.loads(given.calls.read_text("utf-8"))
        calls = {path: Call(**fields) for path, fields in read.items()}
    endpoint = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    with suppress(KeyboardInterrupt), Service(given.port, calls, endpoint) as service:
        print(f"serving at http://127.0.0.1:{service.server_port}", file=sys.stderr, flush=True)
        service.serve_forever()


if __name__ == "__main__":
    main()
