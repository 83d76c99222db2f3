"""A site with a form login, uploads and tokens that end, and a visit as Chromium records it."""

from __future__ import annotations

import json
import re
import secrets
import threading
from typing import Any
from urllib.parse import parse_qs

from helpers.json_server import LoopbackServer, QuietHandler
from helpers.recordings import entry

PASSWORD = "pw-ann"

_LOGIN = """<!doctype html><title>shop</title>
<form action=/find><input type=hidden name=csrf value=none><input name=q></form>
<form id=login method=post action=/login><input type=hidden name=csrf value="{csrf}">
<input name=user><input name=password type=password><button>go</button></form>"""
_HOME = """<!doctype html><title>home</title><script>window.shop = {{nonce: "{nonce}"}};</script>
<form method=post action=/upload enctype=multipart/form-data><input type=file name=file></form>"""

#: Of the recorded visit: they are good for nothing at the site.
OLD_CSRF, OLD_NONCE = "6c6f0cad2d1550c0ca09276be90ace4b", "0ldNonce-Q2mZx81bVw0aLg"
OLD_SESSION, OLD_TOKEN = "5acd16d3236c93e85613a760", "ZihUjUl3zqEPy-T8ysw1NkWkcGcvj_5k"
OLD_ITEM = "79f03a18-3de5-476a-86ff-ce6967008004"


class FormSite(LoopbackServer):
    """The site; every one-time value that it gives is good once, a token for `uses` requests."""

    def __init__(self, uses: int = 1_000_000) -> None:
        super().__init__(_Handler)
        self.uses = uses
        #: All that it gave: one-time values, sessions, tokens.
        self.given: set[str] = set()
        #: Those that are good, by kind; tokens with the requests that are left.
        self.csrf: set[str] = set()
        self.nonces: set[str] = set()
        self.sessions: set[str] = set()
        self.tokens: dict[str, int] = {}
        #: Method, path and status of each request.
        self.seen: list[tuple[str, str, int]] = []
        #: Bytes of the files that were uploaded.
        self.files: list[int] = []
        self.lock = threading.Lock()

    def give(self, length: int = 16) -> str:
        value = secrets.token_hex(length)
        self.given.add(value)
        return value


class _Handler(QuietHandler):
    server: FormSite

    def _serve(self) -> None:
        body = self.sent_body()
        with self.server.lock:
            status, answer, more = self._answered(body)
            self.server.seen.append((self.command, self.path, status))
        payload = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        kind = "text/html" if isinstance(answer, str) else "application/json"
        self.send_response(status)
        for name, value in {**more, "Content-Type": kind, "Content-Length": len(payload)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(payload)

    do_GET = do_POST = _serve

    def _answered(self, body: bytes) -> tuple[int, Any, dict[str, str]]:  # noqa: PLR0911 - a page each
        site = self.server
        session = re.search(r"sid=(\w+)", self.headers.get("Cookie", ""))
        known = session is not None and session[1] in site.sessions
        if self.path == "/":
            csrf = site.give()
            site.csrf.add(csrf)
            return 200, _LOGIN.format(csrf=csrf), {}
        if self.path == "/login":
            return self._login(parse_qs(body.decode()))
        if self.path == "/home" and known:
            nonce = site.give()
            site.nonces.add(nonce)
            return 200, _HOME.format(nonce=nonce), {}
        if self.path == "/token" and known:
            nonce = str(json.loads(body).get("nonce"))
            if nonce not in site.nonces:
                # as servers do that explain too much
                return 403, {"error": f"{nonce} is not good"}, {}
            site.nonces.discard(nonce)
            token = site.give()
            site.tokens[token] = site.uses
            return 200, {"access_token": token, "token_type": "Bearer"}, {}
        if self.path == "/upload" and known:
            found = re.search(
                rb'filename="[^"]+"[^\n]*\n(?:[^\n]+\n)?\r?\n(.*?)\r?\n--', body, re.S
            )
            if found is None:
                return 400, {"error": "no file"}, {}
            site.files.append(len(found[1]))
            return 201, {}, {}
        return self._with_token()

    def _login(self, fields: dict[str, list[str]]) -> tuple[int, Any, dict[str, str]]:
        site = self.server
        csrf, password = (fields.get(name, [""])[0] for name in ("csrf", "password"))
        if csrf not in site.csrf or password != PASSWORD:
            return 403, f"bad csrf or password: {csrf}", {}
        site.csrf.discard(csrf)
        session = site.give(12)
        site.sessions.add(session)
        return 303, "", {"Set-Cookie": f"sid={session}; HttpOnly", "Location": "/home"}

    def _with_token(self) -> tuple[int, Any, dict[str, str]]:
        site = self.server
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if not site.tokens.get(token):
            return 401, {"error": "token", "token": token}, {}
        site.tokens[token] -= 1
        if self.command == "POST":
            return 201, {"id": site.give()}, {}
        return 200, {"items": []}, {}


def visit(base: str) -> list[dict[str, Any]]:
    """A login, an upload without its body, and requests with a token, as Chromium writes them."""
    page = {"_resourceType": "document", "response_type": "text/html"}
    bearer = {"Authorization": f"Bearer {OLD_TOKEN}"}
    cookie = [("Set-Cookie", f"sid={OLD_SESSION}; HttpOnly")]
    form = {"csrf": OLD_CSRF, "user": "ann", "password": PASSWORD}
    upload = {"Content-Type": "multipart/form-data; boundary=----W1", "Content-Length": "2271"}
    token = {"access_token": OLD_TOKEN, "token_type": "Bearer"}
    return [
        entry("GET", f"{base}/", answer=_LOGIN.format(csrf=OLD_CSRF), **page),
        entry("GET", f"{base}/s.css", response_type="text/css", _resourceType="stylesheet"),
        entry(
            *("POST", f"{base}/login"),
            form=form,
            status=303,
            redirect="/home",
            response_headers=cookie,
            **page,
        ),
        entry("GET", f"{base}/home", answer=_HOME.format(nonce=OLD_NONCE), **page),
        entry("POST", f"{base}/token", json_body={"nonce": OLD_NONCE}, answer=token),
        entry(
            *("POST", f"{base}/items"),
            headers=bearer,
            json_body={"name": "lamp"},
            status=201,
            answer={"id": OLD_ITEM},
        ),
        entry("GET", f"{base}/items/{OLD_ITEM}", headers=bearer, answer={"items": []}),
        entry("POST", f"{base}/upload", headers=upload, status=201, answer={}),
    ]
