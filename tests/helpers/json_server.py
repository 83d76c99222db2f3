"""HTTP servers of the tests: how they answer in JSON, and how one runs in a thread."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

Server = TypeVar("Server", bound="LoopbackServer")


class LoopbackServer(ThreadingHTTPServer):
    """A server on a free port of loopback."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet about clients that go: the garbage collector closes their connections.

        A traceback that a thread prints then parses source, which breaks an `ast.parse` of a test.
        """
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class QuietHandler(BaseHTTPRequestHandler):
    """Keeps connections and says nothing of its requests."""

    protocol_version = "HTTP/1.1"
    # headers and body in two packets would wait for each other
    disable_nagle_algorithm = True

    def sent_headers(self) -> dict[str, str]:
        """Headers of the request, names in small letters."""
        return {name.lower(): value for name, value in self.headers.items()}

    def sent_body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int, document: Any, **headers: str) -> None:
        """Answer with a document as JSON, or with nothing where it is None."""
        payload = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(payload)

    def log_message(self, *args: object) -> None:
        """Keep the tests' output clean."""


@contextlib.contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Serve from a thread for as long as the block runs."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
