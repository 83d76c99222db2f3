"""Formats a staircase as lines of text: a table by load, the knee, and the limits by the law."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.coordinator.formatting import count, duration, plain, three_digits
from osbench.coordinator.report.staircase.staircase import Staircase, StaircaseStep

#: Steps that have a line each.
STEPS = 20
_TIMES = ("p50", "p95", "p99")
#: Longest name of a resource in a row.
_LABEL = 32


def staircase_lines(staircase: Staircase) -> Iterator[str]:
    """Yield the lines of a staircase: a table of at most `STEPS` rows, then its messages.

    Of more steps, rows are spread evenly over them.
    """
    steps = staircase.steps
    # a long staircase shows steps that are evenly spread over it
    spread = [steps[at * len(steps) // STEPS] for at in range(STEPS)]
    shown = spread if len(steps) > STEPS else list(steps)
    named = any(step.name for step in steps)
    heads = ["arrivals/s" if staircase.is_open else "users", "ok/s", "in flight"]
    rows = [[*heads, *_TIMES, "failed"]]
    rows += [_cells(step) for step in shown]
    if staircase.resources_sentence:
        for row, cell in zip(rows, ["fullest", *map(_fullest, shown)], strict=True):
            row.append(cell)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    notes = ["", *(_note(step, staircase, named) for step in shown)]
    for row, note in zip(rows, notes, strict=True):
        cells = "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        yield f"{cells}  {note}".rstrip()
    if len(steps) > len(shown):
        yield f"and {count(len(steps) - len(shown), 'more step')}"
    yield staircase.knee_sentence
    yield staircase.fit_sentence
    if staircase.resources_sentence:
        yield staircase.resources_sentence


def _cells(step: StaircaseStep) -> list[str]:
    times = (step.p50_s, step.p95_s, step.p99_s)
    return [
        f"{step.load:g}",
        three_digits(step.throughput),
        three_digits(step.concurrency),
        *("-" if value is None else duration(value) for value in times),
        count(step.failed),
    ]


def _fullest(step: StaircaseStep) -> str:
    if step.fullest is None:
        return "-"
    label, used = step.fullest
    return f"{plain(label, _LABEL)} {100 * used:.0f} %"


def _note(step: StaircaseStep, staircase: Staircase, named: bool) -> str:
    knee = staircase.knee
    parts = [plain(step.name)] if named else []
    if knee is not None and step.load == knee.load:
        parts.append("<- knee")
    return " ".join(parts)
