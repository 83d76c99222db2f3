"""An HTTP server on loopback that responds as the path says and records every request."""

from __future__ import annotations

import contextlib
import itertools
import ssl
import sys
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from helpers.json_server import LoopbackServer, QuietHandler, serving


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A request as it arrived; header names in small letters."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    #: Address and port of the client: one port per connection, until it is used again.
    source: str
    client: int
    #: Number of its connection.
    connection: int


class RecordingServer(LoopbackServer):
    """`/status/N` responds with N; `/to?code=N&url=U` redirects; `/loop`, `/slow?s=N`, `/drop`."""

    def __init__(self, certificate: Path | None) -> None:
        super().__init__(_Handler)
        self.seen: list[Seen] = []
        self.numbers = itertools.count()
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


class _Handler(QuietHandler):
    server: RecordingServer
    _connection: int

    def setup(self) -> None:
        """Begin a connection."""
        super().setup()
        self._connection = next(self.server.numbers)

    def _serve(self) -> None:
        body = self.sent_body()
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.server.seen.append(
            Seen(
                method=self.command,
                path=self.path,
                headers=self.sent_headers(),
                body=body,
                source=self.client_address[0],
                client=self.client_address[1],
                connection=self._connection,
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

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_QUERY = _serve


def recording_server(
    certificate: Path | None = None,
) -> AbstractContextManager[RecordingServer]:
    """Serve from a thread for as long as the block runs; over TLS with a certificate and key."""
    return serving(RecordingServer(certificate))
