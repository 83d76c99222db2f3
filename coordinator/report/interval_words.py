"""Intervals of percentiles in words: of one percentile, and why those of a run are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from osbench.coordinator.statistics.interval_doubt import Doubt, DoubtCause


def interval_note(found: Doubt | None) -> str | None:
    """Why percentiles have no interval or no upper bound, as a sentence without full stop."""
    if found is None:
        return None
    if found.cause is DoubtCause.SHORT:
        return "no intervals: iterations were due over less than 5 s"
    which = []
    if found.missing:
        which.append(f"no interval of {_names(found.missing)}")
    if found.unbounded:
        which.append(f"no upper bound of {_names(found.unbounded)}")
    if not which:
        return f"{found.cause.value}: percentiles depend on when it began and ended"
    advice = ""
    if found.bounded_by_s is not None:
        advice = f"; p{min(found.unbounded):g} takes a load of about {_length(found.bounded_by_s)}"
    return f"{' and '.join(which)}: {found.cause.value}{advice}"


def has_bounds(times: Mapping[str, Any], key: str) -> bool:
    """Whether a percentile of the summary has an interval with both bounds."""
    interval = times["ci"].get(key)
    return interval is not None and interval[1] is not None


def _length(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _names(percents: Sequence[float]) -> str:
    *first, last = (f"p{percent:g}" for percent in sorted(percents))
    return f"{', '.join(first)} and {last}" if first else last
