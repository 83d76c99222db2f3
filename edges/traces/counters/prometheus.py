"""Queries a Prometheus, or another server with its HTTP API, version 1.

https://prometheus.io/docs/prometheus/latest/querying/api/ has the requests and responses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import requests

from osbench.common.errors import UsageError
from osbench.common.files.foreign_json import TooManyValuesError, read_json
from osbench.common.network.bounded_adapter import ResponseTooLargeError
from osbench.common.network.bounded_query import (
    BoundedQueries,
    QueryBounds,
    parse_header_list,
)
from osbench.common.network.causes import root_cause
from osbench.common.network.server_address import HTTP, server_address_fault
from osbench.common.secrets.masking import mask_text
from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.formatting import plain

#: Longest waits for a connection and for the next bytes, and for a whole response, seconds.
_CONNECT_S, _READ_S, _RESPONSE_S = 5.0, 15.0, 30.0
#: Most bytes of a response, decoded.
_RESPONSE_BYTES = 32 << 20
#: Most values of a response; a point has three.
_RESPONSE_VALUES = 3_000_000
#: Most characters of a response that messages repeat.
_TOLD = 200
#: Statuses of a query that is wrong, or takes too long: others may succeed.
_OF_THE_QUERY = frozenset((400, 422))
_REFUSED = frozenset((401, 403, 407))


class PrometheusAwayError(Exception):
    """The server cannot be queried at all: unreachable, slow, no access, or not a Prometheus."""


class QueryRefusedError(Exception):
    """The server refuses one query, or its result is unusable; other queries may succeed."""


@dataclass(frozen=True, kw_only=True)
class QueriedSeries:
    """A series in a response of Prometheus: its labels, and its points in the given order."""

    labels: Mapping[str, str]
    #: Times, seconds since 1970 by the clock of the server, and values; finite ones only.
    points: tuple[tuple[float, float], ...]


class Prometheus:
    """A Prometheus server, queried by HTTP.

    Methods raise PrometheusAwayError and QueryRefusedError. A request waits at most 5 s to
    connect, 15 s for the next bytes, and about 30 s for a response.
    """

    def __init__(self, url: str, headers: str = "") -> None:
        """Prepare queries; nothing is sent yet.

        `url` ends before /api. `headers` are name=value,name=value, percent-encoded. Raises
        UsageError if either is malformed.
        """
        #: The URL without secrets.
        self.shown = mask_url(url)
        self._base = _base(url)
        given = parse_header_list(headers, "[metrics] prometheus_headers")
        self._queries = BoundedQueries({"Accept": "application/json", **given})

    def now_s(self) -> float:
        """Return the server's time, seconds since 1970; raises only PrometheusAwayError."""
        try:
            now_s = float(self._ask("query", {"query": "time()"})["result"][1])
        except QueryRefusedError as error:
            # no other query could be placed in time
            raise PrometheusAwayError(str(error)) from None
        except (KeyError, IndexError, TypeError, ValueError):
            raise PrometheusAwayError(_STRANGER) from None
        if not math.isfinite(now_s):
            raise PrometheusAwayError(_STRANGER)
        return now_s

    def at(self, query: str) -> list[QueriedSeries]:
        """Return the series of a PromQL query at the present time.

        A series has one point, or all raw samples of the range if the query asks for a range.
        """
        return _series(self._ask("query", {"query": query}))

    def over(
        self, query: str, begin_at: float, end_at: float, step_s: float
    ) -> list[QueriedSeries]:
        """Return the series of a PromQL query: points `step_s` apart, from `begin_at` to `end_at`.

        `step_s` is in seconds, the times in seconds since 1970 by the server's clock. Unknown and
        infinite values have no point.
        """
        given = {
            "query": query,
            "start": f"{begin_at:.3f}",
            "end": f"{end_at:.3f}",
            "step": f"{step_s:.3f}",
        }
        return _series(self._ask("query_range", given))

    def _ask(self, path: str, given: Mapping[str, str]) -> Mapping[str, Any]:
        bounds = QueryBounds(
            connect_s=_CONNECT_S,
            read_s=_READ_S,
            response_s=_RESPONSE_S,
            response_bytes=_RESPONSE_BYTES,
        )
        try:
            url = f"{self._base}/api/v1/{path}?{urlencode(given)}"
            status, body = self._queries.get(url, bounds)
        except requests.Timeout:
            raise PrometheusAwayError("no response in time") from None
        except ResponseTooLargeError:
            raise QueryRefusedError(
                f"the response has more than {_RESPONSE_BYTES >> 20} MiB; narrow the query"
            ) from None
        except (requests.RequestException, OSError, ValueError) as error:
            raise PrometheusAwayError(plain(mask_text(root_cause(error)), _TOLD)) from None
        try:
            document = _document(body)
        except TooManyValuesError:
            raise QueryRefusedError(
                f"the response has more than {_RESPONSE_VALUES:,} values; narrow the query"
            ) from None
        if document is None:
            if status == 200:
                raise PrometheusAwayError(_STRANGER)
            text = body[: 4 * _TOLD].decode("utf-8", "replace").strip()
            raise PrometheusAwayError(_response_text(status, text))
        if status == 200 and isinstance(document.get("data"), Mapping):
            data: Mapping[str, Any] = document["data"]
            return data
        why = _response_text(status, str(document.get("error") or document.get("message") or ""))
        if status in _OF_THE_QUERY:
            raise QueryRefusedError(why)
        raise PrometheusAwayError(why)


_STRANGER = "the response is not from Prometheus's API"


def _base(url: str) -> str:
    """Return the URL of a server without final slashes.

    Raises UsageError if it is not an HTTP address, or has a query.
    """
    fault = server_address_fault(url, HTTP)
    if not fault and "?" not in url:
        return url.rstrip("/")
    raise UsageError(
        f"[metrics] prometheus = {mask_url(url)!r} is not an address of Prometheus"
        f"{f': it {fault}' if fault else ''}; write http://HOST:9090, or with https; a path before "
        "/api may follow"
    )


def _document(body: bytes) -> Mapping[str, Any] | None:
    """Return the JSON object in a response; None if it is not one, or has no `status`.

    Raises TooManyValuesError.
    """
    try:
        found = read_json(body, _RESPONSE_VALUES)
    except TooManyValuesError:
        raise
    except ValueError:
        return None
    return found if isinstance(found, Mapping) and "status" in found else None


def _response_text(status: int, text: str) -> str:
    refused = "; look at [metrics] prometheus_headers" if status in _REFUSED else ""
    return f"HTTP {status} {plain(mask_text(text), _TOLD)}".strip() + refused


def _series(data: Mapping[str, Any]) -> list[QueriedSeries]:
    """Return the series of a response of type vector or matrix, without native histograms.

    Raises QueryRefusedError for a scalar or string, PrometheusAwayError for a malformed result.
    """
    kind, found = data.get("resultType"), data.get("result")
    if kind not in ("vector", "matrix") or not isinstance(found, Sequence):
        raise QueryRefusedError(
            "the query has no series as its result; put a scalar into vector(...)"
        )
    try:
        return [
            QueriedSeries(
                labels={str(name): str(value) for name, value in one["metric"].items()},
                points=_points(one["values"] if kind == "matrix" else [one["value"]]),
            )
            for one in found
            # native histograms have other members
            if "histogram" not in one and "histograms" not in one
        ]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise PrometheusAwayError(_STRANGER) from None


def _points(pairs: Sequence[Any]) -> tuple[tuple[float, float], ...]:
    found = ((float(at), float(value)) for at, value in pairs)
    return tuple(pair for pair in found if all(map(math.isfinite, pair)))
