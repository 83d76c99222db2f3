"""A run as text: tables for a terminal, from the JSON object alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from osbench.common.outcomes import STATES
from osbench.common.plugin.plugin_names import RALLY
from osbench.coordinator.formatting import count, duration, plain, three_digits
from osbench.coordinator.report.chart_text import chart_text
from osbench.coordinator.report.staircase.staircase_text import staircase_lines
from osbench.coordinator.report.text_extras import (
    CHARTS,
    Line,
    bound_lines,
    check_lines,
    context_lines,
    core_lines,
    hook_lines,
    loop_lines,
    output_lines,
    outputs,
    plan_lines,
    request_lines,
    search_lines,
    stage_lines,
    user_lines,
)
from osbench.coordinator.report.times_table import times_lines

#: Counts in addition to the sum, and what one of them is.
_BESIDES = (
    ("reruns", "rerun"),
    ("late", "late result"),
    ("stale", "stale result"),
    ("duplicates", "duplicate block"),
    ("refused", "refused message"),
)
_SLOWEST = 3
_ERRORS = 5
_MORE_ON_ERRORS = (
    "tracebacks: osbench-coord results RUN --errors; printed and logged: osbench-coord logs RUN"
)
_HOSTS = 4
#: Lines of a log that a note shows.
_NOTE_LINES = 16
_LOST = 6


def render(summary: Mapping[str, Any], console: Console) -> None:
    """Print the JSON object of a run."""
    _show(console, Text(f"Run {summary['run_id']}  {plain(summary['task'])}", style="bold"))
    _show(console, Text(f"{summary['started_at']} to {summary['finished_at']}"))
    if summary["tags"]:
        _show(console, Text(f"tags: {', '.join(map(plain, summary['tags']))}"))
    for number, workload in enumerate(summary["workloads"]):
        _show(console, Text())
        _render_workload(workload, number, console)
    _show(console, Text())
    for note in summary["notes"]:
        _show(console, Text(f"Note: {_lines_of(note)}"))
    code = summary["exit_code"]
    style = "bold green" if code == 0 else "bold red"
    _show(console, Text(f"Exit code {code}: {summary['exit_meaning']}", style=style))


def _render_workload(workload: Mapping[str, Any], number: int, console: Console) -> None:
    heading = Text(f"{number}. {plain(workload['name'])}", style="bold")
    # runs of older releases do not say
    of = " (Rally's)" if workload.get("source") == RALLY else ""
    if workload.get("scenario", workload["name"]) != workload["name"]:
        heading.append(f"  {plain(workload['scenario'])}", style="not bold")
    heading.append(f"{of}  {plain(workload['runner']['type'])}", style="not bold")
    if workload["subtask"] not in ("", workload["name"]):
        heading.append(f"  ({plain(workload['subtask'])})", style="not bold")
    _show(console, heading)
    for line in _sum_lines(workload["accounting"]):
        _show(console, Text(f"   {line}"))
    # runs of older releases do not say
    unbegun = workload.get("error") or workload.get("not_begun")
    if unbegun:
        _show(console, Text(f"   not begun: {plain(unbegun, 1000)}", style="bold red"))
        _show_grid(console, context_lines(workload))
        return
    _show(console, Text())
    for text in times_lines(workload, console.width - 3):
        _show(console, Padding(text, (0, 0, 0, 3), expand=False))
    _show(console, Text())
    _show_grid(console, _lines(workload))
    for chart in outputs(workload)["additive"][:CHARTS]:
        _show(console, Text())
        _show(console, Padding(chart_text(chart), (0, 0, 0, 3), expand=False))


def _show_grid(console: Console, lines: Iterable[Line]) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(min_width=10, no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in lines:
        grid.add_row(label, text)
    _show(console, Padding(grid, (0, 0, 0, 3), expand=False))


def _lines_of(note: str) -> str:
    """A note in one line, but for one that has the last lines of a log."""
    first, *others = note.strip().splitlines() or [""]
    if not first.endswith("of its log:"):
        others = []
    # indented, so that no line of a log looks like one of the report
    return "\n   ".join(plain(line, 1000) for line in [first, *others[:_NOTE_LINES]])


def _show(console: Console, what: Any) -> None:
    # foreign text may look like markup or hold numbers that rich would paint
    console.print(what, markup=False, highlight=False)


def _sum_lines(accounting: Mapping[str, Any]) -> tuple[str, str]:
    """The states under their names, as a sum."""
    names = ("planned", *STATES)
    numbers = [count(accounting[name]) for name in names]
    heads = [name.replace("_", " ") for name in names]
    widths = [max(len(a), len(b)) for a, b in zip(heads, numbers, strict=True)]
    adds_up = sum(accounting[state] for state in STATES) == accounting["planned"]
    signs = ["=" if adds_up else "!=", *["+"] * (len(STATES) - 1)]
    head = "".join(
        f"{text:>{width}}{'':{len(sign) + 2}}"
        for text, width, sign in zip(heads, widths, [*signs, ""], strict=True)
    )
    body = "".join(
        f"{text:>{width}} {sign} "
        for text, width, sign in zip(numbers, widths, [*signs, ""], strict=True)
    )
    return head.rstrip(), body.rstrip()


def _lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    accounting = workload["accounting"]
    if accounting["dropped"]:
        reasons = (f"{count(n)} {reason}" for reason, n in accounting["drops"].items() if n)
        yield "dropped", Text(", ".join(reasons))
    counted = [count(accounting[name], noun) for name, noun in _BESIDES if accounting[name]]
    if counted:
        yield "besides", Text(", ".join(counted))
    yield "load", Text(_load(workload["offered"]))
    yield from bound_lines(workload)
    if workload["warmup"]["seconds"]:
        left_out, seconds = (workload["warmup"][key] for key in ("left_out", "seconds"))
        yield (
            "warm-up",
            Text(
                f"{count(left_out, 'iteration')} of the first {duration(seconds)} stand in the"
                " sum above and in nothing else"
            ),
        )
    throughput = workload["throughput"]
    if throughput["ok_per_s"] is not None:
        rate, span = three_digits(throughput["ok_per_s"]), duration(throughput["span_s"])
        yield "throughput", Text(f"{rate} ok/s over {span}")
    yield from search_lines(workload)
    yield from stage_lines(workload)
    yield from plan_lines(workload)
    # runs of older releases, and loads of one level, have none
    steps = staircase_lines(workload["staircase"]) if workload.get("staircase") else ()
    yield from zip(chain(["staircase"], repeat("")), map(Text, steps), strict=False)
    yield from request_lines(workload)
    yield from _tracing_lines(workload)
    yield from _error_lines(workload)
    label = "SLA"
    for verdict in workload["sla"]:
        passed = verdict["success"]
        text = Text("passed" if passed else "FAILED", style="green" if passed else "bold red")
        text.append(
            f"  {plain(verdict['criterion'])}: {plain(verdict['detail'], 500)}", style="default"
        )
        yield label, text
        label = ""
    yield from hook_lines(workload)
    yield from context_lines(workload)
    yield from output_lines(workload)
    yield from loop_lines(workload)
    yield from user_lines(workload)
    yield from check_lines(workload)
    if workload["workers"]:
        yield "workers", Text(_workers(workload["workers"]))
        yield from core_lines(workload["workers"])
    lost = [worker for worker in workload["workers"] if worker.get("lost")]
    if lost:
        yield "", Text(_given_up(lost), style="bold red")


def _load(offered: Mapping[str, Any]) -> str:
    parts = []
    if offered["concurrency"] is not None:
        users = count(offered["concurrency"], "virtual user")
        held = offered["concurrency_held"]
        parts.append(f"{users} asked for" + ("" if held is None else f", held {100 * held:.1f} %"))
    if offered["rate_planned"] is not None:
        started = offered["rate_offered"]
        text = f"{three_digits(offered['rate_planned'])}/s planned"
        parts.append(text + ("" if started is None else f", {three_digits(started)}/s started"))
    parts.append(f"{duration(offered['duration_s'])} long")
    if offered["cut_short"]:
        parts.append(f"cut short: {plain(offered['cut_short'])}")
    return "; ".join(parts)


def _tracing_lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    tracing = workload["tracing"]
    text = plain(tracing["state"])
    if tracing["traced"]:
        text += f", {count(tracing['traced'], 'iteration')} traced"
        reason = tracing.get("rate_reason")
        if reason:
            text += f" (sample rate {tracing['sample_rate']:.3g}: {plain(reason)})"
        elif tracing["sample_rate"] < 1:
            text += f" (sample rate {tracing['sample_rate']:g})"
        text += f"; {count(tracing['spans_written'], 'span')} written"
        text += f", {count(tracing['spans_dropped'])} dropped"
    yield "tracing", Text(text)
    # runs of older releases do not say
    if tracing.get("cost"):
        yield "", Text(_tracing_cost(tracing["cost"]))
    elif tracing["traced"]:
        why = ": all iterations were traced" if tracing["sample_rate"] == 1 else ""
        yield "", Text(f"what it costs is not known{why}")
    if tracing.get("explanation"):
        yield "why slow", Text(plain(tracing["explanation"], 1000))
    label = "slowest"
    for exemplar in workload["exemplars"][:_SLOWEST]:
        outcome = exemplar["outcome"].replace("_", " ")
        yield (
            label,
            Text(
                f"{duration(exemplar['service_s'])}  {exemplar['trace_id']}"
                f"  iteration {exemplar['iteration']}" + ("" if outcome == "ok" else f", {outcome}")
            ),
        )
        label = ""


def _tracing_cost(cost: Mapping[str, Any]) -> str:
    parts = []
    for name, word in (("p50", "the median"), ("p99", "p99")):
        added, low, high = (cost[name][key] for key in ("added_s", "low_s", "high_s"))
        text = f"{_signed(added)} at {word}"
        if low is None:
            text += " (so few give no interval)"
        else:
            text += f" (95 %: {_signed(low)} to {_signed(high)})"
        parts.append(text)
    return f"traced iterations took {', '.join(parts)}, against {count(cost['untraced'])} others"


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{duration(abs(seconds))}"


def _error_lines(workload: Mapping[str, Any]) -> Iterable[Line]:
    label = "errors"
    for error in workload["errors"][:_ERRORS]:
        yield (
            label,
            Text(
                f"{count(error['count'])} x {plain(error['type'])}: {plain(error['message'])}"
                f" (first in iteration {error['first_iteration']})"
            ),
        )
        label = ""
    rest = sum(error["count"] for error in workload["errors"][_ERRORS:])
    rest += workload["other_errors"]
    if rest:
        yield label, Text(f"{count(rest)} x other errors")
        label = ""
    if not label:
        yield label, Text(_MORE_ON_ERRORS, style="dim")


def _workers(workers: Iterable[Mapping[str, Any]]) -> str:
    hosts = Counter(plain(str(worker.get("host", "?"))) for worker in workers)
    if len(hosts) > _HOSTS:
        return f"{count(hosts.total(), 'process', 'processes')} on {len(hosts)} hosts"
    return ", ".join(f"{count(n, 'process', 'processes')} on {host}" for host, n in hosts.items())


def _given_up(lost: Sequence[Mapping[str, Any]]) -> str:
    named = ", ".join(plain(f"{one['host']}:{one['pid']}") for one in lost[:_LOST])
    more = f" and {len(lost) - _LOST} others" if len(lost) > _LOST else ""
    return f"{count(len(lost))} of them lost: {named}{more}"
