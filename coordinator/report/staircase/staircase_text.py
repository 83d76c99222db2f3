"""A staircase as lines of text: a table by load, the knee, and what the law says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from osbench.coordinator.formatting import count, duration, plain, three_digits

#: Steps that have a line each.
STEPS = 20
_TIMES = ("p50_s", "p95_s", "p99_s")


def staircase_lines(staircase: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a staircase, given as the summary has it."""
    steps = staircase["steps"]
    # a long staircase is told by steps that are evenly spread over it
    shown = [steps[at * len(steps) // STEPS] for at in range(STEPS)]
    shown = steps if len(steps) <= STEPS else shown
    named = any(step["name"] for step in steps)
    heads = ["arrivals/s" if staircase["is_open"] else "users", "ok/s", "in flight"]
    rows = [[*heads, *(name.removesuffix("_s") for name in _TIMES), "failed"]]
    rows += [_cells(step) for step in shown]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    notes = ["", *(_note(step, staircase, named) for step in shown)]
    for row, note in zip(rows, notes, strict=True):
        cells = "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        yield f"{cells}  {note}".rstrip()
    if len(steps) > len(shown):
        yield f"and {count(len(steps) - len(shown), 'more step')}"
    yield staircase["knee_sentence"]
    yield staircase["fit_sentence"]


def _cells(step: Mapping[str, Any]) -> list[str]:
    times = (step[name] for name in _TIMES)
    return [
        f"{step['load']:g}",
        three_digits(step["throughput"]),
        three_digits(step["concurrency"]),
        *("-" if value is None else duration(value) for value in times),
        count(step["failed"]),
    ]


def _note(step: Mapping[str, Any], staircase: Mapping[str, Any], named: bool) -> str:
    knee = staircase["knee"]
    parts = [plain(step["name"])] if named else []
    if knee is not None and step["load"] == knee["load"]:
        parts.append("<- knee")
    return " ".join(parts)
