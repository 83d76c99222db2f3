"""Selects the attributes of spans to keep: by default none that may contain user data.

OSProfiler's events contain arguments, bound parameters, whole queries and error messages;
OpenTelemetry's attributes may, too. Only attributes listed here are kept by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from osbench.common.text.plain_paths import path, short_text
from osbench.edges.traces.sources.details import statement, title

#: Attribute for the detail of a span that osbench exports.
DETAIL = "osbench.detail"

#: Attributes of osbench's root spans and of OpenTelemetry that contain no user data.
_HARMLESS = frozenset(
    (
        *("run", "scenario", "iteration", "unfinished", "timed_out"),
        *("http.request.method", "http.method", "http.route", "http.scheme", "url.scheme"),
        *("http.response.status_code", "http.status_code", "network.protocol.name"),
        *("db.system", "db.system.name", "db.operation", "db.operation.name"),
        *("rpc.system", "rpc.service", "rpc.method", "messaging.system", "messaging.operation"),
        *("error.type", "exception.type"),
    )
)
_TEXT = 200


class SpanAttributes(NamedTuple):
    """Kept attributes of a span: detail, type of error ("" if none), and others by name."""

    detail: str = ""
    error: str = ""
    attributes: Mapping[str, Any] = {}


def of_osprofiler(info: Mapping[str, Any], *, everything: bool) -> SpanAttributes:
    """Return the kept parts of the merged `info` of OSProfiler's start and stop events.

    Kept are attributes that cannot have user data, with `everything` all but the host. The detail
    is an HTTP request, an SQL statement or a function, without values; else "".
    """
    error = str(info["etype"])[:_TEXT] if info.get("etype") else ""
    if everything:
        kept = {name: value for name, value in info.items() if name != "host"}
    else:
        kept = {
            name: value
            for name, value in info.items()
            if name in _HARMLESS and isinstance(value, (str, int, float))
        }
    # plain dicts, because they come from JSON; a check for Mapping takes ten times as long
    request = info.get("request") or info.get("requests")
    if isinstance(request, dict):
        if not everything:
            status = request.get("status_code")
            kept |= {"http.status_code": status} if isinstance(status, int) else {}
        method = str(request.get("method", ""))[:16]
        return SpanAttributes(f"{method} {path(str(request.get('path', '')))}".strip(), error, kept)
    db, function = info.get("db"), info.get("function")
    if isinstance(db, dict) and db.get("statement"):
        return SpanAttributes(statement(str(db["statement"])), error, kept)
    if isinstance(function, dict) and function.get("name"):
        return SpanAttributes(short_text(str(function["name"])), error, kept)
    return SpanAttributes("", error, kept)


def of_opentelemetry(attributes: Mapping[str, Any], *, everything: bool) -> SpanAttributes:
    """Return the kept parts of an OpenTelemetry span's attributes, by its semantic conventions.

    Kept are attributes that cannot have user data, with `everything` all. The detail is an SQL
    statement, an HTTP request, osbench's own detail or a called name, without values; else "".
    """

    def first(*names: str) -> str:
        return next((str(attributes[name]) for name in names if attributes.get(name)), "")

    kept = dict(attributes) if everything else _harmless(attributes)
    error = first("error.type", "exception.type")[:_TEXT]
    sql = first("db.query.text", "db.statement")
    if sql:
        return SpanAttributes(statement(sql), error, kept)
    target = first("http.route", "url.path", "http.target", "url.full", "http.url")
    if target:
        method = first("http.request.method", "http.method")[:16]
        return SpanAttributes(f"{method} {path(target)}".strip(), error, kept)
    # spans exported by osbench already have a detail
    called = first(DETAIL) or title(
        first("rpc.method", "messaging.destination.name", "code.function.name")
    )
    return SpanAttributes(short_text(called), error, kept)


def _harmless(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: attributes[name] for name in sorted(_HARMLESS & attributes.keys())}
