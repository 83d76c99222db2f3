"""A header line Set-Cookie, read as browsers do (RFC 6265, sections 5.1 to 5.3)."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from datetime import UTC, datetime
from http.cookiejar import Cookie
from typing import Any
from urllib.parse import urlsplit

#: Blanks, and what stands between the parts of a date.
_BLANKS = " \t"
_DATE_PART = re.compile(r"[^\t\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?!\d)", re.ASCII)
_DAY = re.compile(r"\d{1,2}(?!\d)", re.ASCII)
_YEAR = re.compile(r"\d{2,4}(?!\d)", re.ASCII)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SECONDS = re.compile(r"-?\d+", re.ASCII)
_ADDRESS = re.compile(r"[\d.]+|.*:.*", re.ASCII)
#: Digits of an age beyond which a cookie never expires.
_LONG = 15


def cookie_of(line: str, url: str) -> Cookie | None:
    """Return the cookie of a line Set-Cookie in a response of `url`; None if it has to be ignored.

    A cookie that deletes another has expired. `line` has one character for each byte. A domain
    without a dot is taken for a public suffix, of which there is no list here.
    """
    pair, *attributes = line.split(";")
    name, equals, value = pair.partition("=")
    name = name.strip(_BLANKS)
    if not equals or not name:
        return None
    domain = path = ""
    secure = False
    rest: dict[str, Any] = {}
    expires = max_age = None
    for attribute in attributes:
        known, _, wish = attribute.partition("=")
        known, wish = known.strip(_BLANKS).lower(), wish.strip(_BLANKS)
        if known == "path":
            # any other is the default path
            path = wish if wish.startswith("/") else ""
        elif known == "domain":
            domain = _canonical(wish.removeprefix(".")) or domain
        elif known == "secure":
            secure = True
        elif known == "httponly":
            rest["HttpOnly"] = None
        elif known == "expires":
            at = date(wish)
            expires = expires if at is None else at
        elif known == "max-age" and _SECONDS.fullmatch(wish):
            max_age = wish
    parts = urlsplit(url)
    host = parts.hostname or ""
    if "." not in domain and domain == host:
        domain = ""
    if domain and ("." not in domain or not domain_matches(host, domain)):
        return None
    if max_age is not None:
        expires = _end(max_age)
    return Cookie(
        version=0,
        name=name,
        value=value.strip(_BLANKS),
        port=None,
        port_specified=False,
        domain=domain or host,
        domain_specified=bool(domain),
        domain_initial_dot=False,
        path=path or _default_path(parts.path),
        path_specified=bool(path),
        secure=secure,
        # seconds since 1970
        expires=expires,
        discard=expires is None,
        comment=None,
        comment_url=None,
        rest=rest,
    )


def domain_matches(host: str, domain: str) -> bool:
    """Return whether `host` is `domain` or below it (5.1.3); nothing is below an address."""
    return host == domain or (host.endswith("." + domain) and not _ADDRESS.fullmatch(host))


def path_matches(path: str, of_cookie: str) -> bool:
    """Return whether a request's `path` is the path of a cookie or below it (5.1.4)."""
    return path == of_cookie or (
        path.startswith(of_cookie) and (of_cookie.endswith("/") or path[len(of_cookie)] == "/")
    )


def date(text: str) -> int | None:
    """Return the time of a date, seconds since 1970; None if the text is not a date (5.1.1)."""
    clock = day = month = year = None
    for part in _DATE_PART.findall(text):
        if clock is None and (found := _TIME.match(part)):
            clock = found
        elif day is None and (found := _DAY.match(part)):
            day = int(found[0])
        elif month is None and part[:3].lower() in _MONTHS:
            month = _MONTHS.index(part[:3].lower()) + 1
        elif year is None and (found := _YEAR.match(part)):
            year = int(found[0])
    if clock is None or day is None or month is None or year is None:
        return None
    if year < 100:
        year += 1900 if year >= 70 else 2000
    if year < 1601:
        return None
    try:
        hour, minute, second = map(int, clock.groups())
        at = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return int(at.timestamp())


def _end(max_age: str) -> int | None:
    """Return when a cookie of this age expires, seconds since 1970; None for never."""
    if max_age.startswith("-"):
        return 0
    if len(max_age) > _LONG:
        return None if max_age.strip("0") else 0
    return int(time.time()) + int(max_age) if int(max_age) else 0


def _default_path(path: str) -> str:
    folder = path[: path.rfind("/")]
    return folder if folder.startswith("/") else "/"


def _canonical(domain: str) -> str:
    """Return a domain in lower case; one in UTF-8 as it is looked up, if it is a name (5.1.2)."""
    if not domain.isascii():
        with suppress(UnicodeError):
            domain = domain.encode("latin-1").decode().encode("idna").decode("ascii")
    return domain.lower()
