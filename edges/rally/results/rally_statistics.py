"""Durations of iterations and atomic actions as Rally sums them up, exactly."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Levels of atomic actions that Rally distinguishes.
LEVELS = 3
#: Rally's name for a failure outside of any atomic action, after an action that succeeded.
NO_NAME = "<no-name-action>"


@dataclass(slots=True)
class _Merged:
    """All calls of the actions of one name in one iteration, added up; durations in seconds."""

    duration: float = 0.0
    count: int = 0
    failed: bool = False
    inside: dict[str, _Merged] = field(default_factory=dict)


class _Row:
    """A row of Rally's table: durations of an action in iterations with `count` calls of it."""

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self._count = count
        self._seconds = array("d")
        self._failed = 0
        self._inside: dict[str, _Row] = {}

    def add(self, one: _Merged) -> None:
        self._seconds.append(one.duration)
        self._failed += one.failed
        add_all(self._inside, one.inside)

    def shown(self, display_name: str) -> dict[str, Any]:
        seconds = sorted(self._seconds)
        ran = len(seconds)
        figures: dict[str, Any] = dict.fromkeys(
            ("min", "median", "90%ile", "95%ile", "max", "avg", "success"), "n/a"
        )
        if ran:
            figures = {
                "min": round(seconds[0], 3),
                "median": round(percentile(seconds, 0.5), 3),
                "90%ile": round(percentile(seconds, 0.9), 3),
                "95%ile": round(percentile(seconds, 0.95), 3),
                "max": round(seconds[-1], 3),
                "avg": round(sum(self._seconds) / ran, 3),
                "success": f"{100 * (ran - self._failed) / ran:.1f}%",
            }
        return {
            "name": self._name,
            "display_name": display_name,
            "count_per_iteration": self._count,
            "data": {"iteration_count": ran, **figures},
            "children": [row.shown(name) for name, row in self._inside.items()],
        }


def add_all(rows: dict[str, _Row], merged: Mapping[str, _Merged]) -> None:
    """Add the actions of one iteration to `rows`, by displayed name; creates missing rows.

    For each number of calls per iteration there is a separate row, such as "boot (x2)".
    """
    for name, one in merged.items():
        display_name = name if one.count == 1 else f"{name} (x{one.count})"
        if display_name not in rows:
            rows[display_name] = _Row(name, one.count)
        rows[display_name].add(one)


class Durations:
    """Rally's table of durations of iterations and actions of a workload.

    Exact, so it needs eight bytes of memory per iteration and action.
    """

    def __init__(self) -> None:
        self._rows: dict[str, _Row] = {}
        self._total = _Row("total", 1)
        self.count = 0
        self.failed = 0
        #: Of single iterations, pauses left out, seconds; None while there is none.
        self.least: float | None = None
        self.most: float | None = None
        #: When the first began and the last ended, seconds since 1970-01-01 UTC.
        self.begun: float | None = None
        self.ended: float | None = None

    def add(self, record: Mapping[str, Any]) -> None:
        """Add an iteration to the table and to the totals.

        `record`: in the form of `osbench.edges.rally.adapters.records`.
        """
        duration, idle = record["duration"], record["idle_duration"]
        began, failed = record["timestamp"], bool(record["error"])
        self.count += 1
        self.failed += failed
        self.least = duration if self.least is None else min(self.least, duration)
        self.most = duration if self.most is None else max(self.most, duration)
        self.begun = began if self.begun is None else min(self.begun, began)
        end = began + duration
        self.ended = end if self.ended is None else max(self.ended, end)
        merged = _merge(record["atomic_actions"])
        if merged and failed and not merged[next(reversed(merged))].failed:
            merged[NO_NAME] = _Merged(count=1, failed=True)
        add_all(self._rows, merged)
        parts = {"duration": duration, "idle_duration": idle}
        inside = {name: _Merged(value, 1, failed) for name, value in parts.items()}
        self._total.add(_Merged(duration + idle, 1, failed, inside))

    @property
    def load_s(self) -> float:
        """Return the seconds from the first start to the last end; 0 without iterations.

        As in Rally, an iteration's end is its start plus its duration, without pauses.
        """
        if self.begun is None or self.ended is None:
            return 0.0
        return max(0.0, self.ended - self.begun)

    def shown(self) -> dict[str, Any]:
        """Return the table in Rally's form: `total` is a row, `atomics` a list; rows are dicts."""
        rows = [row.shown(name) for name, row in self._rows.items()]
        return {"total": self._total.shown("total"), "atomics": rows}


def _merge(actions: Iterable[Mapping[str, Any]], level: int = 1) -> dict[str, _Merged]:
    found: dict[str, _Merged] = {}
    for action in actions:
        _merge_into(found, action, level)
    return found


def _merge_into(found: dict[str, _Merged], action: Mapping[str, Any], level: int) -> None:
    one = found.setdefault(action["name"], _Merged())
    one.duration += action["finished_at"] - action["started_at"]
    one.count += 1
    one.failed = one.failed or bool(action.get("failed"))
    if level < LEVELS:
        for inner in action["children"]:
            _merge_into(one.inside, inner, level + 1)


def percentile(ascending: Sequence[float], share: float) -> float:
    """Return a percentile of `ascending`, a sorted, non-empty list, by linear interpolation.

    `share`: the percentile as a fraction, 0 to 1.
    """
    place = (len(ascending) - 1) * share
    below, above = math.floor(place), math.ceil(place)
    if below == above:
        return ascending[below]
    return ascending[below] * (above - place) + ascending[above] * (place - below)
