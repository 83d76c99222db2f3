"""The output of `results --errors`: the most frequent errors of a run, with tracebacks.

Others are only counted. Errors of virtual users outside of iterations have no traceback, and are
not in the JSON.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from osbench.coordinator.formatting import count, plain
from osbench.coordinator.front.cli.base import console, echo_json
from osbench.coordinator.front.cli.run_views.iteration_view import print_traceback
from osbench.coordinator.report.model import json_codec
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.report.model.workload_parts import ErrorReport, UserError


def show_errors(report: Report, *, as_json: bool) -> None:
    """Print the errors of all workloads with their tracebacks, as text or JSON."""
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
            _print(error, terminal)
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


def _print(error: ErrorReport, terminal: Console) -> None:
    first = error.first_iteration
    text = Text("\n   ")
    text.append(f"{count(error.count)} x {plain(error.type)}: ", style="red")
    text.append(plain(error.message, 1000))
    text.append(f"\n   first in iteration {first}: osbench-coord results --iteration {first}")
    if error.trace_id:
        text.append(f"\n   traced: osbench-coord trace show {error.trace_id}")
    terminal.print(text, markup=False, highlight=False, soft_wrap=True)
    print_traceback(error.traceback, terminal)
