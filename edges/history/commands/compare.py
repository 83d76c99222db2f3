"""The command `compare`: prints improvements and regressions between two sides of runs."""

from __future__ import annotations

import sys

import click

from osbench.common.errors import UsageError
from osbench.coordinator.front.cli.base import CommandSettings, with_settings
from osbench.coordinator.front.cli.options.option_rules import Alternatives, RuledCommand
from osbench.coordinator.front.cli.options.option_table import (
    flag,
    option,
    option_set,
    options,
    repeated_option,
)
from osbench.coordinator.front.cli.options.shared_options import archive_url
from osbench.edges.history.commands.alternating_runs import ENOUGH
from osbench.edges.history.commands.archive_access import archived_runs
from osbench.edges.history.commands.comparison_options import (
    TAG,
    ComparisonOptions,
    exit_code,
    left_out,
    read_side,
    show,
)
from osbench.edges.history.comparison.compared_run import earlier_runs
from osbench.edges.history.comparison.comparing import compare_sides
from osbench.edges.history.comparison.evidence import Evidence, numbered_blocks

_AGAINST = "--against"


class TwoSides(RuledCommand):
    """A command whose option `--against` takes all names up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, after putting a separate `--against` before each name after it.

        Raises BadOptionUsage if `--against` has no name.
        """
        found: list[str] = []
        against = False
        for one in args:
            if one.startswith("-"):
                against = one == _AGAINST
                found += [] if against else [one]
            else:
                found += [_AGAINST, one] if against else [one]
        if _AGAINST in args and _AGAINST not in found:
            raise click.BadOptionUsage(_AGAINST, f"{_AGAINST} needs at least one run", ctx)
        return super().parse_args(ctx, found)


@click.command(
    cls=TwoSides,
    rules=[Alternatives(of=("--in-pairs", "--in-blocks"), single="runs are in pairs or in blocks")],
)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@options(
    ComparisonOptions.SECTION,
    against=repeated_option(
        _AGAINST, metavar="RUN...", help="Runs of the second side. All others are the first side."
    ),
    in_pairs=flag(
        "--in-pairs",
        help="Test the differences of pairs, in the order given: the runs of both sides were made"
        " in turn, as by `duel`.",
    ),
    in_blocks=option(
        "--in-blocks",
        type=click.IntRange(1),
        metavar="N",
        help="Test the differences of blocks of N runs, in the order given: all of one side were"
        " made before a change and all others after it, as by `gate --change`.",
    ),
    archive=archive_url(),
)
@option_set(ComparisonOptions, "chosen")
@with_settings
def compare(
    settings: CommandSettings,
    runs: tuple[str, ...],
    against: tuple[str, ...],
    in_pairs: bool,
    in_blocks: int | None,
    archive: str | None,
    chosen: ComparisonOptions,
) -> None:
    """Compare runs: the first side is before, the second after.

    A verdict needs several runs on each side, or five other runs of the same task in the data
    directory or the archive, to know the normal variation between runs. RUN is an id, the
    beginning of one, "last", or tag:TAG for all runs with a tag.

    \b
    Examples:
      osbench-coord compare 20260401-101500 last
      osbench-coord compare A1 A2 A3 A4 A5 --against B1 B2 B3 B4 B5
      osbench-coord compare tag:release-1 tag:release-2 --margin 3%
      osbench-coord compare 20260401 20260402 --html comparison.html
      osbench-coord compare tag:main last --archive s3://team-runs/shop

    \b
    Exit codes:
      0 nothing became worse, or there is no evidence of it
      1 something became worse
      2 bad usage, or the runs cannot be compared
      3 files of a run are cut or changed; --damaged compares the rest
    """
    first, second = _sides(runs, against)
    ordered = "--in-pairs" if in_pairs else "--in-blocks" if in_blocks else ""
    if ordered and any(name.startswith(TAG) for name in (*first, *second)):
        # a tag leaves out unsound runs of one side, and the order of the others would be wrong
        raise UsageError(f"{ordered} needs runs in order: name each by its id, not by a tag")
    archived = archived_runs(settings, archive)
    before, after = (
        read_side(settings, one, damaged=chosen.damaged, archived=archived)
        for one in (first, second)
    )
    if in_pairs:
        _check_pairs(len(before), len(after))
    if in_blocks:
        _check_blocks(len(before), len(after), in_blocks)
    history = earlier_runs(
        str(settings.conf.data_dir),
        [*before, *after],
        left_out=left_out(chosen.damaged),
        archived=archived,
    )
    result = compare_sides(
        Evidence(
            before=before,
            after=after,
            history=history,
            in_pairs=in_pairs,
            blocks=numbered_blocks(before, after, in_blocks) if in_blocks else {},
        ),
        margin=chosen.margin,
        anyway=chosen.anyway,
    )
    show(result, chosen)
    sys.exit(exit_code(result))


def _check_pairs(before: int, after: int) -> None:
    if before != after or before < 2:
        raise UsageError(
            "--in-pairs needs as many runs on one side as on the other, two at least:"
            f" got {before} and {after}"
        )


def _check_blocks(before: int, after: int, size: int) -> None:
    if before % size or after % size or min(before, after) < ENOUGH * size:
        raise UsageError(
            f"--in-blocks {size} needs whole blocks, {ENOUGH} a side at least: {ENOUGH * size} runs"
            f" or more on each side, by blocks of {size}: got {before} and {after}"
        )


def _sides(
    runs: tuple[str, ...], against: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if against:
        return runs, against
    if len(runs) == 2:
        return runs[:1], runs[1:]
    raise UsageError(
        "give two runs, or several of each side: osbench-coord compare A1 A2 --against B1 B2"
    )
