"""Just enough of Keystone to hand out tokens, by many methods; remembers every request.

An identity provider stands under /oidc.
"""

from __future__ import annotations

import json
import time
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from helpers.json_server import LoopbackServer, QuietHandler, serving

#: A user, and the password with which everybody of the default domain is let in.
USER, PASSWORD = "demo", "right"
#: An application credential, a passcode that can be used once, and a client of the provider.
SECRET, PASSCODE, CLIENT_SECRET = "app-secret", "123456", "client-secret"
#: Access tokens of the identity provider.
ACCESS_TOKEN = "access-token"
_DOMAIN = {"id": "default", "name": "Default"}


class FakeKeystone(LoopbackServer):
    """Identity API v3 under /v3, versions under /."""

    def __init__(self, catalogued: str = "http://elsewhere:1/") -> None:
        super().__init__(_Handler)
        #: URL of the one service in the catalogue; "" for an empty catalogue.
        self.catalogued = catalogued
        #: Method, path and headers (names in small letters) of each request.
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        #: User names of the tokens given.
        self.users: list[str] = []
        #: Where POSTs are sent instead of being answered.
        self.redirect: str | None = None
        #: Scope of each token that was given.
        self.scopes: list[Any] = []
        #: Tokens that are good, with when they end, seconds since 1970.
        self.tokens: dict[str, float] = {}
        #: Life of tokens, seconds; None for hundreds of years.
        self.life_s: float | None = None
        #: Status and Retry-After of the next answers to logins, taken from the end.
        self.overloads: list[tuple[int, str]] = []
        self._passcodes = [PASSCODE]

    @property
    def provider(self) -> str:
        return f"{self.url}/oidc"

    def take_passcode(self, passcode: str) -> bool:
        if passcode not in self._passcodes:
            return False
        self._passcodes.remove(passcode)
        return True

    @property
    def auth_url(self) -> str:
        return f"{self.url}/v3"


class _Handler(QuietHandler):
    server: FakeKeystone

    def do_GET(self) -> None:
        self._remember()
        if "/OS-FEDERATION/" in self.path:
            return self._federated()
        links = [{"rel": "self", "href": self.server.auth_url + "/"}]
        version = {"id": "v3.14", "status": "stable", "links": links}
        if self.path.rstrip("/") == "/v3":
            return self._answer(200, {"version": version})
        return self._answer(300, {"versions": {"values": [version]}})

    def do_POST(self) -> None:
        self._remember()
        body = self.sent_body()
        if self.path.startswith("/oidc"):
            return self._oidc({key: one[0] for key, one in parse_qs(body.decode()).items()})
        if "/OS-FEDERATION/" in self.path:
            return self._federated()
        auth = json.loads(body)["auth"]
        if self.server.redirect:
            return self._answer(302, {}, Location=self.server.redirect)
        if self.server.overloads:
            status, after = self.server.overloads.pop()
            text = {"error": {"message": "Try later.", "code": status}}
            return self._answer(status, text, **({"Retry-After": after} if after else {}))
        name, until = self._who(auth["identity"])
        if name is None:
            text = "The request you have made requires authentication."
            return self._answer(401, {"error": {"message": text, "code": 401}})
        return self._give(name, auth.get("scope"), auth["identity"]["methods"], until)

    def _who(self, identity: dict[str, Any]) -> tuple[str | None, float | None]:
        """The user that all methods let in, or None; and when the token ends at the latest."""
        name, until = None, None
        for method in identity["methods"]:
            part = identity[method]
            if method == "token":
                end = self.server.tokens.get(part["id"], 0)
                good, name, until = end > time.time(), name or USER, end
            elif method == "application_credential":
                good, name = part["secret"] == SECRET, f"app-{part.get('id') or part['name']}"
            else:
                user = part["user"]
                name = user.get("name") or user["id"]
                # by id or by name, whose case means nothing
                domains = {value.lower() for value in user.get("domain", {}).values()}
                good = domains <= {_DOMAIN["id"]}
                if method == "totp":
                    good = good and self.server.take_passcode(user["passcode"])
                else:
                    good = good and user["password"] == PASSWORD
            if not good:
                return None, None
        return name, until

    def _oidc(self, form: dict[str, str]) -> None:
        granted = form["grant_type"] == "client_credentials" or form.get("password") == PASSWORD
        basic = self.sent_headers().get("authorization", "")
        if not granted or not basic.startswith("Basic "):
            return self._answer(401, {"error": "invalid_grant"})
        return self._answer(200, {"access_token": ACCESS_TOKEN, "token_type": "Bearer"})

    def _federated(self) -> None:
        if self.sent_headers().get("authorization") != f"Bearer {ACCESS_TOKEN}":
            return self._answer(401, {"error": {"message": "Who?", "code": 401}})
        return self._give("federated", None, ["openid"], None)

    def _give(self, name: str, scope: Any, methods: list[str], until: float | None) -> None:
        server = self.server
        server.users.append(name)
        server.scopes.append(scope)
        now = time.time()
        end = min(
            until or 32_000_000_000.0,
            32_000_000_000.0 if server.life_s is None else now + server.life_s,
        )
        subject = f"t{len(server.users)}"
        server.tokens[subject] = end
        endpoint = {"url": server.catalogued, "interface": "public", "region": "R", "id": "e"}
        token: dict[str, Any] = {
            "methods": methods,
            "expires_at": _timestamp(end),
            "issued_at": _timestamp(now),
            "user": {"id": name, "name": name, "domain": _DOMAIN},
        }
        app = methods == ["application_credential"]
        if app or (scope and not {"system", "domain"} & scope.keys()):
            project = (scope or {}).get("project", {})
            known = project.get("name") or project.get("id") or "by-credential"
            token["project"] = {"id": known, "name": known, "domain": _DOMAIN}
            token["roles"] = [{"id": "r1", "name": "member"}]
        if scope and "system" in scope:
            token |= {"system": {"all": True}, "roles": [{"id": "r2", "name": "admin"}]}
        if scope or app:
            services = [
                {"type": "identity", "name": "identity", "id": "i", "endpoints": []},
                {"type": "thing", "name": "thing", "id": "s", "endpoints": [endpoint]},
            ]
            token["catalog"] = services if server.catalogued else []
        return self._answer(201, {"token": token}, **{"X-Subject-Token": subject})

    def _remember(self) -> None:
        self.server.seen.append((self.command, self.path, self.sent_headers()))

    def _answer(self, status: int, document: object, **headers: str) -> None:
        own_headers = {
            "Set-Cookie": "route=1",
            "X-Openstack-Request-Id": f"req-{len(self.server.seen)}",
        }
        self.answer(status, document, **own_headers, **headers)


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def fake_keystone() -> AbstractContextManager[FakeKeystone]:
    """Serve from a thread for as long as the block runs."""
    return serving(FakeKeystone())
