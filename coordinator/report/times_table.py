"""Makes the table of a workload's times as lines of text, in which no name is wrapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from osbench.coordinator.formatting import count, duration, plain
from osbench.coordinator.report.action_order import SHOWN, by_time, naming_advice
from osbench.coordinator.report.findings.own_lateness import lateness_note
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.model.time_figures import ByState, TimeFigures
from osbench.coordinator.report.model.workload_parts import OwnLateness
from osbench.coordinator.results.statistics.action_paths import NESTED

#: Columns: heading, key, whether it is a percentile.
_COLUMNS = (
    ("min", "min", False),
    ("p50", "p50", True),
    ("p90", "p90", True),
    ("p95", "p95", True),
    ("p99", "p99", True),
    ("max", "max", False),
    ("mean", "mean", False),
)
#: Of percentiles without upper bound in a row that has others with both bounds.
_MARK = "*"
#: Of percentiles that hold lateness of the generator.
_LATE = "~"
_NOT_LATE = OwnLateness()
#: Rows of the short table.
_SHORT = 4
Row = tuple[str, TimeFigures]
#: Least width of the column of names.
_NAMES = 13


def times_lines(workload: WorkloadReport, width: int) -> Iterator[Text]:
    """Yield the lines of the table of times, and notes on it, for a terminal of `width` characters.

    A name that leaves no room for its times has a separate line. Signs mark percentiles without
    upper bound in rows with others, and percentiles that include lateness of the generator.
    """
    rows = _cell_rows(_rows(workload), workload, marked=True)
    yield from _table(rows, width)
    if left := max(0, len(workload.actions) - SHOWN):
        yield Text(f"and {count(left, 'action')} more, with less time in all")
    if advice := naming_advice(workload.actions):
        yield Text(advice, style="italic")
    notes = [(name, times.ci_note) for name, times in _rows(workload)]
    of, note = next((one for one in notes if one[1]), ("", None))
    if note:
        note = note if of == notes[0][0] else f"{of.strip()}: {note}"
        marked = any(cell.endswith(_MARK) for _, cells in rows for cell in cells)
        yield Text(f"{_MARK} {note}" if marked else note, style="italic")
    yield from _lateness_note(workload)


def short_times_lines(workload: WorkloadReport, width: int) -> Iterator[Text]:
    """Yield the lines of a table with at most `_SHORT` rows, for a terminal of `width` characters.

    Service times, response times if they differ by kind of load, failures, then the actions that
    took most time. The note on lateness of the generator follows if a percentile includes any.
    """
    yield from _table(_cell_rows(_short_rows(workload), workload, marked=False), width)
    if advice := naming_advice(workload.actions):
        yield Text(advice, style="italic")
    yield from _lateness_note(workload)


def _short_rows(workload: WorkloadReport) -> list[Row]:
    service, response = workload.latency.service, workload.latency.response
    rows = list(_state_rows("service time", service))
    # of a load that failed wholly, times of failures say more
    rows = [row for row in rows if row[1].count] or rows
    if workload.kind != "service":
        rows.append(("response time", response.ok))
    paths = by_time(workload.actions)
    # an outer action repeats the times of its parts
    outer = {path.rpartition(NESTED)[0] for path in paths}
    rows += [(plain(path, 80), workload.actions[path].ok) for path in paths if path not in outer]
    return rows[:_SHORT]


def _cell_rows(
    rows: Iterable[Row], workload: WorkloadReport, *, marked: bool
) -> list[tuple[str, list[str]]]:
    """Return names and cells of rows; `marked`: percentiles without upper bound have a sign."""
    own = workload.own_lateness
    late = {f"{own.of} time": own} if own else {}
    return [(name, _cells(times, late.get(name, _NOT_LATE), marked=marked)) for name, times in rows]


def _table(rows: Sequence[tuple[str, Sequence[str]]], width: int) -> Iterator[Text]:
    # the mark of an exception is outside the column, so that digits stay aligned
    heads = ["count", *(f"{head} " if marked else head for head, _, marked in _COLUMNS)]
    columns = zip(heads, *(cells for _, cells in rows), strict=True)
    widths = [max(map(cell_len, column)) for column in columns]
    room = max(_NAMES, width - sum(widths) - len(widths))
    names = max(_NAMES, *(cell_len(name) for name, _ in rows if cell_len(name) <= room))
    yield Text(_line("time", names, heads, widths), style="bold")
    for name, cells in rows:
        if cell_len(name) > names:
            yield Text(name)
        yield Text(_line("" if cell_len(name) > names else name, names, cells, widths))


def _lateness_note(workload: WorkloadReport) -> Iterator[Text]:
    if own_note := lateness_note(workload):
        yield Text(f"{_LATE} {own_note}", style="italic")


def _line(name: str, names: int, cells: Iterable[str], widths: Iterable[int]) -> str:
    parts = [f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)]
    return " ".join([f"{name}{' ' * (names - cell_len(name))}", *parts]).rstrip()


def _rows(workload: WorkloadReport) -> Iterator[Row]:
    """Yield (name, times) for each row in order: service, response, start lag, then actions.

    Times of failed and timed out iterations, if any, follow the times of successes. Of many
    actions, only the `SHOWN` that took most time.
    """
    yield from _state_rows("service time", workload.latency.service)
    yield from _state_rows("response time", workload.latency.response)
    yield "start lag", workload.start_lag
    paths = list(workload.actions)
    if len(paths) > SHOWN:
        paths = by_time(workload.actions)[:SHOWN]
    for path in paths:
        timings = workload.actions[path]
        depth = path.count(NESTED)
        name = plain(path.split(NESTED)[-1], 80)
        yield from _state_rows(f"{'  ' * depth}{'> ' if depth else ''}{name}", timings)


def _state_rows(name: str, timings: ByState) -> Iterator[Row]:
    yield name, timings.ok
    indent = " " * (len(name) - len(name.lstrip(" >")))
    for word, times in (("failed", timings.failed), ("timed out", timings.timed_out)):
        if times.count:
            yield f"{indent}  {word}", times


def _cells(times: TimeFigures, late: OwnLateness, *, marked: bool) -> list[str]:
    cells = [_cell(times, key, percent, late, marked=marked) for _, key, percent in _COLUMNS]
    return [count(times.count), *cells]


def _cell(
    times: TimeFigures, key: str, is_percentile: bool, late: OwnLateness, *, marked: bool
) -> str:
    text = duration(times.percentile(key))
    if not is_percentile:
        return text
    if late.percentile(key) is not None:
        return f"{text}{_LATE}"
    return f"{text}{_MARK if marked and _is_exception(times, key) else ' '}"


def _is_exception(times: TimeFigures, key: str) -> bool:
    if not times.count or _has_bounds(times, key):
        return False
    return any(_has_bounds(times, other) for _, other, percentile in _COLUMNS if percentile)


def _has_bounds(times: TimeFigures, key: str) -> bool:
    interval = times.ci.get(key)
    return interval is not None and interval[1] is not None
