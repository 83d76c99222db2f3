"""An HTTP server on loopback that answers as the path says and remembers every request."""

from __future__ import annotations

import contextlib
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A request as it arrived; header names in small letters."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    #: Port of the client: one a connection.
    client: int


class RecordingServer(ThreadingHTTPServer):
    """`/status/N` answers N; `/to?code=N&url=U` redirects; `/loop`, `/slow?s=N`, `/drop`."""

    daemon_threads = True

    def __init__(self, certificate: Path | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[Seen] = []
        self.scheme = "http"
        if certificate:
            self.scheme = "https"
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(certificate)
            self.socket = tls.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request: object, client_address: object) -> None:
        """Leave clients that hung up alone; pass on what is wrong here."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"

    @property
    def elsewhere(self) -> str:
        """The same server under another host name."""
        return f"{self.scheme}://localhost:{self.server_port}"

    def taken(self) -> list[Seen]:
        """What arrived since the last call."""
        seen, self.seen = self.seen, []
        return seen


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # headers and body in two packets would wait for each other
    disable_nagle_algorithm = True
    server: RecordingServer

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.server.seen.append(
            Seen(
                method=self.command,
                path=self.path,
                headers={name.lower(): value for name, value in self.headers.items()},
                body=body,
                client=self.client_address[1],
            )
        )
        code, headers = 200, {}
        if parts.path.startswith("/status/"):
            code = int(parts.path.rpartition("/")[2])
        elif parts.path == "/to":
            code, headers["Location"] = int(query["code"]), query["url"]
            if "cookie" in query:
                headers["Set-Cookie"] = query["cookie"]
        elif parts.path == "/loop":
            code, headers["Location"] = 302, self.path
        elif parts.path == "/slow":
            time.sleep(float(query["s"]))
        elif parts.path == "/drop":
            self.close_connection = True
            return
        payload = b"" if self.command == "HEAD" or code in (204, 304) else b'{"answer": 42}' * 400
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        if code not in (204, 304):
            self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(payload)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

    def log_message(self, *args: object) -> None:
        """Keep the tests' output clean."""


@contextlib.contextmanager
def recording_server(certificate: Path | None = None) -> Iterator[RecordingServer]:
    """Serve from a thread for as long as the block runs; over TLS with a certificate and key."""
    with RecordingServer(certificate) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
