"""The command `duel`: two tasks take turns, so that changes of their surroundings hit both."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import click

from osbench.common.errors import INTERRUPTED, UsageError
from osbench.coordinator.front.cli.base import CommandSettings, echo, with_settings
from osbench.coordinator.front.cli.options.option_rules import RuledCommand
from osbench.coordinator.front.cli.options.option_table import option_set, repeated_option
from osbench.coordinator.front.cli.options.task_options import TaskOptions
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.report.exit_code import LIMITED
from osbench.edges.history.commands.alternating_runs import AlternatingRuns, PairOptions
from osbench.edges.history.commands.comparison_options import (
    ComparisonOptions,
    exit_code,
    show,
)


@dataclass(frozen=True, kw_only=True)
class DuelOptions(PairOptions):
    """Options for `duel`: workers, number of pairs, and arguments of each side alone."""

    args_a: tuple[str, ...] = repeated_option(
        "--args-a", metavar="ARGS", help="Arguments of A alone, as --task-args."
    )
    args_b: tuple[str, ...] = repeated_option(
        "--args-b", metavar="ARGS", help="Arguments of B alone, as --task-args."
    )


@click.command(cls=RuledCommand)
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", required=False)
@option_set(DuelOptions, "duelling")
@option_set(ComparisonOptions, "chosen")
@option_set(TaskOptions, "options")
@with_settings
def duel(
    settings: CommandSettings,
    first: str,
    second: str | None,
    duelling: DuelOptions,
    chosen: ComparisonOptions,
    options: TaskOptions,
) -> None:
    """Run two task files in turn and compare them.

    A is before, B after; without B, A runs with the arguments of both sides.

    The tasks alternate (A B, B A, A B ...), so that other changes meanwhile hit both; the
    differences of the pairs are tested. Ctrl-C ends the running iterations and
    compares the pairs made so far. Use the same load in both tasks.

    \b
    Examples:
      osbench-coord duel old.yaml new.yaml --pairs 5
      osbench-coord duel fernet.yaml jws.yaml --pairs 8 --margin 3% --html duel.html
      osbench-coord duel shop.yaml --args-a url=http://old:8080 --args-b url=http://new:8080

    \b
    Exit codes:
      0 B is not worse, or there is no evidence of it
      1 something is worse with B
      2 bad usage, or the runs cannot be compared
      4 no verdict: the load generator was the limit in too many pairs, as on a busy machine
      130 interrupted
    """
    if second is None and not (duelling.args_a or duelling.args_b):
        raise UsageError("a duel needs two task files, or --args-a and --args-b of one")
    sides = [(first, duelling.args_a), (second or first, duelling.args_b)]
    for path, _ in sides:
        if not Path(path).is_file():
            raise UsageError(
                f"there is no task file {path}; name one, or write it with `osbench-coord init`"
            )
    tasks = [
        duelling.wanted(path, replace(options, task_args=(*options.task_args, *args)))
        for path, args in sides
    ]
    runs = AlternatingRuns(settings, (tasks[0], tasks[1]), Progress(quiet=duelling.quiet))
    runs.run(duelling.pairs)
    if not chosen.anyway and (why := runs.lack_of_pairs(duelling.pairs)):
        echo(f"No verdict: {why}", err=True)
        sys.exit(LIMITED)
    names = [" ".join((path, *args)) for path, args in sides]
    result = runs.result(chosen, (names[0], names[1]))
    show(result, chosen)
    sys.exit(INTERRUPTED if runs.interrupted else exit_code(result))
