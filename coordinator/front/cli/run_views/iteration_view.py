"""The output of `results --iteration`: all that is known of one iteration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import indent
from typing import Any

from rich.console import Console
from rich.text import Text

from osbench.common.errors import UsageError
from osbench.common.text.escaping import escaped
from osbench.coordinator.formatting import count, plain, size, spaced, timestamp
from osbench.coordinator.front.cli.base import console, echo_json
from osbench.coordinator.front.cli.outputs import charts
from osbench.coordinator.report.iteration_record import iteration_records
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import summary_of

_INDENT = 3
_LABEL = 10


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
            f"`osbench-coord results {directory.path.name} --csv` lists them"
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
        charts(terminal, made)
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
