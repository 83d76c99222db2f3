"""Cookies that responses set, sent with later requests by the rules of `requests`."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from http.client import HTTPMessage
from http.cookiejar import Cookie, CookieJar
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.cookies import MockRequest, MockResponse, RequestsCookieJar

from osbench.worker.http.wire.prepared_request import PreparedRequest
from osbench.worker.http.wire.raw_response import RawResponse

#: Cookies of one user, as RFC 6265 asks of browsers (section 6.1), and characters of all of them.
#: Up to twice as many are there before the oldest are dropped.
COOKIES = 3000
COOKIE_CHARS = 1 << 20
#: Ready headers that are kept, at most.
READY = 256
#: What would end the header, and what it cannot be encoded with.
_UNSAFE = re.compile(r"[\r\n\0]|[^\0-\xff]")
#: A time that never comes, seconds since 1970.
_NEVER = float("inf")


class _Jar(RequestsCookieJar):
    """A cookie jar that notes in `changed` that it was changed, and limits its size.

    It is checked each time as many cookies or characters were set as the limits `COOKIES` and
    `COOKIE_CHARS`; the oldest beyond them are dropped.
    """

    changed = False
    #: Since they were counted last.
    _set = 0
    _set_chars = 0

    def set_cookie(self, cookie: Cookie, *args: Any, **kwargs: Any) -> None:
        self.changed = True
        super().set_cookie(cookie, *args, **kwargs)
        self._set += 1
        self._set_chars += _size(cookie)
        if self._set > COOKIES or self._set_chars > COOKIE_CHARS:
            self._drop()

    def _drop(self) -> None:
        kept: list[Cookie] = list(CookieJar.__iter__(self))
        chars = sum(map(_size, kept))
        # the cookies of a path are in the order in which they were set first
        for at, one in enumerate(kept):
            if len(kept) - at <= COOKIES and chars <= COOKIE_CHARS:
                break
            chars -= _size(one)
            self.clear(one.domain, one.path, one.name)
        self._set = self._set_chars = 0

    def clear(
        self, domain: str | None = None, path: str | None = None, name: str | None = None
    ) -> None:
        self.changed = True
        super().clear(domain, path, name)


class Cookies:
    """Cookies of one virtual user, or of one request and its redirects. Not thread-safe."""

    def __init__(self) -> None:
        self.jar = _Jar()
        #: Headers by what decides them, valid until a cookie changes or expires.
        self._ready: dict[str, str | None] = {}
        self._until = _NEVER
        self._empty = True
        #: All cookies are for all paths, so that the host alone decides.
        self._of_hosts = True

    def take(self, answer: RawResponse) -> None:
        """Add the cookies that a response sets to the jar."""
        lines = answer.values("set-cookie")
        if not lines:
            return
        message = HTTPMessage()
        for line in lines:
            message.add_header("Set-Cookie", line)
        response: Any = MockResponse(message)
        self.jar.extract_cookies(response, _asked(answer.request.url))

    def added_to(self, own: Sequence[str], request: PreparedRequest) -> Sequence[str]:
        """Return a new list of `own` and a header line Cookie, if cookies apply to the request.

        Returns `own` itself if none apply or the task sets a Cookie header. Raises ValueError for
        cookies that no header may hold.
        """
        line = self.header(request.url) if "cookie" not in request.outgoing.given else None
        return [*own, f"Cookie: {line}"] if line else own

    def header(self, url: str) -> str | None:
        """Return the value of the header Cookie for a request to `url`; None if no cookie applies.

        Expired cookies are removed from the jar. Values are cached until a cookie changes or
        expires. Raises ValueError for cookies that no header may hold, such as a scenario may set.
        """
        if self.jar.changed or time.time() >= self._until:
            self._look()
        if self._empty:
            return None
        key = url
        if self._of_hosts:
            parts = urlsplit(url)
            key = f"{parts.scheme}://{parts.netloc}"
        if key not in self._ready:
            asking = _asked(url)
            self.jar.add_cookie_header(asking)
            if len(self._ready) >= READY:
                self._ready.clear()
            self._ready[key] = _sendable(asking.get_new_headers().get("Cookie"))
        return self._ready[key]

    def _look(self) -> None:
        jar = self.jar
        jar.clear_expired_cookies()
        jar.changed = False
        self._ready.clear()
        # the way of its base: that of requests is typed as one of names
        kept: list[Cookie] = list(CookieJar.__iter__(jar))
        self._empty = not kept
        expiries = [one.expires for one in kept if one.expires is not None]
        self._until = min(expiries, default=_NEVER)
        self._of_hosts = all(one.path == "/" for one in kept)


def _size(cookie: Cookie) -> int:
    return len(cookie.name) + len(cookie.value or "")


def _sendable(line: str | None) -> str | None:
    if line and _UNSAFE.search(line):
        raise ValueError("a cookie of the user contains a character that HTTP forbids")
    return line


def _asked(url: str) -> Any:
    return MockRequest(requests.Request("GET", url, headers={}).prepare())
