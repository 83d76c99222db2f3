"""A request to be sent, made from the arguments of `requests.request`."""

from __future__ import annotations

import copy
import json as jsonlib
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode, urlsplit

import requests.utils

from osbench.common.network.origins import is_http, origin_changes, secret_headers
from osbench.worker.http import addresses

#: Keyword arguments of `requests.request` that are supported here.
OPTIONS = frozenset({"headers", "data", "json", "params", "timeout", "verify", "allow_redirects"})

#: Headers, in lower case, that a request frames itself with; a user's own are left to requests.
_FRAMING = frozenset({"content-length", "te", "transfer-encoding", "upgrade"})
#: What a user's own header Connection may say, in lower case.
_CONNECTION = ("close", "keep-alive")

METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY"})

#: Headers, in lower case, that an iteration may add to the headers of the task.
OURS = frozenset(
    {"traceparent", "x-osbench-iteration", "x-osbench-run", "x-trace-hmac", "x-trace-info"}
)

#: Redirects after which every request keeps its method and body.
_UNCHANGED = (HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT)
#: Redirects after which all requests but POST keep them.
_MOVED = (HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.FOUND)
#: Headers, in lower case, of a body.
OF_BODY = frozenset({"content-type", "content-length", "transfer-encoding"})

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSAFE = re.compile(r"[\r\n\0]")

#: A header's name and value; None keeps a default from being sent.
Field = tuple[str, str | None]


def unable(
    method: str, url: str, options: Mapping[str, Any], known: frozenset[str] = OPTIONS
) -> str:
    """Return the first part of a request that only `requests` can send, such as "option auth".

    Returns "" if there is none. Wrong arguments count, too: `requests` has error messages for them.
    `known`: names of the options that the caller can send.
    """
    verb = method.upper()
    if verb not in METHODS:
        return f"method {verb}"
    unknown = sorted(options.keys() - known)
    if unknown:
        return f"option {unknown[0]}"
    data, timeout = options.get("data"), options.get("timeout")
    if not isinstance(data, str | bytes | Mapping | None) or (
        verb == "HEAD" and (data or options.get("json") is not None)
    ):
        return "its data"
    checks = {
        "its URL": _ordinary(url),
        "its timeout": timeout is None or (isinstance(timeout, int | float) and timeout > 0),
        "option verify": isinstance(options.get("verify", True), bool | str),
        "its headers": _readable(options.get("headers") or {}),
    }
    return next((name for name, fine in checks.items() if not fine), "")


def _ordinary(url: str) -> bool:
    if not is_http(url):
        return False
    try:
        parts = urlsplit(url)
        # reading the port checks it
        _ = parts.port
    except ValueError:
        return False
    return bool(parts.hostname) and "@" not in parts.netloc


def _readable(headers: Any) -> bool:
    return isinstance(headers, Mapping) and all(
        isinstance(name, str)
        and name.isascii()
        and name.lower() not in _FRAMING
        and (not isinstance(v, str) or v.isascii())
        and (name.lower() != "connection" or v is None or str(v).lower() in _CONNECTION)
        for name, v in headers.items()
    )


def snapshot(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `options` that later changes of `options` or its headers do not affect.

    Other values are shared: in a `repeatable` request they cannot change.
    """
    headers = options.get("headers")
    return {**options, "headers": dict(headers)} if headers else dict(options)


class OutgoingRequest:
    """Method, URL, header fields and body of a request; `redirect` changes it in place."""

    __slots__ = ("_private", "body", "fixed", "given", "own", "repeatable", "url", "verb")

    def __init__(
        self,
        method: str,
        url: str,
        of_run: Sequence[str],
        own: Sequence[str],
        options: Mapping[str, Any],
    ) -> None:
        """Make the request. `of_run`, `own`: header lines for the host of `url` only.

        They are of the run and of the iteration. Headers of the task (in `options`) win over them.
        Raises ValueError for a URL, a header or JSON data that cannot be sent.
        """
        self.verb = method.upper()
        self.url = addresses.sent_url(url, options.get("params"))
        body, content_type = _body(options.get("data"), options.get("json"))
        #: Bytes to send; None sends no Content-Length, as requests does with GET and HEAD.
        self.body = body or (None if self.verb in ("GET", "HEAD") else b"")
        headers = options.get("headers") or {}
        #: Names, in lower case, of the headers of the task.
        self.given = frozenset(name.lower() for name in headers)
        #: Fields that do not depend on `own`.
        self.fixed = _fields(headers, self.given, content_type)
        self.fixed += _ours(of_run, self.given)
        #: Fields of the iteration.
        self.own = _ours(own, self.given)
        #: Whether equal options make an equal request except for `own`. Not for JSON and forms,
        #: because 1, 1.0 and True are equal but sent differently.
        self.repeatable = (
            self.given.isdisjoint(OURS)
            and not options.get("params")
            and options.get("json") is None
            and isinstance(options.get("data"), str | bytes | None)
        )
        self._private = {line.split(":", 1)[0].lower() for line in (*of_run, *own)}

    @property
    def fields(self) -> list[Field]:
        """Return all header fields, the iteration's first; of one name the first field counts.

        A value None keeps a default header from being sent.
        """
        return [*self.own, *self.fixed]

    def with_own(self, own: Sequence[str]) -> OutgoingRequest:
        """Return a copy of the request with the header lines `own` instead of the iteration's."""
        request = copy.copy(self)
        request.own = _ours(own, self.given)
        request._private = self._private | {line.split(":", 1)[0].lower() for line in own}
        return request

    def redirect(self, code: int, location: str) -> None:
        """Change this request in place into the one for `location`.

        Status `code` decides whether method and body stay: see `keeps_body`. The cookie header is
        dropped; at another host also osbench's own headers, at another origin also secrets. Raises
        ValueError if `location` is not HTTP.
        """
        if urlsplit(location).scheme not in ("http", "https"):
            raise ValueError(
                f"{addresses.shown_url(self.url)} redirects to "
                f"{addresses.shown_url(location)}: not HTTP; correct the service, or "
                "set allow_redirects: false"
            )
        dropped = {"cookie"}
        if not keeps_body(code, self.verb):
            self.verb = "HEAD" if self.verb == "HEAD" else "GET"
            self.body = None
            dropped |= OF_BODY
        if addresses.host(location) != addresses.host(self.url):
            dropped |= self._private
        if origin_changes(self.url, location):
            # credentials of one host are not sent to another
            dropped |= {name.lower() for name in secret_headers(name for name, _ in self.fields)}
        self.fixed = [(name, v) for name, v in self.fields if name.lower() not in dropped]
        self.own = []
        self.url = location


def keeps_body(code: int, verb: str) -> bool:
    """Return whether a request keeps method and body after a redirect, as browsers do.

    All do after 307 and 308, all but POST after 301 and 302; 303 makes them a GET without a body,
    or a HEAD (https://fetch.spec.whatwg.org/#http-redirect-fetch).
    """
    return code in _UNCHANGED or (code in _MOVED and verb != "POST")


def _body(data: Any, json: Any) -> tuple[bytes, str]:
    """Return body and content type ("": none); raise ValueError for NaN or infinity in `json`."""
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


def _ours(lines: Sequence[str], given: frozenset[str]) -> list[Field]:
    pairs = (line.split(": ", 1) for line in lines)
    return [(name, value) for name, value in pairs if name.lower() not in given]


def _fields(headers: Mapping[str, Any], given: frozenset[str], content_type: str) -> list[Field]:
    fields = [_field(name, value) for name, value in headers.items()]
    if "accept-encoding" not in given:
        fields.append(("Accept-Encoding", requests.utils.DEFAULT_ACCEPT_ENCODING))
    if content_type and "content-type" not in given:
        fields.append(("Content-Type", content_type))
    return fields


def _field(name: str, value: Any) -> Field:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"header {name!r} must be a string, got {value!r}")
    if not _NAME.fullmatch(name) or (value and _UNSAFE.search(value)):
        raise ValueError(
            f"header {name!r}: name or value has a character that HTTP forbids; remove it"
        )
    return name, value
