"""Durations of a workload in a report, in seconds: percentiles with 95 % intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from osbench.common.errors import WrongDocument

#: Bounds of an interval; an upper bound that is not known is None.
Bounds = tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class TimeFigures:
    """Durations of iterations or actions in one state, in seconds; None without samples."""

    count: int = 0
    min: float | None = None
    mean: float | None = None
    max: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p999: float | None = None
    #: The 95 % interval by percentile; None if there is none.
    ci: Mapping[str, Bounds | None] = field(default_factory=dict)
    #: Reason if percentiles have no interval or no upper bound.
    ci_note: str | None = None
    #: Blocks of time that the intervals are from, and seconds of one.
    blocks: int = 0
    block_s: float = 0.0

    def percentile(self, key: str) -> float | None:
        """Return the time of a field: p50 to p999, min, mean or max; None without samples."""
        found: float | None = _field_value(self, key)
        return found

    @property
    def sum_s(self) -> float:
        """Sum of all durations in seconds, from mean and count; 0 without samples."""
        return (self.mean or 0.0) * self.count


@dataclass(frozen=True, kw_only=True)
class ByState:
    """Durations of iterations or of one action, by the state in which they ended."""

    ok: TimeFigures = field(default_factory=TimeFigures)
    failed: TimeFigures = field(default_factory=TimeFigures)
    timed_out: TimeFigures = field(default_factory=TimeFigures)

    def state(self, name: str) -> TimeFigures:
        """Return the durations in the state `name`: "ok", "failed" or "timed_out"."""
        found: TimeFigures = _field_value(self, name)
        return found


@dataclass(frozen=True, kw_only=True)
class Latency:
    """Service and response times of iterations, by the state in which they ended."""

    service: ByState = field(default_factory=ByState)
    response: ByState = field(default_factory=ByState)

    def kind(self, name: str) -> ByState:
        """Return the times of the kind `name`: "service" or "response"."""
        found: ByState = _field_value(self, name)
        return found


@dataclass(frozen=True, kw_only=True)
class BriefTimes:
    """Durations in seconds, without intervals; times are None without samples.

    A percentile is None, too, if samples are too few for a 95 % interval.
    """

    count: int = 0
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None


def _field_value(figures: Any, name: str) -> Any:
    """Return the field `name`, which a summary may name; raise DamagedRun if there is none."""
    if name not in {field.name for field in fields(figures)}:
        raise WrongDocument(f"summary.json of a run is damaged: no times are called {name!r}")
    return getattr(figures, name)
