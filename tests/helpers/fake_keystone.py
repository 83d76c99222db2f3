"""Just enough of Keystone to hand out tokens; remembers every request."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager

from helpers.json_server import LoopbackServer, QuietHandler, serving

#: A user, and the password with which everybody of the default domain is let in.
USER, PASSWORD = "demo", "right"
_DOMAIN = {"id": "default", "name": "Default"}


class FakeKeystone(LoopbackServer):
    """Identity API v3 under /v3, versions under /."""

    def __init__(self, catalogued: str = "http://elsewhere:1/") -> None:
        super().__init__(_Handler)
        #: URL of the one service in the catalogue.
        self.catalogued = catalogued
        #: Method, path and headers (names in small letters) of each request.
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        #: User names of the tokens given.
        self.users: list[str] = []
        #: Where POSTs are sent instead of being answered.
        self.redirect: str | None = None

    @property
    def auth_url(self) -> str:
        return f"{self.url}/v3"


class _Handler(QuietHandler):
    server: FakeKeystone

    def do_GET(self) -> None:
        self._remember()
        links = [{"rel": "self", "href": self.server.auth_url + "/"}]
        version = {"id": "v3.14", "status": "stable", "links": links}
        if self.path.rstrip("/") == "/v3":
            self._answer(200, {"version": version})
        else:
            self._answer(300, {"versions": {"values": [version]}})

    def do_POST(self) -> None:
        self._remember()
        auth = json.loads(self.sent_body())["auth"]
        if self.server.redirect:
            return self._answer(302, {}, Location=self.server.redirect)
        user = auth["identity"]["password"]["user"]
        # by id or by name, whose case means nothing
        domains = {value.lower() for value in user["domain"].values()}
        if user["password"] != PASSWORD or domains != {_DOMAIN["id"]}:
            text = "The request you have made requires authentication."
            return self._answer(401, {"error": {"message": text, "code": 401}})
        self.server.users.append(user["name"])
        project = auth["scope"]["project"]["name"]
        endpoint = {"url": self.server.catalogued, "interface": "public", "region": "R", "id": "e"}
        token = {
            "methods": ["password"],
            "expires_at": "2999-01-01T00:00:00.000000Z",
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "user": {"id": user["name"], "name": user["name"], "domain": _DOMAIN},
            "project": {"id": project, "name": project, "domain": _DOMAIN},
            "catalog": [
                {"type": "identity", "name": "identity", "id": "i", "endpoints": []},
                {"type": "thing", "name": "thing", "id": "s", "endpoints": [endpoint]},
            ],
        }
        return self._answer(
            201, {"token": token}, **{"X-Subject-Token": f"t{len(self.server.users)}"}
        )

    def _remember(self) -> None:
        self.server.seen.append((self.command, self.path, self.sent_headers()))

    def _answer(self, status: int, document: object, **headers: str) -> None:
        own_headers = {
            "Set-Cookie": "route=1",
            "X-Openstack-Request-Id": f"req-{len(self.server.seen)}",
        }
        self.answer(status, document, **own_headers, **headers)


def fake_keystone() -> AbstractContextManager[FakeKeystone]:
    """Serve from a thread for as long as the block runs."""
    return serving(FakeKeystone())
