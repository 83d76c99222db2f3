"""A cloud of nothing but users: as much of Keystone as lets many of them in."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: ThreadingHTTPServer

    def do_GET(self) -> None:
        links = [{"rel": "self", "href": f"http://127.0.0.1:{self.server.server_port}/v3/"}]
        version = {"id": "v3.14", "status": "stable", "links": links}
        one = self.path.rstrip("/") == "/v3"
        self._answer(
            200 if one else 300,
            {"version": version} if one else {"versions": {"values": [version]}},
        )

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["auth"]
        name = asked["identity"]["password"]["user"]["name"]
        domain = {"id": "default", "name": "Default"}
        token = {
            "methods": ["password"],
            "user": {"id": name, "name": name, "domain": domain},
            "project": {"id": f"of-{name}", "name": f"of-{name}", "domain": domain},
            "catalog": [],
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
        """Keep the output to the bench's own."""


@contextlib.contextmanager
def crowd() -> Iterator[str]:
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


def spec(auth_url: str, users: int) -> dict[str, Any]:
    """A deployment record with so many users, each in a project of its own."""
    return {
        "auth_url": auth_url,
        "users": [
            {"username": f"u{number}", "password": "bench", "project_name": f"of-u{number}"}
            for number in range(users)
        ],
    }
