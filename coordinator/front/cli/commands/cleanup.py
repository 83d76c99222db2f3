"""The command `cleanup`: removes resources that a run has left in the cloud and elsewhere."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from osbench.common.errors import ContextError, DamagedRun, OsbenchError
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.redis_client import connect
from osbench.common.text.escaping import one_line
from osbench.coordinator.front.cli.base import CommandSettings, echo, with_settings
from osbench.coordinator.front.cli.commands.workers import dismiss
from osbench.coordinator.front.cli.options.option_rules import Alternatives, Rule, RuledCommand
from osbench.coordinator.front.cli.options.option_table import (
    OptionSet,
    flag,
    option,
    option_set,
    options,
)
from osbench.coordinator.front.cli.options.shared_options import deployment_name, plugin_paths
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.front.cli.time_limit import time_limit
from osbench.coordinator.load.fleet.dismissal import RunningIterations
from osbench.coordinator.load.fleet.heartbeats import HeartbeatReader
from osbench.coordinator.load.fleet.worker_request import processes
from osbench.coordinator.plugins.contexts.context_stack import run_polling, undo
from osbench.coordinator.plugins.contexts.state_store import ContextStateStore
from osbench.coordinator.report.exit_code import AROUND
from osbench.coordinator.results.storage import resumable
from osbench.coordinator.results.storage.progress import contexts_at
from osbench.coordinator.results.storage.run_directory import RunDirectory

#: A cloud takes minutes to remove hundreds of servers; seconds.
TIMEOUT_S = 1800.0
#: Longest wait for workers that are still running iterations, and polling interval, seconds.
WAIT_S = 120.0
LOOK_S = 0.5


@dataclass(frozen=True, kw_only=True)
class OrphanOptions(OptionSet):
    """Options for resources of runs without a run directory that are to be removed."""

    SECTION = "Without a run directory"

    orphans: bool = flag(
        "--orphans",
        help="Remove resources of runs whose directories are gone, found by their names.",
    )
    rally: bool = flag(
        "--rally",
        help="Look for names that Rally's scenarios and contexts give (s_rally_..., c_rally_...) "
        "instead of osbench's.",
    )
    deployment: str | None = deployment_name()
    older: str = option(
        "--older",
        metavar="AGE",
        default="1d",
        show_default=True,
        help="Leave runs out that have a younger resource; 45s, 90m, 12h, 30d or 4w.",
    )
    dry_run: bool = flag("--dry-run", help="List the resources without removing them.")
    yes: bool = flag("--yes", help="Do not ask.")


RULES = (
    Alternatives(
        of=("RUN", "--orphans"),
        missing="no run is given",
        single="a run that has a directory is cleaned up by it",
    ),
    *(
        Rule(option=one, why="is for runs without a directory", needs=("--orphans",))
        for one in ("--rally", "--deployment", "--older", "--dry-run", "--yes")
    ),
    Rule(option="--orphans", why="undoes no context", excludes=("--plugin-path",)),
)


@click.command(cls=RuledCommand, rules=RULES)
@click.argument("run", required=False)
@options(plugin_path=plugin_paths())
@option_set(OrphanOptions, "which")
@time_limit(TIMEOUT_S)
@with_settings
def cleanup(
    settings: CommandSettings,
    run: str | None,
    plugin_path: tuple[str, ...],
    which: OrphanOptions,
) -> None:
    """Remove resources that a run has left behind.

    Removes the resources that its iterations created, then resources of its contexts. Works after
    any end of a run, even if coordinator and workers were killed; `resume` cannot go on with it
    then. RUN is an id, the beginning of one, or "last". The exit code is 5 if something could not
    be removed.

    With --orphans it removes resources in the cloud of a deployment that have a name as osbench
    gives them, of runs that are not here any more. Only their names show that they are osbench's:
    they are listed, and you are asked. To list resources in projects that runs have left, the admin
    gets a role in each of these projects, and gives it back.

    \b
    Examples:
      osbench-coord cleanup last
      osbench-coord cleanup 20260401 --plugin-path plugins/
      osbench-coord cleanup --orphans --deployment lab --older 2h --dry-run
      osbench-coord cleanup --orphans --rally --deployment lab --dry-run
    """
    if run is None:
        from osbench.coordinator.front.cli.orphan_removal import remove_orphans  # noqa: PLC0415 - seldom

        problems = remove_orphans(
            settings,
            which.deployment,
            which.older,
            rally=which.rally,
            dry_run=which.dry_run,
            sure=which.yes,
        )
        if problems:
            raise _leftover_error("\n".join(problems))
        return
    directory = RunDirectory.find(str(settings.data_dir), run)
    writable = _lock(directory)
    try:
        store = ContextStateStore.load(directory.path, Path(settings.data_dir))
        count = len(store.entries)
        crashed = not resumable.is_ended(directory)
        if count and crashed:
            _await_workers(settings, directory.path.name)
        # what is undone now cannot serve another coordinator
        resumable.end(directory, "`cleanup` has ended it")
        if crashed and writable:
            _free_workers(settings, directory)
        plugins = Plugins((*settings.conf.coordinator.plugin_path, *plugin_path))
        problems = _undo(store, plugins, crashed=crashed)
    finally:
        directory.close()
    word = "context" if count == 1 else "contexts"
    echo(f"run {directory.path.name}: {count - len(problems)} of {count} {word} undone")
    if problems:
        raise _leftover_error("\n".join(problems))


def _undo(store: ContextStateStore, plugins: Plugins, *, crashed: bool) -> list[str]:
    """Undo all contexts of a run and show the progress; return a message for each failure.

    `store` has the states of the contexts. `crashed`: the run has no final report.
    """
    with Progress(quiet=False) as progress:
        began = time.monotonic()
        work = partial(
            undo,
            store,
            plugins,
            crashed=crashed,
            tell=lambda what, done, planned: progress(
                contexts_at(what, done, planned, time.monotonic() - began)
            ),
        )
        # Ctrl-C and --timeout end the command, also while foreign code waits for its threads
        return run_polling(work, lambda _: None)


def _lock(directory: RunDirectory) -> bool:
    """Lock a run without a coordinator; return whether its journal can be written.

    If the journal is damaged, returns False after printing a warning. Raises UsageError if the run
    has a coordinator.
    """
    try:
        directory.lock()
    except DamagedRun as error:
        echo(
            f"{one_line(error.problem)}: its contexts are undone nevertheless; its workers free "
            "themselves once they have waited for a coordinator",
            err=True,
        )
        directory.lock(writes=False)
        return False
    return True


def _free_workers(settings: CommandSettings, directory: RunDirectory) -> None:
    if settings.conf.messaging.redis_url:
        try:
            dismiss(settings, directory)
        except OsbenchError as error:
            name = directory.path.name
            echo(f"workers of run {name} may not be free: {error}", err=True)


def _await_workers(settings: CommandSettings, run: str) -> None:
    """Wait until shared workers have finished iterations of a run without a coordinator.

    They begin nothing more once their leases are over. Returns at once in local mode; if Redis or
    the keys cannot be used, after a warning. Raises ContextError after `WAIT_S` seconds.
    """
    messaging = settings.conf.messaging
    if not messaging.redis_url:
        return
    reported = False
    try:
        with contextlib.closing(connect(messaging.redis_url, messaging.redis_timeout_s)) as client:
            heartbeats = HeartbeatReader(client, Signer(settings.keyring()))
            now = time.monotonic()
            running, deadline = RunningIterations(heartbeats, run, now), now + WAIT_S
            while at_work := running.at(now):
                if now >= deadline:
                    break
                if not reported:
                    echo(f"waiting for {processes(len(at_work))} still serving run {run}", err=True)
                    reported = True
                time.sleep(LOOK_S)
                now = time.monotonic()
            else:
                return
    except OsbenchError as error:
        echo(one_line(f"workers may still be serving run {run}: {error}"), err=True)
        return
    # resources that they create after the clean-up would not be found
    raise _leftover_error(
        f"{processes(len(at_work))} still serving run {run} after {WAIT_S:g} s: no resource was "
        "removed; clean up again when they are done, or stop them"
    )


def _leftover_error(message: str) -> ContextError:
    error = ContextError(message)
    error.exit_code = AROUND
    return error
