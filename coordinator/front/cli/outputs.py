"""The output of `results --outputs`: aggregated charts, or the charts of one iteration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from osbench.common.errors import UsageError
from osbench.common.protocol.iteration_outputs import outputs
from osbench.coordinator.formatting import count, plain
from osbench.coordinator.front.cli.base import console, echo_json
from osbench.coordinator.report.chart_text import chart_text
from osbench.coordinator.report.model import json_codec
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.report.statements.iteration_statements import output_statements
from osbench.coordinator.results.accounting.block_contents import counted_rows
from osbench.coordinator.results.storage.run_directory import RunDirectory

#: Replaces an iteration number: charts aggregated over all iterations.
SUMMED = 0
#: Rows of a chart that are printed.
ROWS = 1000


def show_summed(report: Report, *, as_json: bool) -> None:
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
        charts(terminal, workload.outputs.additive)


def show_iteration(directory: RunDirectory, iteration: int, *, as_json: bool) -> None:
    """Print the charts of iteration number `iteration` of each workload that has it.

    `as_json`: as one JSON object. Raises UsageError if no workload has it.
    """
    asked = directory.read("run.json") or {"workloads": []}
    names = [one.get("name", one["scenario"]) for one in asked["workloads"]]
    found = [
        {"workload": number, "name": names[number], "iteration": iteration, **made}
        for number, made in sorted(_of_iteration(directory, iteration))
    ]
    if not found:
        raise UsageError(
            f"no workload of run {directory.path.name} has iteration {iteration}; `osbench-coord "
            f"results {directory.path.name} --csv` lists them"
        )
    if as_json:
        echo_json({"outputs": found}, indent=1, default=str)
        return
    terminal = console()
    for one in found:
        _heading(terminal, one["workload"], one["name"], f"  iteration {count(iteration)}")
        charts(terminal, [*one["additive"], *one["complete"]])


def _of_iteration(directory: RunDirectory, iteration: int) -> Iterator[tuple[int, Any]]:
    """Yield workload and charts; of several rows for the iteration the first one counts."""
    seen = set()
    for number, _, columns in counted_rows(directory):
        if number not in seen and iteration in columns.iteration:
            seen.add(number)
            yield number, outputs(dict(columns.outputs).get(iteration, ()))


def _heading(terminal: Console, number: int, name: str, more: str) -> None:
    terminal.print(Text(f"{number}. {plain(name)}{more}", style="bold"), highlight=False)


def charts(terminal: Console, made: Sequence[Mapping[str, Any]]) -> None:
    """Print charts, or "no charts" if `made` is empty; at most `ROWS` rows of each."""
    for chart in made:
        terminal.print()
        text = Padding(chart_text(chart, ROWS), (0, 0, 0, 3))
        terminal.print(text, markup=False, highlight=False)
    if not made:
        terminal.print(Text("   no charts"), highlight=False)
    terminal.print()
