"""The table of times of a workload, as lines of text; no name in it is wrapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from osbench.coordinator.formatting import count, duration, plain
from osbench.coordinator.statistics.action_paths import NESTED

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
_DOUBT = "* too few iterations, or too short a load, to be sure of this percentile"
#: Least width of the column of names.
_NAMES = 13


def times_lines(workload: Mapping[str, Any], width: int) -> Iterator[Text]:
    """The lines; a name that leaves no room for its times in `width` has a line of its own."""
    rows = [(name, _cells(times)) for name, times in _rows(workload)]
    # the mark of doubt is outside the column, so that digits stay aligned
    heads = ["count", *(f"{head} " if doubt else head for head, _, doubt in _COLUMNS)]
    columns = zip(heads, *(cells for _, cells in rows), strict=True)
    widths = [max(map(cell_len, column)) for column in columns]
    room = max(_NAMES, width - sum(widths) - len(widths))
    names = max(_NAMES, *(cell_len(name) for name, _ in rows if cell_len(name) <= room))
    yield Text(_line("time", names, heads, widths), style="bold")
    for name, cells in rows:
        if cell_len(name) > names:
            yield Text(name)
        yield Text(_line("" if cell_len(name) > names else name, names, cells, widths))
    if _doubtful(workload):
        yield Text(_DOUBT, style="italic")


def _line(name: str, names: int, cells: Iterable[str], widths: Iterable[int]) -> str:
    parts = [f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)]
    return " ".join([f"{name}{' ' * (names - cell_len(name))}", *parts]).rstrip()


def _rows(workload: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What the table shows, in order; failures under what succeeded, if any."""
    latency = workload["latency"]
    yield from _state_rows("service time", latency["service"])
    yield from _state_rows("response time", latency["response"])
    yield "start lag", workload["start_lag"]
    for path, timings in workload["actions"].items():
        depth = path.count(NESTED)
        name = plain(path.split(NESTED)[-1], 80)
        yield from _state_rows(f"{'  ' * depth}{'> ' if depth else ''}{name}", timings)


def _state_rows(name: str, timings: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield name, timings["ok"]
    indent = " " * (len(name) - len(name.lstrip(" >")))
    for state in ("failed", "timed_out"):
        if timings[state]["count"]:
            yield f"{indent}  {state.replace('_', ' ')}", timings[state]


def _cells(times: Mapping[str, Any]) -> list[str]:
    return [count(times["count"]), *(_cell(times, key, doubt) for _, key, doubt in _COLUMNS)]


def _cell(times: Mapping[str, Any], key: str, is_percentile: bool) -> str:
    text = duration(times[key])
    if not is_percentile:
        return text
    doubtful = times["count"] and times["ci"][key] is None
    return f"{text}{'*' if doubtful else ' '}"


def _doubtful(workload: Mapping[str, Any]) -> bool:
    return any(
        times["count"] and times["ci"][key] is None
        for _, times in _rows(workload)
        for _, key, is_percentile in _COLUMNS
        if is_percentile
    )
