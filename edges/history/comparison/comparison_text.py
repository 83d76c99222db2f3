"""Prints comparisons, spreads, staircases and trends of runs on a terminal."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from osbench.coordinator.formatting import count, duration, plain
from osbench.coordinator.report.staircase.staircase_text import staircase_lines
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.text_table import TextTable, figures, names, show, texts
from osbench.edges.history.comparison.compared_run import ComparedRun, read_compared_run
from osbench.edges.history.comparison.comparison_result import (
    ChangeRow,
    ChangeVerdict,
    ComparisonResult,
    WorkloadChanges,
)
from osbench.edges.history.comparison.findable_changes import signed_percent
from osbench.edges.history.comparison.load_series import RunsStaircase
from osbench.edges.history.comparison.run_series import common_keys, common_workloads, log_values
from osbench.edges.history.comparison.trend_check import TrendCheck
from osbench.edges.history.comparison.trends import RunsTrend

_STYLES = {
    ChangeVerdict.WORSE: "bold red",
    ChangeVerdict.MIXED: "bold red",
    ChangeVerdict.BETTER: "bold green",
    ChangeVerdict.EQUIVALENT: "green",
    ChangeVerdict.NO_EVIDENCE: "",
}
_BARS = "▁▂▃▄▅▆▇█"
#: Runs at most that are drawn on a line.
_DRAWN = 40


def show_comparison(result: ComparisonResult, console: Console) -> None:
    """Print a comparison: sides, conclusion, caveats, a table per workload, and remarks."""
    for word, name, runs in zip(
        ("before", "after"), result.names, (result.before, result.after), strict=True
    ):
        label = f"{plain(name)}: " if name else ""
        show(console, Text(f"{word:7}{label}{', '.join(runs)}"))
    show(console, Text())
    show(console, Text(plain(result.sentence, 1000), style=_STYLES[result.verdict] or "bold"))
    show(console, Text(f"Basis: {plain(result.grounds, 1000)}."))
    for caveat in result.caveats:
        show(console, Text(f"Warning: {plain(caveat.text, 1000)}.", style="magenta"))
    for workload in result.workloads:
        show(console, Text())
        _show_workload(workload, console)
    if result.remarks:
        show(console, Text())
    for remark in result.remarks:
        show(console, Text(f"{plain(remark, 1000)}.", style="italic"))


def _show_workload(workload: WorkloadChanges, console: Console) -> None:
    heading = Text(plain(workload.name), style="bold")
    heading.append(f"  {workload.verdict}", style=_STYLES[workload.verdict] or "not bold")
    show(console, heading)
    table = TextTable(
        texts("time of"), figures("", "before", "after", "change", "95 %"), names("verdict")
    )
    last = None
    for row in workload.rows:
        name = plain(row.action or "the iteration", 60) if row.action != last else ""
        last = row.action
        table.add_row(
            name,
            f"p{row.percent:g}",
            duration(row.before_s),
            duration(row.after_s),
            signed_percent(row.ratio),
            interval_text(row),
            Text(row.verdict, style=_STYLES[row.verdict]),
        )
    for fact in workload.facts:
        table.add_row(fact.name, "", fact.before, fact.after, "", "", "")
    show(console, Padding(table, (0, 0, 0, 3)))
    if workload.calls:
        show(console, Text(f"   changed calls: {plain(workload.calls, 1000)}"))


def interval_text(row: ChangeRow) -> str:
    """Return the 95 % interval of a change, such as "+8.0 % to +16 %"; "-" if there is none."""
    if row.interval is None:
        return "-"
    low, high = map(signed_percent, row.interval)
    return f"{low} to {high}"


def show_spread(runs: Sequence[ComparedRun], console: Console) -> None:
    """Print how much repeated runs of a task differ: a table of their percentiles.

    Each row has median, least and greatest value, and the standard deviation between runs in
    percent.
    """
    table = TextTable(
        texts("workload", "time of"), figures("", "median run", "least", "greatest", "spread")
    )
    for name in common_workloads(runs):
        for key in common_keys(runs, name):
            values = [math.exp(value) for value in log_values(runs, key)]
            logs = log_values(runs, key)
            spread = math.exp(statistics.stdev(logs)) - 1 if len(logs) > 1 else 0.0
            table.add_row(
                plain(name, 60),
                plain(key.action or "the iteration", 60),
                f"p{key.percent:g}",
                duration(statistics.median(values)),
                duration(min(values)),
                duration(max(values)),
                f"{100 * spread:.1f} %",
            )
    show(console, Text())
    show(console, Text(f"Run-to-run spread of {count(len(runs), 'run')}", style="bold"))
    for run in runs:
        show(console, Text(f"   {run.run_id}  exit code {run.exit_code}"))
    show(console, Padding(table, (0, 0, 0, 3)))
    if len(runs) > 1:
        show(console, Text("   spread: standard deviation between runs", style="italic"))


def show_spread_of(runs: Sequence[RunDirectory], console: Console) -> None:
    """Print how much repeated runs, given as directories, differ.

    Raises UsageError, DamagedRun.
    """
    show_spread([read_compared_run(run) for run in runs], console)


def show_staircase(found: RunsStaircase, console: Console) -> None:
    """Print the staircase (throughput and latency by load) of a workload over several runs."""
    heading = Text(f"{plain(found.task)}", style="bold")
    where = f", deployment {plain(found.deployment)}" if found.deployment else ""
    heading.append(f"  {plain(found.workload)}{where}, by load", style="not bold")
    show(console, heading)
    for line in staircase_lines(found.staircase):
        show(console, Padding(Text(line), (0, 0, 0, 3)))


def show_trend(trend: RunsTrend, console: Console) -> None:
    """Print the trend of runs of one fingerprint: conclusion, table of percentiles, changes."""
    heading = Text(f"{plain(trend.task)}", style="bold")
    where = f", deployment {plain(trend.deployment)}" if trend.deployment else ""
    heading.append(f"  fingerprint {trend.fingerprint}{where}", style="not bold")
    show(console, heading)
    changed = any(one.changes for one in trend.series)
    show(console, Text(plain(trend.sentence, 1000), style="bold red" if changed else "bold"))
    first, last = trend.runs[0], trend.runs[-1]
    show(
        console,
        Text(f"{count(len(trend.runs), 'run')}, {first.run_id} to {last.run_id}"),
    )
    table = TextTable(
        texts("workload", "time of"),
        figures("", "first", "last", "least", "greatest"),
        names("by run"),
    )
    for one in trend.series:
        known = [value for value in one.values_s if value is not None]
        if not known:
            continue
        table.add_row(
            plain(one.workload, 60),
            plain(one.action or "the iteration", 60),
            f"p{one.percent:g}",
            *(duration(value) for value in (known[0], known[-1], min(known), max(known))),
            _bar_line(one.values_s),
        )
    show(console, Padding(table, (0, 0, 0, 3)))
    for one in trend.series:
        for change in one.changes:
            text = (
                f"   {plain(one.label)}: {duration(change.before_s)} to"
                f" {duration(change.after_s)} ({signed_percent(change.ratio)}); see"
                f" osbench-coord compare {change.before_run} {change.after_run}"
            )
            show(console, Text(text, style="red" if change.ratio > 1 else "green"))


def show_check(check: TrendCheck, console: Console) -> None:
    """Print the conclusion on a trend's newest run, its worse percentiles, and changed calls."""
    style = "bold red" if check.worse else "bold"
    show(console, Text(plain(check.sentence, 1000), style=style))
    for one in check.worse:
        text = f"   {plain(one.label)}: {duration(one.before_s)} to {duration(one.now_s)}"
        show(console, Text(text, style="red"))
    if check.calls:
        show(console, Text(f"   changed calls: {plain(check.calls, 1000)}"))


def _bar_line(values: Sequence[float | None]) -> str:
    shown = values[-_DRAWN:]
    known = [value for value in shown if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if value is None else _BARS[round((value - low) * scale)] for value in shown)
