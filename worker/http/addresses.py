"""URLs of requests: the form that is sent, the form shown in messages, and the host name."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit, urlunsplit

#: Status codes that send the client elsewhere.
REDIRECTS = frozenset({301, 302, 303, 307, 308})

#: Redirects in a row that are followed, as in requests.
REDIRECT_LIMIT = 30

# URLs that requests would not rewrite; one with "%" may need quoting
_PLAIN = re.compile(r"https?://[A-Za-z0-9!#$&'()*+,/:;=?@\[\]~._-]+")


def sent_url(url: str, params: Any = None) -> str:
    """Return the URL as `requests` would send it: quoted, with `params` added to its query.

    Raises ValueError (a class of `requests`) for an HTTP URL that is malformed or has no host, and
    for a text without a scheme. URLs of other schemes are returned unchanged.
    """
    if params is None and _PLAIN.fullmatch(url):
        return url
    # the coordinator uses this module, and prepares no request
    from requests.models import PreparedRequest  # noqa: PLC0415 - see above

    prepared = PreparedRequest()
    prepared.prepare_url(url, params)
    return str(prepared.url)


def host(url: str) -> str:
    """Return the host name of a URL in lower case; an IPv6 zone is decoded (RFC 6874)."""
    return zoned_host(urlsplit(url).hostname or "")


def zoned_host(host: str) -> str:
    """Return a host as a URL has it with the zone of an IPv6 address decoded."""
    return host.replace("%25", "%", 1) if ":" in host else host


def without_zone(host: str) -> str:
    """Return a host without the zone of an IPv6 address, which means nothing to other hosts."""
    return host.partition("%")[0] if ":" in host else host


def shown_url(url: str) -> str:
    """Return the URL for messages: scheme, host, port and path only."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
