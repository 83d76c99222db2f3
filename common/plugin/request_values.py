"""Checks headers and URLs for values that an HTTP request cannot have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from osbench.common.secrets.url_masking import mask_url

#: A token of RFC 9110, section 5.6.2.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: What the value of a field cannot have (section 5.5): controls but for tab, and what is beyond
#: Latin-1, as which it is sent.
_NO_VALUE = re.compile("[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]")
_NO_HOST = re.compile(r"[\s\x00-\x1f\x7f<>\"\\^`{|}]")


def as_text(value: Any) -> str:
    """Return a value of a task or a response as a text of a URL, header or form: true, not True.

    Texts stay as they are; objects, lists and null are written as JSON.
    """
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool | Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def is_token(name: str) -> bool:
    """Return whether `name` may be the name of a header or an HTTP method (a token of RFC 9110)."""
    return _TOKEN.fullmatch(name) is not None


def header_faults(headers: Mapping[Any, Any]) -> Iterator[str]:
    """Yield a message per invalid header name or text value, not the value: perhaps a secret."""
    for name, value in headers.items():
        if not is_token(str(name)):
            yield f"{str(name)!r} is not a header name"
        found = _NO_VALUE.search(value) if isinstance(value, str) else None
        if found is not None:
            yield f"the header {name} holds {found.group()!r}, which no header may have"


def address_fault(url: str) -> str:
    """Return a message if an http or https URL has no valid host or port; "" if it has."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # reading it checks it
    except ValueError:
        return f"{mask_url(url)[:80]!r} is not a URL: its host or port cannot be read"
    if not parts.hostname or _NO_HOST.search(parts.hostname):
        return f"{mask_url(url)[:80]!r} is not a URL: its host is missing or invalid"
    return ""


def base_fault(url: str) -> str:
    """Return a message if a base URL is invalid, or has a query or fragment; else ""."""
    if "?" in url or "#" in url:
        return f"paths come after base, which has no query: {mask_url(url)[:80]!r}"
    return address_fault(url)
