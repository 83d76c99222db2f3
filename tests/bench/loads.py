"""What a load came to, by Rally's report of it: osbench writes the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Load:
    """One load and the requests that came to a server meanwhile."""

    iterations: int
    #: From the first start to the last end.
    duration_s: float
    #: Requests that came within that time.
    requests: int
    #: Percentiles of an atomic action.
    p50_ms: float
    p95_ms: float


def load_of(workload: Mapping[str, Any], action: str, requests_at: Iterable[float]) -> Load:
    """Sums a workload of a report up; `requests_at` are seconds of the wall clock."""
    rows = workload["data"]
    begin = min(row["timestamp"] for row in rows)
    end = max(row["timestamp"] + row["duration"] for row in rows)
    took_ms = sorted(
        (one["finished_at"] - one["started_at"]) * 1000
        for row in rows
        for one in row["atomic_actions"]
        if one["name"] == action
    )
    return Load(
        iterations=len(rows),
        duration_s=end - begin,
        requests=sum(begin <= at <= end for at in requests_at),
        p50_ms=_percentile(took_ms, 50),
        p95_ms=_percentile(took_ms, 95),
    )


def _percentile(ordered: list[float], percent: float) -> float:
    """The smallest value that so many percent do not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
