"""Guards every page: checks host names, tokens and foreign pages, and sets headers.

The rules: only names of this server in the header Host (DNS rebinding); no response without a
token; no requests from pages of other sites, except links; changes by POST from our own pages
alone; no page of ours in a frame of others. There is no CORS: no other origin reads a response.
"""

from __future__ import annotations

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from osbench.coordinator.front.web.access_tokens import AccessTokens, Role

#: Header with `AccessTokens.abort_key`, which a form of another site cannot send.
ABORT_KEY = "X-Osbench-Key"
#: Pages without their own policy load nothing.
POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

_HEADERS = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_SAFE = ("GET", "HEAD")
_NOBODY = (
    "This page needs the token of its server: open the address that osbench-coord has printed.\n"
)


class RequestGuard:
    """ASGI middleware that refuses requests without a token, of other sites, or for other hosts.

    Requests that pass have the token's role under "role" in their scope. The rules are in the
    module's docstring.
    """

    def __init__(self, app: ASGIApp, tokens: AccessTokens, names: frozenset[str]) -> None:
        self._app = app
        self._tokens = tokens
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request: send an error or a redirect, or pass it on to the application.

        Adds security headers to any response. Connections of other types than HTTP, such as
        WebSockets, get no response.
        """
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers) or self._exchange(scope, headers)
        if refusal is None:
            role = self._role(scope, headers)
            if role is None:
                refusal = PlainTextResponse(_NOBODY, 401)
            elif scope["method"] not in _SAFE:
                refusal = self._refused_change(role, headers)
            scope["role"] = role
        await (refusal or self._app)(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _name(hosts[0]) not in self._names:
            return PlainTextResponse(
                "This server does not go by that name: see --allow-host.\n", 400
            )
        # other sites may lead people here, and use nothing of what is here
        foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        leads = headers.get("sec-fetch-mode") == "navigate" and scope["method"] in _SAFE
        if foreign and not leads:
            return PlainTextResponse("Requests of other sites are refused.\n", 403)
        return None

    def _exchange(self, scope: Scope, headers: Headers) -> Response | None:
        """Return a redirect to the same address without its token, which sets a cookie instead.

        From a link of another site it is a page that leads to "/", because the cookie would not be
        sent. None without a token, or if the method is not GET or HEAD; 401 if the token is wrong.
        """
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = query.pop("token", [""])[0]
        if not token or scope["method"] not in _SAFE:
            return None
        role = self._tokens.role_of(token)
        if role is None:
            return PlainTextResponse(_NOBODY, 401)
        rest = urlencode(query, doseq=True)
        # of two slashes at the beginning a browser would make another host
        place = "/" + scope["path"].lstrip("/") + (f"?{rest}" if rest else "")
        found: Response = RedirectResponse(place, 303)
        if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            # a cookie that is strict does not go along on a way that began at another site
            found = HTMLResponse('<meta http-equiv="refresh" content="0; url=/">')
        found.set_cookie(
            cookie_name(scope),
            self._tokens.cookie(role),
            httponly=True,
            samesite="strict",
            secure=scope["scheme"] == "https",
        )
        return found

    def _role(self, scope: Scope, headers: Headers) -> Role | None:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self._tokens.role_of(token.strip())
        return self._tokens.role_of_cookie(_cookies(headers).get(cookie_name(scope), ""))

    def _refused_change(self, role: Role, headers: Headers) -> Response | None:
        if role is not Role.ABORT:
            return PlainTextResponse("This token only reads.\n", 403)
        if headers.get("authorization"):
            # no page of another site can have sent it
            return None
        site, origin = headers.get("sec-fetch-site"), headers.get("origin", "")
        own = site == "same-origin" if site else urlsplit(origin).netloc == headers["host"]
        if not own:
            return PlainTextResponse("Only pages of this server may do that.\n", 403)
        if not self._tokens.permits_abort(headers.get(ABORT_KEY, "")):
            return PlainTextResponse(f"The header {ABORT_KEY} is missing or wrong.\n", 403)
        return None


def cookie_name(scope: Scope) -> str:
    """Return the name of the server's cookie, with its port: ports of a host share cookies."""
    _, port = scope.get("server") or ("", 0)
    return f"osbench-{port}"


def _cookies(headers: Headers) -> Mapping[str, str]:
    try:
        found = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in found.items()}


def _name(host: str) -> str:
    """Return a host name in lower case, without the port, because tunnels change it."""
    name = host.strip().lower()
    if not name.endswith("]"):
        head, colon, port = name.rpartition(":")
        if colon and port.isdigit():
            name = head
    return name.rstrip(".")


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers.setdefault("Content-Security-Policy", POLICY)
        await send(message)

    return sending
