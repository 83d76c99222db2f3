"""The command `trends`: percentiles over the runs of a task, and their lasting changes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from osbench.common.errors import UsageError
from osbench.coordinator.front.cli.base import (
    CommandSettings,
    console,
    echo,
    echo_json,
    with_settings,
    write_file,
)
from osbench.coordinator.front.cli.options.option_rules import Rule, RuledCommand
from osbench.coordinator.front.cli.options.option_table import OptionSet, flag, option, option_set
from osbench.coordinator.front.cli.options.shared_options import (
    archive_url,
    damaged_flag,
    json_flag,
    page_file,
    wanted_tags,
)
from osbench.edges.history.commands.archive_access import archived_runs
from osbench.edges.history.commands.comparison_options import left_out, warn_of_unsound
from osbench.edges.history.comparison.compared_run import ComparedRun, finished_runs
from osbench.edges.history.comparison.comparison_json import staircases_json, trends_json
from osbench.edges.history.comparison.comparison_page import staircases_page, trends_page
from osbench.edges.history.comparison.comparison_text import show_check, show_staircase, show_trend
from osbench.edges.history.comparison.load_series import staircases_of
from osbench.edges.history.comparison.trend_check import TrendCheck, check_trend
from osbench.edges.history.comparison.trends import trend_of

_Shown = TypeVar("_Shown")


@dataclass(frozen=True, kw_only=True)
class TrendsOptions(OptionSet):
    """Options for the runs of a trend and for its output."""

    task: str | None = option("--task", metavar="TITLE", help="Runs of tasks with this title.")
    fingerprint: str | None = option(
        "--fingerprint", metavar="ID", help="Runs with this fingerprint, or the beginning of one."
    )
    tag: tuple[str, ...] = wanted_tags()
    archive: str | None = archive_url()
    last: int = option(
        "--last",
        type=click.IntRange(2),
        default=60,
        show_default=True,
        metavar="N",
        help="Newest runs of each fingerprint.",
    )
    by_load: bool = flag(
        "--by-load",
        help="Runs that differ in their rate or virtual users alone, by load instead of time.",
    )
    check: bool = flag(
        "--check",
        help="Exit with 1 if the newest run is worse than the runs before it, beyond how they"
        " differ.",
    )
    alert: str | None = option(
        "--alert",
        metavar="URL",
        help="With --check: send each run that is worse as a webhook of Alertmanager.",
    )
    #: Leave out runs whose files are cut or changed.
    damaged: bool = damaged_flag()
    as_json: bool = json_flag()
    #: Path of a page to write.
    page: Path | None = page_file()


RULES = (
    Rule(
        option="--by-load",
        why="shows runs of different loads, each with another fingerprint",
        excludes=("--fingerprint",),
        remedy="--task TITLE also selects runs",
    ),
    Rule(
        option="--check",
        why="judges the newest run among runs of the same load",
        excludes=("--by-load",),
    ),
    Rule(option="--alert", why="sends the findings of the check", needs=("--check",)),
)


@click.command(cls=RuledCommand, rules=RULES)
@option_set(TrendsOptions, "wanted")
@with_settings
def trends(settings: CommandSettings, wanted: TrendsOptions) -> None:
    """Show percentiles over runs, and their lasting changes.

    Runs belong together if task, load, deployment and number of workers are the same: they
    have the same fingerprint. Without --task or --fingerprint the trend is that of the newest
    run. Changes are looked for from 8 runs on; runs whose load was not the one asked for are left
    out. A run whose files are cut or changed ends the command; --damaged leaves it out.

    With --check the newest run is judged by the runs before it, back to their last lasting
    change: there is no limit to choose. Of runs without a change 1 % fail. With traces,
    or HTTP requests, the span that takes longer is named. With --check --tag TEXT it is the newest
    run of each fingerprint.

    With --archive the runs that a team has pushed count, too: `runs push` and `run --archive` put
    them there.

    With --by-load runs belong together whose loads differ and nothing else: throughput and
    latency by load, the knee, and from six loads on how throughput scales.

    \b
    Examples:
      osbench-coord trends
      osbench-coord trends --check --tag nightly
      osbench-coord trends --archive s3://team-runs/shop --task "Nightly boot test"
      osbench-coord trends --task "Nightly boot test" --html trends.html
      osbench-coord trends --by-load --task "Nightly boot test"
      osbench-coord trends --json | jq '.trends[].series[].changes'

    \b
    Exit codes with --check:
      0 the newest run is like those before it, or there are too few
      1 it is worse
    """
    newest_runs = [runs[-wanted.last :] for runs in _groups(settings, wanted).values()]
    if not wanted.by_load:
        found = [trend_of(runs) for runs in newest_runs]
        checks = [check_trend(runs) for runs in newest_runs] if wanted.check else []
        _write(wanted, trends_page, lambda _: trends_json(found, checks), show_trend, found)
        for check in checks if not wanted.as_json else ():
            show_check(check, console())
        if wanted.alert is not None:
            _send(wanted.alert, checks)
        sys.exit(1 if any(check.worse for check in checks) else 0)
    stairs = [one for runs in newest_runs for one in staircases_of(runs)]
    if not stairs:
        raise UsageError(
            "no two finished runs differ in their load alone: run the task at several rates"
            " or numbers of virtual users"
        )
    _write(wanted, staircases_page, staircases_json, show_staircase, stairs)


def _write(
    wanted: TrendsOptions,
    to_page: Callable[[Sequence[_Shown]], str],
    to_json: Callable[[Sequence[_Shown]], dict[str, Any]],
    show: Callable[[_Shown, Console], None],
    found: Sequence[_Shown],
) -> None:
    if wanted.page is not None:
        write_file(wanted.page, to_page(found))
    if wanted.as_json:
        echo_json(to_json(found), indent=1)
        return
    for number, one in enumerate(found):
        if number:
            echo("")
        show(one, console())


def _send(url: str, checks: Sequence[TrendCheck]) -> None:
    """Send a webhook to `url` for each check whose newest run is worse. Raises ExportError."""
    # the command needs no HTTP client otherwise
    from osbench.edges.history.exporters.alert import alert_document, post_alert  # noqa: PLC0415

    for check in checks:
        if check.worse:
            labels = {"task": check.task, "run": check.run_id, "fingerprint": check.fingerprint}
            document = alert_document(
                "OsbenchRunWorse",
                labels=labels,
                summary=check.sentence,
                details=[check.calls] if check.calls else [],
                started_at=check.started_at,
                ended_at=None,
            )
            post_alert(url, document)


def _groups(settings: CommandSettings, wanted: TrendsOptions) -> dict[str, list[ComparedRun]]:
    """Return the selected runs by fingerprint (of task and load), each list oldest first.

    Without `--task`, `--fingerprint`, or `--check` with `--tag`, only the group of the newest run.
    With `--by-load` the loads may differ. Prints a warning on runs without the requested load,
    which are left out. Raises UsageError if no run matches, DamagedRun, ArchiveError.
    """
    groups: dict[str, list[ComparedRun]] = {}
    data_dir = str(settings.conf.data_dir)
    archived = archived_runs(settings, wanted.archive)
    unsound: list[ComparedRun] = []
    for run in finished_runs(
        data_dir,
        wanted.tag,
        left_out=left_out(wanted.damaged),
        unsound=unsound.append,
        archived=archived,
    ):
        if _fits(run, wanted):
            groups.setdefault(_group(run, wanted), []).append(run)
    if not groups:
        raise UsageError("no finished run matches: `osbench-coord runs list` shows all runs")
    if wanted.task is None and wanted.fingerprint is None and not (wanted.check and wanted.tag):
        newest = max(groups, key=lambda name: groups[name][-1].run_id)
        groups = {newest: groups[newest]}
    warn_of_unsound(
        [run for run in unsound if _fits(run, wanted) and _group(run, wanted) in groups]
    )
    return groups


def _group(run: ComparedRun, wanted: TrendsOptions) -> str:
    return run.kinship if wanted.by_load else run.fingerprint


def _fits(run: ComparedRun, wanted: TrendsOptions) -> bool:
    name, task = _group(run, wanted), run.manifest.get("task")
    return name.startswith(wanted.fingerprint or "") and wanted.task in (None, task)
