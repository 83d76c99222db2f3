"""Prints predictions, and the spans whose halving gains most, as text on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from osbench.coordinator.formatting import count, duration, plain
from osbench.coordinator.text_table import TextTable, figures, names, texts
from osbench.edges.traces.analysis.what_if import Potential, Prediction, Repair

#: Names of changed spans that are printed.
_SPANS = 5


def show_predictions(console: Console, found: Sequence[Prediction]) -> None:
    """Print the predictions of `found`, one group of traces after another, with their limits."""
    for number, one in enumerate(found):
        if number:
            _line(console, "")
        _prediction(console, one)


def best_sentence(best: Sequence[Potential]) -> str:
    """Return text on the gain of halving the first of `best`; "" if there is none."""
    if not best:
        return ""
    first = best[0]
    tail, p95, p99 = (duration(max(one, 0.0)) for one in (first.tail_s, first.p95_s, first.p99_s))
    return (
        f"Best place to work: halving {plain(str(first), 200)} takes {tail} off the slowest 5 % on"
        f" average, {p95} off p95 and {p99} off p99."
    )


def show_best(console: Console, best: Sequence[Potential]) -> None:
    """Print text and a table: the gain of halving each of the kinds of spans in `best`.

    Prints nothing if there are none.
    """
    if not best:
        return
    _line(console, best_sentence(best))
    table = TextTable(
        figures("own time", "off p50", "off p95", "off p99", "off slowest 5 %"),
        texts("if its own time is halved"),
    )
    for one in best:
        gains = (one.time_s, one.p50_s, one.p95_s, one.p99_s, one.tail_s)
        table.add_row(*(duration(max(gain, 0.0)) for gain in gains), plain(str(one)))
    console.print(table)


def _prediction(console: Console, one: Prediction) -> None:
    _line(console, f"{one.name}: {one.sentence}", "bold")
    if one.spans:
        more = len(one.spans) - _SPANS
        tail = f"; and {count(more, 'other')}" if more > 0 else ""
        _line(
            console,
            f"Changed, in {count(one.with_spans, one.unit)}:"
            f" {'; '.join(plain(span, 200) for span in one.spans[:_SPANS])}{tail}",
        )
    if one.shifts and one.with_spans:
        table = TextTable(names(""), figures("now", "95 %", "then", "95 %", "gain", "95 %"))
        for shift in one.shifts:
            table.add_row(
                shift.name,
                duration(shift.before_s),
                _between(shift.before_interval),
                duration(shift.after_s),
                _between(shift.after_interval),
                duration(max(shift.gain_s, 0.0)),
                _between(shift.gain_interval),
            )
        console.print(table)
    for repair in one.repairs:
        _line(console, repair_sentence(repair))
    _line(console, one.caveat)


def repair_sentence(repair: Repair) -> str:
    """Return text on the part of the excess over an SLA limit that would be gone.

    If the limit is met, says so.
    """
    limit, shift = repair.limit, repair.shift
    said = f"SLA {limit.criterion}, {shift.name} of {limit.of} time at most {duration(limit.max_s)}"
    if repair.share is None or repair.share_interval is None:
        return f"{said}: met by these traces, {duration(shift.before_s)}"
    low, high = (f"{100 * one:.0f}" for one in repair.share_interval)
    return (
        f"{said}: {duration(shift.before_s)} -> {duration(shift.after_s)},"
        f" repairs {100 * repair.share:.0f} % (95 %: {low} to {high} %) of the excess"
    )


def _between(interval: tuple[float, float]) -> str:
    return " to ".join(duration(max(bound, 0.0)) for bound in interval)


def _line(console: Console, text: str, style: str = "") -> None:
    # foreign text may look like markup or have numbers that rich would highlight
    console.print(Text(plain(text, 10_000), style=style), markup=False, highlight=False)
