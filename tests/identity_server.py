"""A web server on loopback that speaks as much of Keystone's v3 API as issuing a token takes."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Users that are let in, and their passwords.
USERS = {"admin": "pw-admin", "guest": "pw-guest"}
CATALOGUE = [
    {"type": kind, "id": kind, "name": kind, "endpoints": []} for kind in ("identity", "image")
]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url = f"http://127.0.0.1:{self.server.server_port}/v3/"
        links = [{"rel": "self", "href": url}]
        self._answer(200, {"version": {"id": "v3.14", "status": "stable", "links": links}})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["auth"]
        user = asked["identity"]["password"]["user"]
        if USERS.get(user["name"]) != user["password"] or user["domain"] != {"id": "default"}:
            self._answer(401, {"error": {"code": 401, "message": "Not welcome here."}})
            return
        project = {"id": "p", "domain": {"id": "default"}, **asked["scope"]["project"]}
        token = {
            "methods": ["password"],
            "user": {"id": "u", "name": user["name"], "domain": {"id": "default"}},
            "project": project,
            "catalog": CATALOGUE,
            "issued_at": "2030-01-01T00:00:00.000000Z",
            "expires_at": "2040-01-01T00:00:00.000000Z",
        }
        self._answer(201, {"token": token})

    def _answer(self, status: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Subject-Token", "a-token")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


@contextlib.contextmanager
def identity_server() -> Iterator[str]:
    """The `auth_url` of a running server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v3"
        finally:
            server.shutdown()
            thread.join()
