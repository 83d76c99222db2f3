"""A request of a session: as bytes for osbench's client, and as `requests` describes it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from requests.cookies import RequestsCookieJar, get_cookie_header, merge_cookies
from requests.hooks import default_hooks
from requests.models import PreparedRequest
from requests.structures import CaseInsensitiveDict

from osbench.edges.openstack.worker.session_site import SentUrl, SessionSite

#: Bodies up to this size, bytes, are sent together with the head.
_TOGETHER = 64 * 1024

#: Headers, in lower case, with which a request would frame itself: requests knows what they mean.
_FRAMING = frozenset({"content-length", "expect", "te", "transfer-encoding", "upgrade"})

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?")

#: Header fields by name in lower case, as in CaseInsensitiveDict.
Fields = dict[str, tuple[str, str]]


class UnusualHeader(Exception):
    """A header that only `requests` can judge.

    It is malformed, frames the request (such as Content-Length), closes the connection, or is a
    missing default.
    """


@lru_cache(1024)
def _key(name: str) -> str:
    """Return the name of an ordinary header in lower case; "" if malformed or of framing."""
    if type(name) is not str or not _NAME.fullmatch(name) or name.lower() in _FRAMING:
        return ""
    return name.lower()


def merged_fields(of_session: Mapping[str, Any], given: Mapping[str, Any] | None) -> Fields:
    """Merge the headers of a session with a request's, which win; None as value removes a header.

    Returns a new dict by name in lower case. Raises UnusualHeader for a header that only `requests`
    can judge, and without User-Agent or Accept-Encoding.
    """
    fields: Fields = {}
    for several in (of_session, given or {}):
        for name, value in _pairs(several):
            key = _key(name) if isinstance(name, str) else ""
            if value is None:
                fields.pop(key, None)
            elif not key or not isinstance(value, str) or not _VALUE.fullmatch(value):
                raise UnusualHeader(name)
            else:
                fields[key] = (name, value)
    if fields.get("connection", ("", "keep-alive"))[1].lower() != "keep-alive":
        raise UnusualHeader("connection")
    # urllib3 has its own defaults for them
    if "user-agent" not in fields or "accept-encoding" not in fields:
        raise UnusualHeader("user-agent")
    return fields


def _pairs(headers: Any) -> Any:
    """Return pairs of header name and value; for CaseInsensitiveDict faster than its `items`."""
    if isinstance(headers, CaseInsensitiveDict):
        return getattr(headers, "_store").values()  # noqa: B009 - its stub has no such name
    return headers.items()


class DescribedRequest(PreparedRequest):
    """The `request` of a response, as `requests` describes it; its cookie jar is made when read."""

    def __init__(self, verb: str, url: str, fields: Fields, body: str | bytes | None) -> None:
        self.method = verb
        self.url = url
        self.headers = headers_of(fields)
        self.body = body
        self.hooks = default_hooks()
        self._body_position = None

    @cached_property
    def _cookies(self) -> Any:
        return RequestsCookieJar()

    def take_cookies(self, jar: Any) -> None:
        """Add the cookies of `jar` to the request's, and the header Cookie if any apply."""
        merge: Any = merge_cookies
        header: Any = get_cookie_header
        merge(self._cookies, jar)
        line = header(self._cookies, self)
        if line is not None:
            self.headers["Cookie"] = line


def headers_of(fields: Fields) -> CaseInsensitiveDict[str]:
    """Return `fields` as the mapping that `requests` uses for headers; it shares the dict."""
    headers: Any = CaseInsensitiveDict.__new__(CaseInsensitiveDict)
    headers._store = fields
    found: CaseInsensitiveDict[str] = headers
    return found


class SessionRequest:
    """A `WireRequest` for osbench's client, made of a request of a session."""

    #: `merged_fields` leaves what closes its connection to requests.
    last = False
    #: keystoneauth1 decides whether it is sent again.
    repeatable = False

    __slots__ = (
        "_head",
        "bodiless",
        "host",
        "origin",
        "port",
        "rest",
        "secure",
        "trust",
        "url",
        "verb",
    )

    def __init__(
        self, verb: str, sent: SentUrl, site: SessionSite, fields: Fields, body: bytes | None
    ) -> None:
        self.verb = verb
        self.url = sent.url
        self.host = site.host
        self.port = site.port
        self.secure = site.secure
        self.trust = site.trust
        self.origin = site.origin
        self.bodiless = verb == "HEAD"
        lines = [f"{verb} {sent.target} HTTP/1.1"]
        if "host" not in fields:
            lines.append(f"Host: {site.named}")
        lines += map(": ".join, fields.values())
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")
        together = body is not None and len(body) <= _TOGETHER
        self._head = head + body if body is not None and together else head
        #: The body, if it is sent after the head.
        self.rest = b"" if body is None or together else body

    def data(self, own: Sequence[str]) -> bytes:
        """Return the bytes of the head, and of a body up to 64 KiB; a larger body is `rest`.

        `own` is ignored: callers pass none.
        """
        return self._head
