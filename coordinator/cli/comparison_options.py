"""Options of the commands that compare runs, and what they print and write."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from osbench.common.errors import UsageError
from osbench.coordinator.cli.base import CommandSettings, console, write_file
from osbench.coordinator.cli.run_views.damaged_runs import damaged_option, found_run, warn_of
from osbench.coordinator.comparison.compared_run import (
    ComparedRun,
    finished_runs,
    read_compared_run,
)
from osbench.coordinator.comparison.comparison_json import comparison_json
from osbench.coordinator.comparison.comparison_page import compare_page
from osbench.coordinator.comparison.comparison_result import ChangeVerdict, ComparisonResult
from osbench.coordinator.comparison.comparison_text import show_comparison

#: Begins the name of all runs with a tag.
TAG = "tag:"


def _share(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """A share, as 3% or 0.03, as a number."""
    if text is None:
        return None
    try:
        share = float(text.strip().removesuffix("%")) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise click.BadParameter(f"{text!r} is no share such as 3% or 0.03", ctx, param)
    return share


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions:
    """What the options collect from the command line."""

    #: Share of change that counts as none.
    margin: float | None
    #: Compare what should not be compared.
    anyway: bool
    #: Read runs whose files are cut or changed, and leave out those that were not named.
    damaged: bool
    as_json: bool
    #: Path of a page to write.
    page: Path | None


html_option = click.option(
    "--html",
    "page",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page that opens without a server.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else."
)


def comparison_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a command: it gets its options as one `ComparisonOptions` named `chosen`."""

    @click.option(
        "--margin",
        callback=_share,
        metavar="SHARE",
        help="Changes smaller than this, such as 3%, count as none: allows for the verdict"
        " `equivalent`.",
    )
    @click.option(
        "--anyway",
        is_flag=True,
        help="Compare runs with different loads, or that were limited by the load generator.",
    )
    @damaged_option
    @json_option
    @html_option
    @functools.wraps(command)
    def collected(
        *args: Any,
        margin: float | None,
        anyway: bool,
        damaged: bool,
        as_json: bool,
        page: Path | None,
        **rest: Any,
    ) -> Any:
        chosen = ComparisonOptions(
            margin=margin, anyway=anyway, damaged=damaged, as_json=as_json, page=page
        )
        return command(*args, chosen=chosen, **rest)

    return collected


def read_side(
    settings: CommandSettings, names: Sequence[str], *, damaged: bool = False
) -> list[ComparedRun]:
    """The runs of one side: ids, beginnings of them, "last", or tag:TAG for all runs with it.

    `damaged`: those whose files are cut or changed are read as far as they can be. Raises
    UsageError, DamagedRun.
    """
    data_dir = str(settings.conf.data_dir)
    found = []
    for name in names:
        if name.startswith(TAG):
            tag = name.removeprefix(TAG)
            tagged = [*finished_runs(data_dir, (tag,), left_out=left_out(damaged))]
            if not tagged:
                raise UsageError(f"no finished run has the tag {tag!r}")
            found += [read_compared_run(run.directory) for run in tagged if run.directory]
        else:
            found.append(read_compared_run(found_run(settings, name, damaged=damaged)))
    return found


def left_out(damaged: bool) -> Callable[[str], None] | None:
    """What becomes of damaged runs that nobody has named: printed and left out, or refused."""
    return warn_of if damaged else None


def show(result: ComparisonResult, chosen: ComparisonOptions) -> None:
    """Print a comparison and write its page. Raises UsageError."""
    if chosen.page is not None:
        write_file(chosen.page, compare_page(result))
    if chosen.as_json:
        click.echo(json.dumps(comparison_json(result), indent=1))
    else:
        show_comparison(result, console())


def exit_code(result: ComparisonResult) -> int:
    """1 where something became worse, else 0."""
    return int(result.verdict in (ChangeVerdict.WORSE, ChangeVerdict.MIXED))
