"""Just enough of Keystone to hand out tokens; remembers every request."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: A user that exists, and its password.
USER, PASSWORD = "demo", "right"


class FakeKeystone(ThreadingHTTPServer):
    """Identity API v3 under /v3, versions under /."""

    daemon_threads = True

    def __init__(self, catalogued: str = "http://elsewhere:1/") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        #: URL of the one service in the catalogue.
        self.catalogued = catalogued
        #: Method, path and headers (names in small letters) of each request.
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        #: User names of the tokens given.
        self.users: list[str] = []
        #: Where POSTs are sent instead of being answered.
        self.redirect: str | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FakeKeystone

    def do_GET(self) -> None:
        self._remember()
        version = {
            "id": "v3.14",
            "status": "stable",
            "links": [{"rel": "self", "href": self.server.url + "/v3/"}],
        }
        if self.path.rstrip("/") == "/v3":
            self._answer(200, {"version": version})
        else:
            self._answer(300, {"versions": {"values": [version]}})

    def do_POST(self) -> None:
        self._remember()
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.redirect:
            return self._answer(302, {}, Location=self.server.redirect)
        user = body["auth"]["identity"]["password"]["user"]
        if user["password"] != PASSWORD:
            text = "The request you have made requires authentication."
            return self._answer(401, {"error": {"message": text, "code": 401}})
        self.server.users.append(user["name"])
        endpoint = {"url": self.server.catalogued, "interface": "public", "region": "R", "id": "e"}
        token = {
            "expires_at": "2999-01-01T00:00:00.000000Z",
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "user": {"id": "u", "name": user["name"], "domain": {"id": "default", "name": "D"}},
            "catalog": [{"type": "thing", "name": "thing", "id": "s", "endpoints": [endpoint]}],
        }
        return self._answer(
            201, {"token": token}, **{"X-Subject-Token": f"t{len(self.server.users)}"}
        )

    def _remember(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append((self.command, self.path, headers))

    def _answer(self, code: int, document: Any, **headers: str) -> None:
        payload = json.dumps(document).encode()
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Set-Cookie", "route=1")
        self.send_header("X-Openstack-Request-Id", f"req-{len(self.server.seen)}")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *args: object) -> None:
        """Keep the tests' output clean."""


@contextlib.contextmanager
def fake_keystone() -> Iterator[FakeKeystone]:
    """Serve from a thread for as long as the block runs."""
    with FakeKeystone() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
