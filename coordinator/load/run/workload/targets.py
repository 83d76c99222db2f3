"""The addresses that the arguments of a workload name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from osbench.common.network.origins import is_http

#: Most addresses that are reported.
MOST = 5


def targets_of(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the first `MOST` different addresses of http URLs in strings of `arguments`.

    Strings at any depth count. An address is scheme, host and port, without credentials.
    """
    found: dict[str, None] = {}
    for text in _texts(arguments):
        address = _address(text)
        if address:
            found[address] = None
        if len(found) == MOST:
            break
    return tuple(found)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _address(text: str) -> str:
    """Return scheme, host and port of an http or https URL; "" for any other text."""
    if not is_http(text):
        return ""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if not host:
        return ""
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "")
