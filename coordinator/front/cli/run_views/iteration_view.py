"""The output of `results` with `--iteration`, `--errors` and `--outputs`.

All that is known of one iteration; the most frequent errors, with tracebacks; charts, aggregated or
of one iteration. Errors of virtual users outside of iterations have no traceback, and are not in
the JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from textwrap import indent
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from osbench.common.errors import UsageError
from osbench.common.protocol.iteration_outputs import outputs
from osbench.common.text.escaping import escaped
from osbench.coordinator.formatting import count, plain, size, spaced, timestamp
from osbench.coordinator.front.cli.base import console, echo_json
from osbench.coordinator.report.chart_text import chart_text
from osbench.coordinator.report.iteration_record import iteration_records
from osbench.coordinator.report.model import json_codec
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.report.model.workload_parts import ErrorReport, UserError
from osbench.coordinator.report.statements.iteration_statements import output_statements
from osbench.coordinator.results.accounting.block_contents import counted_rows
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import summary_of

_INDENT = 3
_LABEL = 10
#: Replaces an iteration number: charts aggregated over all iterations.
SUMMED = 0
#: Rows of a chart that are printed.
ROWS = 1000


def show_one(directory: RunDirectory, number: int, *, as_json: bool) -> None:
    """Print iteration `number` of each workload that has it, as text or JSON.

    Raises UsageError if no workload has reported it.
    """
    summary = summary_of(directory)
    report = None if summary is None else Report.from_json(summary)
    found = iteration_records(directory, number, report)
    if not found:
        raise UsageError(
            f"no workload of run {directory.path.name} has reported an iteration {number}; "
            f"`osbench-coord results {directory.path.name} --csv` lists all iterations"
        )
    if as_json:
        echo_json({"iterations": found}, indent=1, default=str)
        return
    terminal = console()
    for one in found:
        print_iteration(one, terminal)


def print_iteration(one: Mapping[str, Any], terminal: Console) -> None:
    """Print one iteration, given as a mapping that `iteration_records` returns."""
    heading = Text(f"{one['workload']}. {plain(one['name'])}", style="bold")
    heading.append(f"  iteration {count(one['iteration'])}: ")
    heading.append(_ending(one), style="green" if one["outcome"] == "ok" else "red")
    terminal.print(heading, markup=False, highlight=False)
    for label, text in _lines(one):
        line = Text(f"{'':{_INDENT}}{label:<{_LABEL}}{text}")
        terminal.print(line, markup=False, highlight=False, soft_wrap=True)
    if one["error"] is not None:
        terminal.print()
        print_traceback(one["error"]["traceback"], terminal)
    for entry in one["log"]:
        text = escaped(entry["text"].rstrip(), breaks=True).replace("\n", "\n      ")
        line = Text(f"\n{'':{_INDENT}}{timestamp(entry['at'])} {plain(entry['source'])}: {text}")
        terminal.print(line, markup=False, highlight=False, soft_wrap=True, end="")
    if one["log"]:
        terminal.print()
    made = [*one["outputs"]["additive"], *one["outputs"]["complete"]]
    if made:
        print_charts(terminal, made)
    else:
        terminal.print()


def print_traceback(traceback: str, terminal: Console) -> None:
    """Print a traceback, indented; its lines are not folded, so that they can be copied."""
    text = Text(indent(escaped(traceback.rstrip("\n"), breaks=True), " " * _INDENT))
    terminal.print(text, markup=False, highlight=False, soft_wrap=True)


def _ending(one: Mapping[str, Any]) -> str:
    outcome = str(one["outcome"]).replace("_", " ")
    if one["service_s"] is None:
        return outcome
    return f"{outcome} after {spaced(one['service_s'])}"


def _lines(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if one["started_s"] is not None:
        at = "" if one["started_at"] is None else f"{timestamp(one['started_at'])}, "
        late = spaced(max(0.0, one["start_lag_s"]))
        warm = ", in the warm-up" if one["warmup"] else ""
        yield "started", f"{at}{one['started_s']:.3f} s after the load began, {late} late{warm}"
    elif one["due_s"] is not None:
        yield "scheduled", f"{one['due_s']:.3f} s after the load began"
    if one["worker"]:
        yield "worker", plain(one["worker"])
    if one["trace_id"]:
        yield "trace", f"osbench-coord trace show {one['trace_id']}"
    if one["error"] is not None:
        yield "error", f"{plain(one['error']['type'])}: {plain(one['error']['message'], 1000)}"
    yield from _labelled_lines("actions", _action_lines(one["actions"]))
    yield from _labelled_lines("requests", _request_lines(one["requests"], one["actions"]))


def _labelled_lines(label: str, lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        yield label, line
        label = ""


def _action_lines(actions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    depths: list[int] = []
    for action in actions:
        parent = action["parent"]
        # a parent began before its parts, so that it stands before them
        depth = depths[parent] + 1 if parent is not None and parent < len(depths) else 0
        depths.append(depth)
        state = "" if action["state"] == "ok" else f", {action['state']}"
        begun = f"after {spaced(max(0.0, action['begins_s']))}"
        yield f"{'  ' * depth}{plain(action['name'])}  {spaced(action['lasts_s'])}{state}, {begun}"


def _request_lines(
    requests: Sequence[Mapping[str, Any]], actions: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    for request in requests:
        place = request["action"]
        within = "" if place is None else f"in {plain(actions[place]['name'])}: "
        false = "; the body is false" if request["false_body"] else ""
        if request["phases_s"] is None:
            yield f"{within}not measured ({plain(request['client'])}){false}"
            continue
        phases = [f"{name} {spaced(s)}" for name, s in request["phases_s"].items() if s]
        sent, received = size(request["sent_bytes"]), size(request["received_bytes"])
        twice = " twice" if request["sent_twice"] else ""
        yield f"{within}{', '.join(phases)}; {sent} sent{twice}, {received} received{false}"


def show_errors(report: Report, *, as_json: bool) -> None:
    """Print the errors of all workloads with tracebacks; errors of users only if not `as_json`."""
    if as_json:
        found = [
            {
                "workload": number,
                "name": one.name,
                "errors": json_codec.to_json(one.errors),
                "other_errors": one.other_errors,
            }
            for number, one in enumerate(report.workloads)
        ]
        echo_json({"errors": found}, indent=1)
        return
    terminal = console()
    for number, one in enumerate(report.workloads):
        terminal.print(Text(f"{number}. {plain(one.name)}", style="bold"), highlight=False)
        for error in one.errors:
            _print_error(error, terminal)
        lives = one.users.errors if one.users else ()
        for life in lives:
            _print_life(life, terminal)
        rest = one.other_errors
        if rest:
            terminal.print(f"\n   {count(rest)} x errors that are not described", highlight=False)
        elif not one.errors and not lives:
            terminal.print("   no errors", highlight=False)
        terminal.print()


def _print_life(error: UserError, terminal: Console) -> None:
    text = Text("\n   ")
    what = f"{count(error.count)} x {plain(error.what)} of virtual users: {plain(error.type)}: "
    text.append(what, style="red")
    text.append(plain(error.message, 1000))
    terminal.print(text, markup=False, highlight=False, soft_wrap=True)


def _print_error(error: ErrorReport, terminal: Console) -> None:
    first = error.first_iteration
    text = Text("\n   ")
    text.append(f"{count(error.count)} x {plain(error.type)}: ", style="red")
    text.append(plain(error.message, 1000))
    text.append(f"\n   first in iteration {first}: osbench-coord results --iteration {first}")
    if error.trace_id:
        text.append(f"\n   traced: osbench-coord trace show {error.trace_id}")
    terminal.print(text, markup=False, highlight=False, soft_wrap=True)
    print_traceback(error.traceback, terminal)


def show_summed_charts(report: Report, *, as_json: bool) -> None:
    """Print the charts of a finished run, aggregated over iterations, for each workload."""
    found = [
        {"workload": number, "name": one.name, **json_codec.to_json(one.outputs)}
        for number, one in enumerate(report.workloads)
    ]
    if as_json:
        echo_json({"outputs": found}, indent=1)
        return
    terminal = console()
    for number, workload in enumerate(report.workloads):
        _heading(terminal, number, workload.name, "")
        # charts that are added up follow, as a whole
        for at, one in enumerate(output_statements(replace(workload.outputs, additive=()))):
            text = Text(f"{'' if at else one.label:<10}{one.text}")
            terminal.print(text, markup=False, highlight=False)
        print_charts(terminal, workload.outputs.additive)


def show_charts(directory: RunDirectory, iteration: int, *, as_json: bool) -> None:
    """Print the charts of iteration number `iteration` of each workload that has it.

    `as_json`: as one JSON object. Raises UsageError if no workload has it.
    """
    asked = directory.read("run.json") or {"workloads": []}
    names = [one.get("name", one["scenario"]) for one in asked["workloads"]]
    found = [
        {"workload": number, "name": names[number], "iteration": iteration, **made}
        for number, made in sorted(_charts_of(directory, iteration))
    ]
    if not found:
        raise UsageError(
            f"no workload of run {directory.path.name} has iteration {iteration}; `osbench-coord "
            f"results {directory.path.name} --csv` lists all iterations"
        )
    if as_json:
        echo_json({"outputs": found}, indent=1, default=str)
        return
    terminal = console()
    for one in found:
        _heading(terminal, one["workload"], one["name"], f"  iteration {count(iteration)}")
        print_charts(terminal, [*one["additive"], *one["complete"]])


def _charts_of(directory: RunDirectory, iteration: int) -> Iterator[tuple[int, Any]]:
    """Yield workload and charts; of several rows for the iteration the first one counts."""
    seen = set()
    for number, _, columns in counted_rows(directory):
        if number not in seen and iteration in columns.iteration:
            seen.add(number)
            yield number, outputs(dict(columns.outputs).get(iteration, ()))


def _heading(terminal: Console, number: int, name: str, more: str) -> None:
    terminal.print(Text(f"{number}. {plain(name)}{more}", style="bold"), highlight=False)


def print_charts(terminal: Console, made: Sequence[Mapping[str, Any]]) -> None:
    """Print charts, or "no charts" if `made` is empty; at most `ROWS` rows of each."""
    for chart in made:
        terminal.print()
        text = Padding(chart_text(chart, ROWS), (0, 0, 0, 3))
        terminal.print(text, markup=False, highlight=False)
    if not made:
        terminal.print(Text("   no charts"), highlight=False)
    terminal.print()
