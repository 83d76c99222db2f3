"""Prints the report of a run as text with tables, from the report alone."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from osbench.common.plugin.plugin_names import RALLY
from osbench.common.values.outcomes import STATES
from osbench.coordinator.formatting import count, duration, plain, three_digits
from osbench.coordinator.report.chart_text import chart_text
from osbench.coordinator.report.model.model import Report, WorkloadReport
from osbench.coordinator.report.severity import MANY, has_held, severity
from osbench.coordinator.report.statements.iteration_statements import CHARTS
from osbench.coordinator.report.statements.statement import Look, Phrase, Statement
from osbench.coordinator.report.statements.statements import statements
from osbench.coordinator.report.statements.verdict_lines import NAMED, commands, verdict_lines
from osbench.coordinator.report.times_table import short_times_lines, times_lines
from osbench.coordinator.results.accounting.totals import Accounting
from osbench.coordinator.text_table import show

#: Lines of a log that a note shows.
_NOTE_LINES = 16
_STYLES = {
    Look.PLAIN: "",
    Look.STRONG: "bold",
    Look.GOOD: "green",
    Look.WARNING: "bold magenta",
    Look.BAD: "bold red",
    Look.PALE: "dim",
}


def render(report: Report, console: Console, *, details: bool = False) -> None:
    """Print the report of a run: exit code, verdicts, notes, workloads, and useful commands.

    Without `details` only some times and facts. Of many workloads, successful ones have one line.
    """
    show(console, Text(f"Run {report.run_id}  {plain(report.task)}", style="bold"))
    if details:
        show(console, Text(f"{report.started_at} to {report.finished_at}"))
        if report.tags:
            show(console, Text(f"tags: {', '.join(map(plain, report.tags))}"))
    code = report.exit_code
    style = "bold green" if code == 0 else "bold red"
    show(console, Text(f"Exit code {code}: {report.exit_meaning}", style=style))
    criteria = verdict_lines(report, sys.maxsize if details else NAMED)
    _show_indented(console, map(styled_text, criteria), 2)
    for note in report.notes:
        show(console, Text(f"Note: {_lines_of(note)}"))
    ordered, briefly = _full_and_brief(report.workloads)
    for number, workload in ordered:
        if details or len(report.workloads) > 1:
            show(console, Text())
        _render_workload(workload, number, console, details=details)
    if briefly:
        show(console, Text())
        show(
            console,
            Text(
                f"{count(len(briefly), 'workload')} met all criteria with no failure", style="bold"
            ),
        )
        for number, workload in briefly:
            show(console, Text(f"   {_brief(workload, number)}"))
    found = list(commands(report, details=details))
    if details or len(report.workloads) > 1:
        show(console, Text())
    width = max((len(command) for command, _ in found), default=0)
    for command, shows in found:
        show(console, Text(f"{command:{width}}  {shows}", style=_STYLES[Look.PALE]))


def _full_and_brief(
    workloads: Sequence[WorkloadReport],
) -> tuple[list[tuple[int, WorkloadReport]], list[tuple[int, WorkloadReport]]]:
    """Return two lists of (number, workload): to print in full, and in brief.

    Up to `MANY` workloads, all are in full, in the order of the task. Of more, workloads without
    any problem are in brief, and the worst come first.
    """
    numbered = list(enumerate(workloads))
    if len(numbered) <= MANY:
        return numbered, []
    numbered.sort(key=lambda pair: severity(pair[1]))
    held = [pair for pair in numbered if has_held(pair[1])]
    return [pair for pair in numbered if not has_held(pair[1])], held


def _brief(workload: WorkloadReport, number: int) -> str:
    times = workload.main_times
    p95 = f", p95 {duration(times.p95)}" if times.count else ""
    return f"{number}. {plain(workload.name)}: {count(workload.accounting.ok)} ok{p95}"


def _render_workload(
    workload: WorkloadReport, number: int, console: Console, *, details: bool
) -> None:
    heading = Text(f"{number}. {plain(workload.name)}", style="bold")
    of = " (Rally's)" if workload.source == RALLY else ""
    if workload.scenario != workload.name:
        heading.append(f"  {plain(workload.scenario)}", style="not bold")
    heading.append(f"{of}  {plain(workload.runner.type)}", style="not bold")
    if workload.subtask not in ("", workload.name):
        heading.append(f"  ({plain(workload.subtask)})", style="not bold")
    show(console, heading)
    if workload.unbegun:
        reason = Text(f"not begun: {plain(workload.unbegun, 1000)}", style="bold red")
        _show_indented(console, [Text(sum_text(workload.accounting)), reason])
        _show_grid(console, statements(workload))
        return
    rate = "" if details else _rate(workload)
    _show_indented(console, [Text(f"{sum_text(workload.accounting)}{rate}")])
    if not details:
        _show_indented(console, short_times_lines(workload, console.width - 3))
        _show_grid(console, (one for one in statements(workload) if one.matters))
        return
    show(console, Text())
    _show_indented(console, times_lines(workload, console.width - 3))
    show(console, Text())
    _show_grid(console, statements(workload))
    for chart in workload.outputs.additive[:CHARTS]:
        show(console, Text())
        show(console, Padding(chart_text(chart), (0, 0, 0, 3), expand=False))


def _rate(workload: WorkloadReport) -> str:
    throughput = workload.throughput
    if throughput.ok_per_s is None:
        return ""
    return f"; {three_digits(throughput.ok_per_s)} ok/s over {duration(throughput.span_s)}"


def _show_indented(console: Console, lines: Iterable[Text], columns: int = 3) -> None:
    for text in lines:
        show(console, Padding(text, (0, 0, 0, columns), expand=False))


def _show_grid(console: Console, found: Iterable[Statement]) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(min_width=10, no_wrap=True)
    grid.add_column(overflow="fold")
    last = ""
    for one in found:
        grid.add_row("" if one.label == last else one.label, styled_text(one.phrases))
        last = one.label
    show(console, Padding(grid, (0, 0, 0, 3), expand=False))


def styled_text(phrases: Iterable[Phrase]) -> Text:
    """Return the phrases of a statement joined to one text, with their styles for a terminal."""
    return Text.assemble(*((phrase.text, _STYLES[phrase.look]) for phrase in phrases))


def _lines_of(note: str) -> str:
    """Return the first line of a note and, if it introduces a log, `_NOTE_LINES` lines of it."""
    first, *others = note.strip().splitlines() or [""]
    if not first.endswith("of its log:"):
        others = []
    # indented, so that no line of a log looks like one of the report
    return "\n   ".join(plain(line, 1000) for line in [first, *others[:_NOTE_LINES]])


def sum_text(accounting: Accounting) -> str:
    """Return the counts by state as an equation without zeros: "100 planned = 98 ok + 2 failed".

    A != shows that the states do not sum to the planned iterations.
    """
    numbers = [(accounting.state(name), name.replace("_", " ")) for name in STATES]
    terms = [f"{count(number)} {name}" for number, name in numbers if number]
    sign = "=" if accounting.settled == accounting.planned else "!="
    return f"{count(accounting.planned)} planned {sign} {' + '.join(terms) or 0}"
