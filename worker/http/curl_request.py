"""A request for libcurl, made from the arguments of `requests.request`."""

from __future__ import annotations

import json as jsonlib
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode, urlsplit

from osbench.worker.http import addresses

#: Keyword arguments of `requests.request` that are supported here.
OPTIONS = frozenset({"headers", "data", "json", "params", "timeout", "verify", "allow_redirects"})

METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})

#: Headers, in lower case, that an iteration may add to those of the task.
OURS = frozenset(
    {"traceparent", "x-osbench-iteration", "x-osbench-run", "x-trace-hmac", "x-trace-info"}
)

#: Redirects after which a request keeps its method and body.
UNCHANGED = (HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT)

#: A header without a value stops curl from sending its default.
NO_CONTENT_TYPE = "Content-Type:"


def takes(method: str, url: str, options: Mapping[str, Any]) -> bool:
    """Whether curl handles a request as requests would.

    Other requests, and wrong arguments, are left to requests and its error messages.
    """
    verb = method.upper()
    if verb not in METHODS or not options.keys() <= OPTIONS or not _ordinary(url):
        return False
    data, timeout = options.get("data"), options.get("timeout")
    if verb == "HEAD" and (data or options.get("json") is not None):
        return False
    return (
        isinstance(data, str | bytes | Mapping | None)
        and (timeout is None or (isinstance(timeout, int | float) and timeout > 0))
        and isinstance(options.get("verify", True), bool | str)
        and _readable(options.get("headers") or {})
    )


def _ordinary(url: str) -> bool:
    # curl also supports file:// URLs
    http = url.startswith(("http://", "https://"))
    return http and not ("@" in url and "@" in urlsplit(url).netloc)


def _readable(headers: Any) -> bool:
    return isinstance(headers, Mapping) and all(
        isinstance(name, str) and name.isascii() and (not isinstance(v, str) or v.isascii())
        for name, v in headers.items()
    )


def snapshot(options: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that is not affected by later changes of `options`, for a `repeatable` request."""
    headers = options.get("headers")
    return {**options, "headers": dict(headers)} if headers else dict(options)


class CurlRequest:
    """Method, URL, header lines and body of a request; redirects change it."""

    __slots__ = ("_private", "body", "fields", "fixed", "repeatable", "url", "verb")

    def __init__(
        self,
        method: str,
        url: str,
        of_run: Sequence[str],
        own: Sequence[str],
        options: Mapping[str, Any],
    ) -> None:
        """`of_run` and `own` are header lines for the host of `url` only.

        Raises ValueError for a URL, a header or JSON data that cannot be sent.
        """
        self.verb = method.upper()
        self.url = addresses.sent(url, options.get("params"))
        body, content_type = _body(options.get("data"), options.get("json"))
        #: Bytes to send; None sends no Content-Length, as requests does with GET and HEAD.
        self.body = body or (None if self.verb in ("GET", "HEAD") else b"")
        headers = options.get("headers") or {}
        given = {name.lower() for name in headers}
        #: Header lines that do not depend on `own`.
        self.fixed = _lines(headers, given, content_type, body=self.body is not None)
        self.fixed += _ours(of_run, given)
        self.fields = [*_ours(own, given), *self.fixed]
        #: Whether equal options make an equal request except for `own`. Not for JSON and forms,
        #: because 1, 1.0 and True are equal but sent differently.
        self.repeatable = (
            given.isdisjoint(OURS)
            and not options.get("params")
            and options.get("json") is None
            and isinstance(options.get("data"), str | bytes | None)
        )
        self._private = {_name(line) for line in (*of_run, *own)}

    def redirect(self, code: int, location: str) -> None:
        """Turn into the request for `location`, by the rules of requests.

        Raises ValueError where `location` is not HTTP.
        """
        if urlsplit(location).scheme not in ("http", "https"):
            raise ValueError(
                f"{addresses.shown(self.url)} redirects to {addresses.shown(location)}: not HTTP"
            )
        dropped = {"cookie"}
        if code not in UNCHANGED:
            self.verb = _verb_after(code, self.verb)
            self.body = None
            dropped |= {"content-type", "content-length", "transfer-encoding"}
        if addresses.host(location) != addresses.host(self.url):
            dropped |= self._private
        if _origin_changes(self.url, location):
            dropped.add("authorization")
        self.fields = [f for f in self.fields if _name(f) not in dropped]
        if "content-type" in dropped:
            self.fields.append(NO_CONTENT_TYPE)
        self.url = location


def _verb_after(code: int, verb: str) -> str:
    if code == HTTPStatus.MOVED_PERMANENTLY:
        return "GET" if verb == "POST" else verb
    return verb if verb == "HEAD" else "GET"


def _body(data: Any, json: Any) -> tuple[bytes, str]:
    """Bytes to send and their content type, as requests makes them from `data` and `json`."""
    if data:
        if isinstance(data, bytes):
            return data, ""
        if isinstance(data, str):
            return data.encode(), ""
        several = ((k, v if isinstance(v, list | tuple) else [v]) for k, v in data.items())
        pairs = [(k, one) for k, v in several for one in v if one is not None]
        return urlencode(pairs).encode(), "application/x-www-form-urlencoded"
    if json is not None:
        return jsonlib.dumps(json, allow_nan=False).encode(), "application/json"
    return b"", ""


def _ours(lines: Sequence[str], given: set[str]) -> list[str]:
    return [line for line in lines if _name(line) not in given]


def _lines(
    headers: Mapping[str, Any], given: set[str], content_type: str, *, body: bool
) -> list[str]:
    """Header lines for curl: the user's override ours, which override curl's."""
    lines = [_line(name, value) for name, value in headers.items()]
    if "accept-encoding" not in given:
        # as requests does; the body is not decompressed here
        lines.append("Accept-Encoding: gzip, deflate")
    # without a body curl sends neither header, and each line costs time
    if body and "content-type" not in given:
        lines.append(f"Content-Type: {content_type}" if content_type else NO_CONTENT_TYPE)
    if body and "expect" not in given:
        lines.append("Expect:")
    return lines


def _line(name: str, value: Any) -> str:
    if value is None:
        return f"{name}:"
    if not isinstance(value, str):
        raise ValueError(f"header {name!r} must be a string, not {value!r}")
    if "\n" in value or "\r" in value or not name or set(name) & set(": \r\n"):
        raise ValueError(f"header {name!r} holds a character that no header may hold")
    return f"{name}: {value}" if value else f"{name};"


def _name(line: str) -> str:
    return re.split("[:;]", line, maxsplit=1)[0].lower()


def _origin_changes(old: str, new: str) -> bool:
    """Whether credentials for `old` must not go to `new`; an upgrade to TLS is no change."""
    before, after = urlsplit(old), urlsplit(new)
    if before.hostname != after.hostname:
        return True
    ports = {"http": 80, "https": 443}
    there = (before.scheme, before.port or ports[before.scheme])
    here = (after.scheme, after.port or ports[after.scheme])
    return there != here and (there, here) != (("http", 80), ("https", 443))
