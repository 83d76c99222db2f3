"""Prints traces, rankings, explanations and comparisons as text on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from osbench.coordinator.formatting import count, duration, plain, spaced, three_digits
from osbench.coordinator.text_table import TextTable, figures, names, texts
from osbench.edges.traces.analysis.bands import Band, BandExample
from osbench.edges.traces.analysis.comparison import Comparison, signed_duration
from osbench.edges.traces.analysis.coverage import TraceCoverage
from osbench.edges.traces.analysis.explanation import Answer, Explanation
from osbench.edges.traces.analysis.notes import trace_notes
from osbench.edges.traces.analysis.ranking import Ranked
from osbench.edges.traces.analysis.sentences import percent
from osbench.edges.traces.analysis.slow_causes import Cause
from osbench.edges.traces.analysis.what_if import Potential
from osbench.edges.traces.model.clock_skew import Clocks
from osbench.edges.traces.model.span_keys import SpanKey
from osbench.edges.traces.model.spans import uuid_form
from osbench.edges.traces.output.span_rows import SpanRow
from osbench.edges.traces.output.what_if_text import show_best

#: Similar sibling spans that are shown; the rest is one line.
_ALIKE = 5
_CAUSES = 5
#: Limit on characters of a line; osbench's own lines are shorter.
_LINE = 10_000
#: Least share of the traces for a path to be shown: a few differ, for example for a new token.
_USUAL = 0.01


def show_trace(
    console: Console, heading: str, rows: Sequence[SpanRow], notes: Sequence[str]
) -> None:
    """Print a trace as a tree of `rows` with times, then `notes`.

    Spans on the critical path have a `*`. Of many similar rows in succession the first are printed,
    then one line for the others.
    """
    _line(console, heading, "bold")
    table = TextTable(figures("start", "time", "own", "on path"), texts(""))
    for row, repeated in _collapsed_rows(rows):
        name = Text(f"{'  ' * row.depth}{'* ' if row.on_path else '  '}")
        if repeated:
            name.append(f"... {repeated} more like it", style="italic")
            table.add_row("", duration(row.duration_s), duration(row.self_s), "", name)
            continue
        if row.waited_s:
            waiting = f"{'  ' * row.depth}* (waited for {plain(row.service) or plain(row.name)})"
            table.add_row("", "", "", duration(row.waited_s), Text(waiting, style="italic"))
        name.append(plain(row.label), style="bold" if row.on_path else "")
        if row.host:
            name.append(f"  @{plain(row.host)}", style="dim")
        for mark in (*row.marks, *(["after its caller's end"] if row.outlives else [])):
            name.append(f"  [{mark}]", style="magenta")
        if row.error:
            name.append(f"  {plain(row.error)}", style="red")
        table.add_row(
            duration(row.start_s),
            duration(row.duration_s),
            duration(row.self_s),
            duration(row.critical_s) if row.on_path else "",
            name,
        )
    console.print(table)
    for note in notes:
        _line(console, note)


def show_ranking(
    console: Console, rows: Sequence[Ranked], of: int, pauses: int = 0, paused_s: float = 0.0
) -> None:
    """Print trace points as a table, in the order given.

    `of` is the number of all trace points, with those not in `rows`. `pauses` and `paused_s` are
    number and seconds of the scenario's pauses, which are in none of the times.
    """
    columns = ("total", "own", "critical", "mean", "p50", "p95", "p99", "max", "count", "traces")
    table = TextTable(figures(*columns), texts("trace point"))
    for row in rows:
        times = (row.total_s, row.self_s, row.critical_s, row.mean_s)
        tails = (row.p50_s, row.p95_s, row.p99_s, row.max_s)
        table.add_row(
            *map(duration, (*times, *tails)),
            count(row.count),
            count(row.traces),
            plain(f"{row.service} {row.name}"),
        )
    console.print(table)
    if of > len(rows):
        _line(console, f"{count(of - len(rows), 'trace point')} not shown")
    if pauses:
        _line(
            console,
            f"pauses of the scenario: {count(pauses, 'pause')}, {spaced(paused_s)} in all,"
            " in none of the times above",
        )


def show_explanation(
    console: Console, found: Explanation, best: Mapping[str, Sequence[Potential]] | None = None
) -> None:
    """Print the main message, then the details of each group of traces.

    `best` has by name of a group the kinds of spans whose halving gains most.
    """
    _line(console, found.sentence, "bold")
    for number, answer in enumerate(found.answers):
        _line(console, "")
        if len(found.answers) > 1:
            # the first message is printed above
            _line(
                console,
                f"{answer.name}: {answer.sentence}" if number else answer.name,
                "bold",
            )
        _answer(console, answer)
        show_best(console, (best or {}).get(answer.name, ()))


def show_comparison(console: Console, found: Comparison) -> None:
    """Print how the traces of a group differ between two runs, or between two parts of one.

    Means, percentiles, and changes by key.
    """
    _line(console, f"{found.name}: {found.sentence}", "bold")
    table = TextTable(names(""), figures("before", "after"))
    table.add_row("traces", count(found.traces_before), count(found.traces_after))
    table.add_row("mean", duration(found.mean_before_s), duration(found.mean_after_s))
    for name in ("p50", "p95", "p99"):
        table.add_row(name, *map(duration, getattr(found, f"{name}_s")))
    console.print(table)
    if any(found.far):
        far = " and ".join(map(count, found.far))
        _line(console, f"Left out as outliers: {far} traces")
    if found.changes:
        table = TextTable(
            names(""), figures("added", "95 %", "before", "after", "calls"), texts("what")
        )
        for change in found.changes:
            if not (change.before_s or change.after_s):
                continue
            table.add_row(
                "*" if change.real else "",
                signed_duration(change.added_s),
                " to ".join(map(signed_duration, change.interval_s)),
                duration(change.before_s),
                duration(change.after_s),
                f"{_calls(change.calls_before)} -> {_calls(change.calls_after)}",
                _words(change.key),
            )
        console.print(table)
        _line(console, "* statistically significant, corrected for the number of all parts")


def show_notes(
    console: Console,
    coverage: TraceCoverage,
    clocks: Clocks,
    skipped: int,
    *,
    by_otlp: bool = False,
    queried: Sequence[str] = (),
) -> None:
    """Print notes on missing parts, clock offsets and unreadable entries of traces.

    Arguments are as for `trace_notes`.
    """
    for line in trace_notes(coverage, clocks, skipped, by_otlp=by_otlp, queried=queried):
        _line(console, line)


def _answer(console: Console, answer: Answer) -> None:
    failed = f", {count(answer.failed)} failed" if answer.failed else ""
    left = f", {count(answer.incomplete)} incomplete ones left out" if answer.incomplete else ""
    _line(
        console,
        f"{count(answer.traces, answer.unit)}{failed}{left}; p50 {duration(answer.p50_s)},"
        f" p95 {duration(answer.p95_s)}, p99 {duration(answer.p99_s)}",
    )
    for band in (*answer.bands, *([answer.failures] if answer.failures else [])):
        if band.enough:
            _band(console, band, answer.unit)
    if answer.far:
        _line(
            console,
            f"Left out as outliers: {count(answer.far, answer.unit)},"
            f" the slowest {_exemplars(answer.farthest)}",
        )
    if answer.watched and not answer.resources:
        watched = count(answer.watched, "counter")
        _line(console, f"None of {watched} of the system under test is clearly higher then")
    if answer.variance:
        parts = (
            f"{100 * part.share:.0f} % {_words(SpanKey(part.who, part.what, part.about))}"
            for part in answer.variance[:_CAUSES]
            if part.share >= 0.005
        )
        _line(console, f"Shares of all variance: {'; '.join(parts)}")
    usual = [one for one in answer.shapes if one.traces >= _USUAL * answer.traces]
    if len(usual) > 1:
        table = TextTable(
            figures("traces", "p50", "p99"),
            names("for example"),
            texts("path through the services"),
        )
        for shape in usual[:_CAUSES]:
            table.add_row(
                count(shape.traces),
                duration(shape.p50_s),
                duration(shape.p99_s),
                plain(uuid_form(shape.exemplar)),
                plain(" > ".join(shape.path), 300),
            )
        console.print(table)
    _line(console, f"Ordinary {answer.unit}: {_exemplars(answer.ordinary[:1])}")


def _band(console: Console, band: Band, unit: str) -> None:
    low, high = band.interval_s
    _line(
        console,
        f"{band.name}: {count(band.traces, unit)} of {duration(band.from_s)} to"
        f" {duration(band.to_s)}, {signed_duration(band.excess_s)}"
        f" (95 %: {signed_duration(low)} to {signed_duration(high)}) against the middle",
        "bold",
    )
    table = TextTable(
        names(""),
        figures("more", "share", "95 %", "seen in", "calls", "a call"),
        texts("host", "what"),
    )
    for cause in band.causes[:_CAUSES]:
        first, last = map(percent, cause.share_interval)
        table.add_row(
            "*" if cause.clear else "",
            signed_duration(cause.excess_s),
            f"{percent(cause.share)} %",
            f"{first} to {last} %",
            f"{100 * cause.seen_in:.0f} %",
            f"{_calls(cause.calls_base)} -> {_calls(cause.calls_slow)}",
            f"{_each(cause.base_s, cause.calls_base)} -> {_each(cause.slow_s, cause.calls_slow)}",
            ", ".join(f"{plain(host)} {100 * share:.0f} %" for host, share in cause.hosts[:2]),
            _words(cause.key),
        )
    console.print(table)
    for cause in band.named:
        _line(console, _cause_line(cause, band))
    _line(console, f"For example: {_exemplars(band.exemplars)}")


def _cause_line(cause: Cause, band: Band) -> str:
    which = f"{_words(cause.key)} " if len(band.named) > 1 else ""
    return (
        f"* {which}stands out: {signed_duration(cause.more_calls_s)} by more calls,"
        f" {signed_duration(cause.slower_calls_s)} by slower ones"
    )


def _exemplars(exemplars: Iterable[BandExample]) -> str:
    found = []
    for one in exemplars:
        if not one.trace_id:
            found.append(f"iteration {one.iteration} ({duration(one.duration_s)})")
            continue
        which = f"iteration {one.iteration}, " if one.iteration >= 0 else ""
        kept = "" if one.kept else ", not kept"
        found.append(f"{plain(uuid_form(one.trace_id))} ({which}{duration(one.duration_s)}{kept})")
    return "; ".join(found) or "none"


def _collapsed_rows(rows: Sequence[SpanRow]) -> Iterable[tuple[SpanRow, int]]:
    """Yield (row, 0) for each row; of many equal rows in succession only the first `_ALIKE`.

    Then one row has the summed durations and self times of the rest, and comes with their number.
    Rows are equal if depth, label and error are.
    """
    at = 0
    while at < len(rows):
        row = rows[at]
        end = at + 1
        while end < len(rows) and _same(rows[end], row):
            end += 1
        if end - at > _ALIKE + 1:
            for one in rows[at : at + _ALIKE]:
                yield one, 0
            rest = rows[at + _ALIKE : end]
            total = sum(one.duration_s for one in rest)
            own = sum(one.self_s for one in rest)
            yield _summed_row(rest[0], total, own), len(rest)
        else:
            for one in rows[at:end]:
                yield one, 0
        at = end


def _same(row: SpanRow, other: SpanRow) -> bool:
    return (row.depth, row.label, row.error) == (other.depth, other.label, other.error)


def _summed_row(row: SpanRow, duration_s: float, self_s: float) -> SpanRow:
    return replace(row, duration_s=duration_s, self_s=self_s)


def _words(key: SpanKey) -> str:
    return plain(str(key))


def _calls(number: float) -> str:
    return three_digits(number) if number else "0"


def _each(seconds: float, calls: float) -> str:
    return duration(seconds / calls) if calls else "-"


def _line(console: Console, text: str, style: str = "") -> None:
    # foreign text may look like markup or have numbers that rich would highlight
    console.print(Text(plain(text, _LINE), style=style), markup=False, highlight=False)
