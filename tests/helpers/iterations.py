"""Iterations with durations that seconds as floats and whole nanoseconds both hold exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from helpers.result_rows import row_of
from osbench.common.protocol.columns import Columns, decode_rows, encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

#: 1/512 s in nanoseconds.
TICK = 1_953_125
TICKS_A_SECOND = 512


@dataclass(frozen=True, kw_only=True)
class Action:
    """An atomic action with the actions within it."""

    name: str
    ticks: int
    failed: bool = False
    within: tuple[Action, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """What a test knows of an iteration; all times in ticks."""

    ticks: int
    outcome: Outcome = Outcome.OK
    idle: int = 0
    lag: int = 0
    actions: tuple[Action, ...] = ()


def ok(*ticks: int) -> list[Iteration]:
    """Successful iterations."""
    return [Iteration(ticks=one) for one in ticks]


def failed(*ticks: int) -> list[Iteration]:
    """Failed ones."""
    return [Iteration(ticks=one, outcome=Outcome.FAILED) for one in ticks]


def columns(iterations: Sequence[Iteration], first: int = 1) -> Columns:
    """Result rows of iterations, which start one after another."""
    names: dict[str, int] = {}
    rows = []
    due = 0
    for number, one in enumerate(iterations, first):
        started = due + one.lag * TICK
        ended = started + (one.ticks + one.idle) * TICK
        lines: list[int] = []
        for action in one.actions:
            _lines(action, -1, started, names, lines)
        failure = int(one.outcome == Outcome.FAILED)
        rows.append(
            row_of(number, one.outcome, due, started, ended, one.idle * TICK, failure, lines, None)
        )
        due = ended
    return decode_rows(encode_rows(rows, list(names), 0))


def _lines(
    action: Action, parent: int, started: int, names: dict[str, int], lines: list[int]
) -> None:
    at = len(lines) // 5
    name = names.setdefault(action.name, len(names))
    lines += [name, parent, started, started + action.ticks * TICK, int(action.failed)]
    for inner in action.within:
        _lines(inner, at, started, names, lines)


def statistics(*blocks: Columns) -> WorkloadStatistics:
    """The statistics of result rows."""
    made = WorkloadStatistics()
    for block in blocks:
        made.add(block, worker="w1")
    return made


def as_rally(iterations: Sequence[Iteration]) -> list[dict[str, Any]]:
    """The same iterations as Rally's runners hand them to its SLA classes."""
    return [
        {
            "duration": one.ticks / TICKS_A_SECOND,
            "idle_duration": one.idle / TICKS_A_SECOND,
            "timestamp": 0.0,
            "error": [] if one.outcome == Outcome.OK else ["Type", "message", "traceback"],
            "output": {"additive": [], "complete": []},
            "atomic_actions": [_as_rally(action) for action in one.actions],
        }
        for one in iterations
    ]


def _as_rally(action: Action) -> dict[str, Any]:
    return {
        "name": action.name,
        "started_at": 1.0,
        "finished_at": 1.0 + action.ticks / TICKS_A_SECOND,
        "children": [_as_rally(inner) for inner in action.within],
        **({"failed": True} if action.failed else {}),
    }
