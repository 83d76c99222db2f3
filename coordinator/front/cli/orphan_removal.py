"""The part of the command `cleanup` for runs whose directories are gone."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing

import click

from osbench.common.errors import DeploymentError, OsbenchError, UsageError
from osbench.common.plugin import plugin_names
from osbench.common.plugin.cloud_platform import FoundOrphans, Orphan, installed_cloud
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.redis_client import connect
from osbench.common.text.escaping import escaped
from osbench.coordinator.formatting import count
from osbench.coordinator.front.cli.base import CommandSettings, echo
from osbench.coordinator.load.fleet.heartbeats import HeartbeatReader
from osbench.coordinator.plugins.contexts.state_store import FILE, ContextStateStore
from osbench.coordinator.results.storage import resumable, run_retention
from osbench.coordinator.results.storage.run_directory import RunDirectory


def remove_orphans(
    settings: CommandSettings,
    deployment: str | None,
    older: str,
    *,
    rally: bool,
    dry_run: bool,
    sure: bool,
) -> list[str]:
    """List resources of runs that are gone, ask the user, and remove them from the cloud.

    Returns messages on problems, such as resources that are left. `deployment`: name of the cloud's
    record, None for the record in use. `older`: age such as "1d" that all resources of a run must
    have. `rally`: of Rally's tasks. `dry_run` removes nothing; `sure` does not ask, but leaves out
    runs of unknown age unless `older` is 0. Raises OsbenchError, click.Abort if the user says no.
    """
    older_s = run_retention.age_s(older)
    record = settings.deployment(deployment)
    if record is None:
        raise DeploymentError("no deployment is in use: name one with --deployment")
    owner = "Rally task" if rally else "run"
    try:
        search = installed_cloud().orphans(record, rally=rally)
        found = search.find(time.time() - older_s)
    except OSError as error:
        raise UsageError(
            f"cannot reach the cloud of {record.name}: {error}; check it with `osbench-coord "
            f"deployment check {record.name}`"
        ) from None
    removable = _without_kept(settings, found, rally=rally)
    _tell(found, older, owner)
    if sure and older_s:
        for run in [one for one in found.ageless if removable.pop(one, None)]:
            echo(
                f"left out: no resource of {owner} {run} has a time of creation; leave out"
                " --yes to be asked, or give --older 0s",
                err=True,
            )
    if not removable:
        echo("no resources to remove", err=True)
        return found.problems
    for run, orphans in removable.items():
        echo(f"{owner} {run}: {_kinds(orphans)}")
        for orphan in orphans:
            echo(escaped(f"  {_line(orphan)}"))
    every = [orphan for orphans in removable.values() for orphan in orphans]
    if any(orphan.kind == "projects" for orphan in every):
        echo("with the security groups of these projects")
    what = f"{count(len(every), 'resource')} of {count(len(removable), owner)}"
    if dry_run:
        echo(f"{what} would be removed", err=True)
        return found.problems
    if not sure:
        click.confirm(f"remove {what} from {escaped(record.name)}?", abort=True, err=True)
    try:
        problems = search.remove(every)
    except OsbenchError as error:
        problems = [str(error)]
    if not problems:
        echo(f"{what} removed", err=True)
    return [*found.problems, *problems]


def _line(orphan: Orphan) -> str:
    at = "at an unknown time"
    if orphan.created_at is not None:
        at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(orphan.created_at))
    where = f"  in project {orphan.project}" if orphan.project else ""
    return f"{orphan.kind}  {orphan.name}  {orphan.identity}  {at}{where}"


def _without_kept(
    settings: CommandSettings, found: FoundOrphans, *, rally: bool
) -> dict[str, list[Orphan]]:
    """Return the resources to remove, by run: of runs that no directory and no worker needs.

    A directory needs them if its run has a coordinator, or contexts to undo. Prints a note for each
    run that is left out.
    """
    every = list(RunDirectory.all(str(settings.data_dir)))
    if rally:
        needed = _needed_by_rally(settings, every)
    else:
        needed = {one.path.name: one.refusal() for one in every}
        needed |= {
            run: f"run {run} is in progress: it has workers" for run in _served_runs(settings)
        }
    removable = {}
    for run, orphans in found.by_run.items():
        if refusal := needed.get(run, ""):
            echo(f"left out: {refusal.partition(', or use')[0]}", err=True)
        else:
            removable[run] = orphans
    return removable


def _needed_by_rally(settings: CommandSettings, every: Sequence[RunDirectory]) -> dict[str, str]:
    """Return why tasks of Rally in osbench's runs must be left alone, by the task's id in names.

    They are of runs that have a coordinator or can be resumed. Raises ContextError if the contexts
    of such a run cannot be read.
    """
    source = Plugins(()).source(plugin_names.RALLY)
    needed: dict[str, str] = {}
    for directory in every:
        name = directory.path.name
        goes_on = directory.has_coordinator() or not resumable.is_ended(directory)
        if goes_on and (directory.path / FILE).exists():
            store = ContextStateStore.load(directory.path, settings.data_dir)
            why = f"run {name} runs or can be resumed; end it with `osbench-coord cleanup {name}`"
            needed |= {
                task: why for one in store.entries if (task := source.task_in_names(one.made))
            }
    return needed


def _served_runs(settings: CommandSettings) -> frozenset[str]:
    """Return ids of runs that workers serve; empty in local mode. Raises OsbenchError."""
    messaging = settings.conf.messaging
    if not messaging.redis_url:
        return frozenset()
    with closing(connect(messaging.redis_url, messaging.redis_timeout_s)) as client:
        present = HeartbeatReader(client, Signer(settings.keyring())).present()
    return frozenset(beat.run for beat in present)


def _tell(found: FoundOrphans, older: str, owner: str) -> None:
    for run, number in found.young.items():
        what = count(number, "resource")
        echo(f"left out: {owner} {run} has {what}, some younger than {older}", err=True)
    if found.unseen:
        kinds = ", ".join(found.unseen)
        echo(f"not searched, as the deployment has no admin: {kinds}", err=True)


def _kinds(orphans: Sequence[Orphan]) -> str:
    counts = Counter(orphan.kind for orphan in orphans)
    return ", ".join(f"{count(number)} {kind}" for kind, number in counts.items())
