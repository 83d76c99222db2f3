"""Cookies that responses set, sent with later requests by the rules of browsers (RFC 6265)."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from http.cookiejar import Cookie, CookieJar
from typing import Any
from urllib.parse import urlsplit

from requests.cookies import RequestsCookieJar

from osbench.worker.http.wire.prepared_request import PreparedRequest
from osbench.worker.http.wire.raw_response import RawResponse
from osbench.worker.http.wire.set_cookie import cookie_of, domain_matches, path_matches

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
#: Attribute of a cookie: its place in the order in which the cookies of a jar were created.
_CREATED = "_osbench_created"


class BrowserJar(RequestsCookieJar):
    """A cookie jar of `requests` with the rules of RFC 6265 (5.2 to 5.4) and a limited size.

    Cookies that a scenario sets for no domain are sent to all hosts. `changed` says that the jar
    was changed. The size is checked each time as many cookies or characters were set as the limits
    `COOKIES` and `COOKIE_CHARS`; the oldest beyond them are dropped.
    """

    changed = False
    #: Cookies that were created so far.
    _created = 0
    #: Since they were counted last.
    _set = 0
    _set_chars = 0

    def take(self, lines: Iterable[str], url: str) -> None:
        """Set the cookies of lines Set-Cookie in a response of `url`; ignore invalid lines.

        A cookie that has expired deletes the known cookie of its name, domain and path.
        """
        for line in lines:
            cookie = cookie_of(line, url)
            if cookie is None:
                continue
            if not cookie.is_expired():
                self.set_cookie(cookie)
            elif self._known(cookie) is not None:
                self.clear(cookie.domain, cookie.path, cookie.name)

    def line(self, url: str) -> str | None:
        """Return the value of the header Cookie for a request to `url`; None if no cookie applies.

        Raises ValueError for a cookie that no header may hold.
        """
        parts = urlsplit(url)
        host, path, secure = parts.hostname or "", parts.path or "/", parts.scheme == "https"
        now = int(time.time())
        applying = [
            cookie
            for cookie in cookies_in(self)
            if _is_for_host(cookie, host)
            and path_matches(path, cookie.path)
            and (secure or not cookie.secure)
            and not cookie.is_expired(now)
        ]
        if not applying:
            return None
        applying.sort(key=_place)
        line = "; ".join(f"{cookie.name}={cookie.value or ''}" for cookie in applying)
        if _UNSAFE.search(line):
            raise ValueError("a cookie of the user has a character that HTTP forbids; remove it")
        return line

    def extract_cookies(self, response: Any, request: Any) -> None:
        """Take the cookies of a response, as `requests` asks for."""
        self.take(response.info().get_all("Set-Cookie") or (), request.get_full_url())

    def add_cookie_header(self, request: Any) -> None:
        """Add the header Cookie to a request without one, as `requests` asks for."""
        line = self.line(request.get_full_url())
        if line and not request.has_header("Cookie"):
            request.add_unredirected_header("Cookie", line)

    def copy(self) -> BrowserJar:
        """Return a jar with the same cookies."""
        twin = BrowserJar()
        twin.update(self)
        return twin

    def set_cookie(self, cookie: Cookie, *args: Any, **kwargs: Any) -> None:
        """Set a cookie; it keeps the place of a cookie of the same name, domain and path."""
        self.changed = True
        known = self._known(cookie)
        if known is None:
            self._created += 1
        vars(cookie)[_CREATED] = self._created if known is None else vars(known)[_CREATED]
        # not as requests does, which takes characters out of quoted values
        CookieJar.set_cookie(self, cookie)
        self._set += 1
        self._set_chars += _size(cookie)
        if self._set > COOKIES or self._set_chars > COOKIE_CHARS:
            self._drop()

    def clear(
        self, domain: str | None = None, path: str | None = None, name: str | None = None
    ) -> None:
        self.changed = True
        super().clear(domain, path, name)

    def _known(self, cookie: Cookie) -> Cookie | None:
        of_domain = self._cookies.get(cookie.domain, {})  # type: ignore[attr-defined] # its stub
        known: Cookie | None = of_domain.get(cookie.path, {}).get(cookie.name)
        return known

    def _drop(self) -> None:
        kept = sorted(cookies_in(self), key=lambda cookie: vars(cookie)[_CREATED])
        chars = sum(map(_size, kept))
        for at, cookie in enumerate(kept):
            if len(kept) - at <= COOKIES and chars <= COOKIE_CHARS:
                break
            chars -= _size(cookie)
            self.clear(cookie.domain, cookie.path, cookie.name)
        self._set = self._set_chars = 0


class Cookies:
    """Cookies of one virtual user, or of one request and its redirects. Not thread-safe."""

    def __init__(self) -> None:
        #: None until it is needed: most users have no cookies.
        self._jar: BrowserJar | None = None
        #: Headers by what decides them, valid until a cookie changes or expires.
        self._ready: dict[str, str | None] = {}
        self._until = _NEVER
        self._empty = True
        #: All cookies are for all paths, so that the host alone decides.
        self._of_hosts = True

    @property
    def jar(self) -> BrowserJar:
        """Return the jar, which the first call makes."""
        if self._jar is None:
            self._jar = BrowserJar()
        return self._jar

    def take(self, answer: RawResponse) -> None:
        """Add the cookies that a response sets to the jar."""
        lines = answer.values("set-cookie")
        if lines:
            self.jar.take(lines, answer.request.url)

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
        jar = self._jar
        if jar is None:
            return None
        if jar.changed or time.time() >= self._until:
            self._look(jar)
        if self._empty:
            return None
        key = url
        if self._of_hosts:
            parts = urlsplit(url)
            key = f"{parts.scheme}://{parts.netloc}"
        if key not in self._ready:
            if len(self._ready) >= READY:
                self._ready.clear()
            self._ready[key] = jar.line(url)
        return self._ready[key]

    def _look(self, jar: BrowserJar) -> None:
        jar.clear_expired_cookies()
        jar.changed = False
        self._ready.clear()
        kept = cookies_in(jar)
        self._empty = not kept
        expiries = [cookie.expires for cookie in kept if cookie.expires is not None]
        self._until = min(expiries, default=_NEVER)
        self._of_hosts = all(cookie.path == "/" for cookie in kept)


def cookies_in(jar: CookieJar) -> list[Cookie]:
    """Return the cookies of a jar, in no order."""
    # the way of its base: that of requests is typed as one of names
    return list(CookieJar.__iter__(jar))


def _is_for_host(cookie: Cookie, host: str) -> bool:
    domain = cookie.domain
    if not domain or domain == host:
        return True
    return cookie.domain_specified and domain_matches(host, domain.lower().removeprefix("."))


def _place(cookie: Cookie) -> tuple[int, int]:
    """Order cookies in a header: longer paths first, then older cookies (RFC 6265, 5.4)."""
    return -len(cookie.path), vars(cookie)[_CREATED]


def _size(cookie: Cookie) -> int:
    return len(cookie.name) + len(cookie.value or "")
