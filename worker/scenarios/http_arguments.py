"""Checks of the arguments of HTTP requests in a task, before any request is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from osbench.common.plugin.request_values import header_faults, is_token
from osbench.common.plugin.signature import PLACEHOLDER, near
from osbench.common.secrets.url_masking import mask_url

_NUMBER = (int, float)
_SOME = (Mapping, list, str)

#: Keyword arguments of `requests.request` except URL and method: types, and their names.
_KEYWORDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "params": (_SOME, "an object, a list or a text"),
    "data": (_SOME, "a text, an object or a list"),
    "json": ((object,), ""),
    "headers": ((Mapping,), "an object of texts"),
    "cookies": ((Mapping,), "an object of texts"),
    "files": ((Mapping, list), "an object or a list"),
    "auth": ((list,), "a list of a user and a password"),
    "timeout": ((*_NUMBER, list), "seconds, or a list of two"),
    "allow_redirects": ((bool,), "true or false"),
    "proxies": ((Mapping,), "an object of texts"),
    "hooks": ((Mapping,), "an object"),
    "stream": ((bool,), "true or false"),
    "verify": ((bool, str), "true, false or a path"),
    "cert": ((str, list), "a path, or a list of two"),
}
_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (int, "a number"),
    (float, "a number"),
    (str, "a text"),
    (list, "a list"),
    (Mapping, "an object"),
)
_SCHEMES = ("http", "https")


def request_problems(args: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """Yield a message for each problem of the given arguments of a request.

    Missing arguments are not reported. Messages begin with `where` and the argument's name, and
    contain no values that may be secrets.
    """
    for name, value in args.items():
        place = f"{where}{name}"
        if name == "url":
            yield from _url(place, value)
        elif name == "method":
            if not isinstance(value, str) or not is_token(value):
                yield f"{place} must be a method such as GET, got {_kind(value)}"
        elif name == "status_code":
            if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                yield f"{place} must be an integer such as 200, got {_kind(value)}"
        elif name not in _KEYWORDS:
            known = ("url", "method", "status_code", *_KEYWORDS)
            listed = near(name, known) or f"; it takes {', '.join(known)}"
            yield f"{place} is not an argument of a request{listed}"
        elif not _fits(value, _KEYWORDS[name][0]):
            yield f"{place} must be {_KEYWORDS[name][1]}, got {_kind(value)}"
        elif name == "headers" and value:
            yield from _headers(place, value)


def _url(place: str, value: Any) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{place} must be a text, got {_kind(value)}"
        return
    for found in dict.fromkeys(PLACEHOLDER.findall(value)):
        yield (
            f"{place} holds {found}, which is not filled in: only {{iteration}} and {{run}} are,"
            " and columns of args_from are whole arguments"
        )
    filled = value.replace("{iteration}", "1").replace("{run}", "run")
    try:
        parts = urlsplit(filled)
        _ = parts.port  # reading it checks it
    except ValueError:
        yield f"{place} is not a URL: its host or port cannot be read"
        return
    if parts.scheme not in _SCHEMES or not parts.hostname:
        named = mask_url(value)[:80]
        yield f"{place} must begin with http:// or https:// and a host, got {named!r}"


def _headers(place: str, headers: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{place}: {fault}" for fault in header_faults(headers))
    for name, value in headers.items():
        # None keeps a default header from being sent
        if value is not None and not isinstance(value, str):
            yield f"{place}.{name} must be a text, got {_kind(value)}: put it in quotes"


def _fits(value: Any, types: tuple[type, ...]) -> bool:
    if value is None or object in types:
        return True
    # true is a number to Python
    return isinstance(value, types) and (not isinstance(value, bool) or bool in types)


def _kind(value: Any) -> str:
    """Return the type of a JSON value in words, since the value may be a secret."""
    return next((word for kind, word in _KINDS if isinstance(value, kind)), "null")
