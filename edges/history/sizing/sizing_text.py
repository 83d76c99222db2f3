"""Prints the result of `plan` for a task, from its JSON object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from osbench.coordinator.formatting import count, plain, size, spaced, three_digits
from osbench.coordinator.text_table import show
from osbench.edges.history.sizing.sizing_document import FEW

#: Levels of a load that have a row each, and characters of the line that draws them.
LEVELS = 20
LINE = 48
_BARS = " ▁▂▃▄▅▆▇█"


def render_sizing(document: Mapping[str, Any], console: Console) -> None:
    """Print the JSON object of `plan` to `console`: each workload, totals of the task, notes."""
    show(console, Text(f"Plan of {plain(document['task'])}", style="bold"))
    if document["calibration"]:
        show(console, Text(f"calibrated by run {document['calibration']}"))
    else:
        show(console, Text("not calibrated: cost and service time are as they were given"))
    for number, workload in enumerate(document["workloads"]):
        show(console, Text())
        _render_workload(number, workload, console)
    show(console, Text())
    for line in _total_lines(document):
        show(console, Text(line))
    for note in document["notes"]:
        show(console, Text(f"Note: {plain(note, 1000)}"))


def _render_workload(number: int, workload: Mapping[str, Any], console: Console) -> None:
    heading = Text(f"{number}. {plain(workload['name'])}", style="bold")
    heading.append(f"  {plain(workload['runner'])}", style="not bold")
    show(console, heading)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(min_width=9, no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in _lines(workload):
        grid.add_row(label, Text(text))
    show(console, Padding(grid, (0, 0, 0, 3), expand=False))
    if workload["levels"]:
        show(console, Padding(_levels(workload), (0, 0, 0, 3), expand=False))
    left = len(workload["levels"]) - LEVELS
    if left > 0:
        show(console, Text(f"   and {count(left, 'more level')}"))


def _lines(workload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    cost = workload["cost"]
    measured, cpu = "", f"{spaced(cost['cpu_s'])} of CPU per iteration"
    if cost["calibrated"]:
        cpu = f"at most {cpu}" if cost["cpu_at_most"] else cpu if cost["cpu_s"] else "not known"
        few = " (too few to rely on)" if cost["iterations"] < FEW else ""
        measured = (
            f", over {count(cost['iterations'], 'iteration')}{few}; a process without any takes "
            f"{cost['idle_cpu']:.1%} of a core"
        )
    yield "cost", f"{cpu}{measured}"
    crowd = cost["service_with_users_s"]
    yield (
        "service",
        f"{spaced(cost['service_s'])} on average at low load, p95 {spaced(cost['service_p95_s'])}"
        + (f"; {spaced(crowd)} with some more users" if crowd is not None else ""),
    )
    least, most = min(workload["shares"]), max(workload["shares"])
    if workload["open"]:
        share = f"{three_digits(most)} arrivals/s"
    else:
        share = (
            f"{least:g} to {most:g} virtual users" if least != most else f"{most:g} virtual users"
        )
    line = _load_line(workload["levels"])
    if line:
        yield "load", line
    processes = workload["processes"]
    why = "" if workload["limited_by"] == "nothing" else f", for its {workload['limited_by']}"
    yield (
        "workers",
        f"{count(processes, 'process', 'processes')}{why}; each has {share} at the peak",
    )


def _levels(workload: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    unit = "/s" if workload["open"] else " users"
    rate = "iterations/s" if workload["open"] else "iterations/s at most"
    for head in ("from", "to", "target", rate, "users", "users at most", "cores", "processes"):
        table.add_column(head, justify="right", no_wrap=True)
    for level in workload["levels"][:LEVELS]:
        begin, end = level["begin"], level["end"]
        asked = f"{end:g}{unit}" if begin == end else f"{begin:g} to {end:g}{unit}"
        table.add_row(
            f"{level['from_s']:.4g} s",
            "the end" if level["to_s"] is None else f"{level['to_s']:.4g} s",
            asked,
            three_digits(level["rate"]),
            three_digits(level["users"]),
            count(level["users_peak"]),
            three_digits(level["cores"]),
            count(level["processes"]),
        )
    return table


def _load_line(levels: Sequence[Mapping[str, Any]]) -> str:
    """Return a line that draws the load over time, one bar per time slot, with duration and peak.

    "" if the load does not change, is 0, or has a level with no known end.
    """
    ends = [level["to_s"] for level in levels]
    peak = max((max(level["begin"], level["end"]) for level in levels), default=0.0)
    flat = len({value for level in levels for value in (level["begin"], level["end"])}) == 1
    if flat or None in ends or not peak:
        return ""
    begin_s, end_s = levels[0]["from_s"], ends[-1]
    bars = []
    for place in range(LINE):
        at_s = begin_s + (place + 0.5) / LINE * (end_s - begin_s)
        level = next((one for one in levels if one["to_s"] >= at_s), levels[-1])
        passed = (at_s - level["from_s"]) / (level["to_s"] - level["from_s"])
        value = level["begin"] + (level["end"] - level["begin"]) * passed
        bars.append(_BARS[round(max(0.0, value) / peak * (len(_BARS) - 1))])
    return f"|{''.join(bars)}| {end_s - begin_s:.4g} s, {three_digits(peak)} at its peak"


def _total_lines(document: Mapping[str, Any]) -> Iterator[str]:
    needs, assumed = document["needs"], document["assumed"]
    each = assumed["cores"]
    yield (
        f"Workers      {count(needs['processes'], 'process', 'processes')}, each at most "
        f"{assumed['utilisation']:.0%} of a core; {count(assumed['virtual_users'])} threads each "
        f"([worker] virtual_users), or {count(assumed['coroutines'])} coroutines"
    )
    yield f"Hosts        {count(needs['hosts'])} with {count(each, 'core')} for workers"
    yield (
        f"A host       {count(needs['host_processes'], 'process', 'processes')}, "
        f"{size(needs['host_memory_bytes'])} of memory; {count(needs['process_files'])} of "
        f"{count(assumed['open_files'])} file descriptors a process; {_ports(needs, assumed)}"
    )
    redis = needs["redis_bytes_per_s"]
    yield (
        f"Redis        {size(round(redis))} of results per second; a coordinator that is "
        f"unreachable for 10 s leaves {size(round(10 * redis))} there"
    )
    yield f"Coordinator  {needs['coordinator_cpu']:.1%} of a core for results (computed)"


def _ports(needs: Mapping[str, Any], assumed: Mapping[str, Any]) -> str:
    if needs["host_ports"] is None:
        return "how many local ports is not known: osbench's HTTP client made no requests"
    return f"{count(needs['host_ports'])} of {count(assumed['ports'])} local ports"
