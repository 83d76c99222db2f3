"""Reads HAR files, browsers' recordings of HTTP requests (HTTP Archive 1.2)."""

from __future__ import annotations

import base64
import binascii
import errno
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit

from osbench.common.errors import UsageError
from osbench.common.files.named_files import read_named
from osbench.edges.recordings.recorded_parts import RecordedPart

#: Bytes of the largest file that is read.
LARGEST = 256 * 1024 * 1024
#: Characters of the largest response that is searched for values.
_LARGEST_RESPONSE = 2 * 1024 * 1024

_HALVES = re.compile("[\ud800-\udfff]")

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class RecordedRequest:
    """A request of a HAR file with its response; header names are in lower case."""

    method: str
    url: SplitResult
    #: Names in lower case, as all header names here.
    headers: Pairs
    #: Media type of the body, in lower case and without parameters; "" without a body.
    body_type: str
    body: str
    #: 0 if there was no response.
    status: int
    #: The file has requests only, as written by tools: it has no responses.
    is_written: bool
    response_headers: Pairs
    response_type: str
    #: The response if it is JSON, else None.
    document: Any
    #: The response if it is other text, such as a page, else "".
    page: str
    redirect: str
    #: The browser's purpose of the request: document, xhr, script; "" if unknown.
    resource: str
    cached: bool
    #: Seconds since the epoch; None if the file does not have it.
    started_at: float | None
    took_s: float
    #: Form fields where the file has them apart.
    fields: Pairs = field(default=())
    #: Parts of a multipart body where the file has them apart.
    parts: Sequence[RecordedPart] = field(default=())
    #: Bytes of the body as they were sent; 0 if the file does not have it.
    body_bytes: int = 0
    #: Cookies that the response set, and cookies of redirects before it.
    cookies: Pairs = field(default=())


def read_bounded(file: str) -> str:
    """Read a text file in UTF-8, with or without BOM, and return its text.

    Raises UsageError if it cannot be read, is not UTF-8, or has more than `LARGEST` bytes.
    """
    try:
        return read_named(file, LARGEST).decode("utf-8-sig")
    except OSError as error:
        too_large = error.errno == errno.EFBIG
        advice = "record less" if too_large else "give a file that can be read"
        raise UsageError(f"cannot read {file}: {error.strerror or error}; {advice}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8 text; save it in UTF-8") from None


def read_har(file: str) -> list[RecordedRequest]:
    """Return all requests of a HAR file in order of their start; of the file if a start is missing.

    Raises UsageError if the file cannot be read or is not a HAR file.
    """
    try:
        document = json.loads(read_bounded(file))
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{file} is not JSON, as HAR files are ({error}): export it again with the developer "
            "tools of a browser"
        ) from None
    log = document.get("log") if isinstance(document, Mapping) else None
    entries = log.get("entries") if isinstance(log, Mapping) else None
    if not isinstance(entries, list):
        raise UsageError(
            f"{file} is not a HAR file, which has a list log.entries: export one with the "
            "developer tools of a browser"
        )
    try:
        found = [_request(entry, f"log.entries[{at}]") for at, entry in enumerate(entries)]
    except _WrongPart as error:
        raise UsageError(
            f"{file}: {error}; export it again with the developer tools of a browser"
        ) from None
    if all(one.started_at is not None for one in found):
        found.sort(key=lambda one: one.started_at or 0.0)
    return found


class _WrongPart(ValueError):
    """Raised if a part of the HAR file has a wrong type; the message begins with its place."""


def _request(entry: Any, place: str) -> RecordedRequest:
    request = _part(entry, "request", dict, place)
    response = _part(entry, "response", dict, place, {})
    content = _part(response, "content", dict, f"{place}.response", {})
    posted = _part(request, "postData", dict, f"{place}.request", {})
    headers = tuple(_pairs(request, "headers", f"{place}.request"))
    response_headers = tuple(_pairs(response, "headers", f"{place}.response"))
    body_type = posted.get("mimeType") or dict(headers).get("content-type", "") if posted else ""
    text = _part(posted, "text", str, f"{place}.request.postData", "")
    fields = tuple(_pairs(posted, "params", f"{place}.request.postData", lower=False))
    where = _part(request, "url", str, f"{place}.request")
    try:
        url = urlsplit(where)
        url.port  # noqa: B018 - raises for a port that is none
    except ValueError as error:
        raise _WrongPart(f"{place}.request.url: {error}") from None
    status = response.get("status")
    status = status if isinstance(status, int) and 100 <= status <= 599 else 0
    response_type = _media_type(content.get("mimeType"))
    took = entry.get("time")
    resource = entry.get("_resourceType")
    return RecordedRequest(
        method=_part(request, "method", str, f"{place}.request").upper(),
        url=url,
        headers=headers,
        body_type=_media_type(body_type) if text or fields else "",
        body=text,
        fields=fields,
        parts=tuple(_parts(posted, f"{place}.request.postData")),
        body_bytes=_body_bytes(request, headers),
        status=status,
        is_written=not response,
        response_headers=response_headers,
        response_type=response_type,
        document=_document(content, response_type),
        page=_page(content, response_type),
        cookies=tuple(_cookies(response_headers)),
        redirect=str(response.get("redirectURL") or dict(response_headers).get("location", "")),
        resource=resource if isinstance(resource, str) else "",
        cached=isinstance(entry.get("_fromCache"), str),
        started_at=_timestamp(entry.get("startedDateTime")),
        took_s=_seconds(took),
    )


def _part(parent: Any, name: str, kind: type, place: str, default: Any = None) -> Any:
    """Return the entry `name` of the object `parent`; `default` if the entry is missing or null.

    `place`: of the object, for messages. Lone surrogates in a string are replaced. Raises
    _WrongPart if `parent` is not an object, the entry is not of type `kind`, or it is missing or
    null and `default` is None.
    """
    if not isinstance(parent, Mapping):
        raise _WrongPart(f"{place} is not an object")
    value = parent.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, kind):
        word = {"dict": "an object", "str": "a text", "list": "a list"}[kind.__name__]
        raise _WrongPart(f"{place}.{name} must be {word}")
    return _encodable(value) if isinstance(value, str) else value


def _pairs(parent: Any, name: str, place: str, *, lower: bool = True) -> Iterator[tuple[str, str]]:
    for one in _part(parent, name, list, place, []):
        named = _part(one, "name", str, f"{place}.{name}")
        value = one.get("value")
        yield named.lower() if lower else named, "" if value is None else _encodable(str(value))


def _parts(posted: Any, place: str) -> Iterator[RecordedPart]:
    for one in _part(posted, "params", list, place, []):
        value, filename, kind = (one.get(name) for name in ("value", "fileName", "contentType"))
        yield RecordedPart(
            name=_part(one, "name", str, f"{place}.params"),
            content="" if value is None else _encodable(str(value)),
            filename=_encodable(filename) if isinstance(filename, str) else None,
            kind=_encodable(kind) if isinstance(kind, str) and filename else "",
        )


def _media_type(value: Any) -> str:
    return value.partition(";")[0].strip().lower() if isinstance(value, str) else ""


def _document(content: Mapping[str, Any], media_type: str) -> Any:
    text = content.get("text")
    if not isinstance(text, str) or not is_json(media_type) or len(text) > _LARGEST_RESPONSE:
        return None
    try:
        if content.get("encoding") == "base64":
            return json.loads(base64.b64decode(text, validate=False))
        return json.loads(text)
    except (ValueError, binascii.Error, RecursionError):
        return None


def _page(content: Mapping[str, Any], media_type: str) -> str:
    text = content.get("text")
    if not isinstance(text, str) or not _is_page(media_type) or len(text) > _LARGEST_RESPONSE:
        return ""
    if content.get("encoding") == "base64":
        try:
            return base64.b64decode(text, validate=False).decode("utf-8", "replace")
        except (ValueError, binascii.Error):
            return ""
    return _encodable(text)


def _is_page(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type.endswith(("/xml", "+xml", "javascript"))


def _cookies(headers: Pairs) -> Iterator[tuple[str, str]]:
    """Yield name and value of each cookie that the Set-Cookie headers of a response set."""
    for name, value in headers:
        for line in value.splitlines() if name == "set-cookie" else ():
            cookie, _, found = line.partition(";")[0].partition("=")
            yield cookie.strip(), found.strip()


def _body_bytes(request: Mapping[str, Any], headers: Pairs) -> int:
    """Return the size of a request's body, bytes: Content-Length, else `bodySize`, else 0."""
    said = dict(headers).get("content-length", "")
    if said.isdecimal() and len(said) < 19:
        return int(said)
    size = request.get("bodySize")
    return size if type(size) is int and size > 0 else 0


def is_json(media_type: str) -> bool:
    """Return whether a media type is JSON or based on it, such as application/problem+json."""
    return media_type.endswith(("/json", "+json"))


def _seconds(milliseconds: Any) -> float:
    """Convert milliseconds to seconds; 0 for negative or infinite numbers and other values."""
    try:
        found = float(milliseconds) / 1000 if isinstance(milliseconds, int | float) else 0.0
    except OverflowError:
        return 0.0
    return max(0.0, found) if math.isfinite(found) else 0.0


def _encodable(text: str) -> str:
    """Return the text with U+FFFD for each lone surrogate, which no request can contain."""
    # not by "?", with which the query of a URL begins
    return _HALVES.sub("\ufffd", text)


def _timestamp(value: Any) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError):
        return None
