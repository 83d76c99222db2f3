"""The commands `workers`: the worker processes and their state, and how to free them."""

from __future__ import annotations

import dataclasses
import re

import click

from osbench.common.errors import FleetError, UsageError
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.messages import Heartbeat
from osbench.common.protocol.redis_client import check, connect
from osbench.coordinator.formatting import plain
from osbench.coordinator.front.cli.base import (
    CommandSettings,
    echo,
    echo_json,
    echo_table,
    with_settings,
)
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.front.cli.options.option_table import options
from osbench.coordinator.front.cli.options.shared_options import json_flag
from osbench.coordinator.front.cli.time_limit import time_limit
from osbench.coordinator.load.fleet.dismissal import Dismissal
from osbench.coordinator.load.fleet.heartbeats import OTHER_VERSION, HeartbeatReader
from osbench.coordinator.load.fleet.worker_request import (
    other_version,
    processes,
    unverified_message,
)
from osbench.coordinator.results.storage import resumable
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.text_table import TextTable, figures, names, texts

#: Names that run directories can have.
RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

COLUMNS = (
    *names("worker"),
    *texts("label"),
    *names("state", "run"),
    *figures("users", "in use", "cpu", "offset", "stuck"),
    *texts("refused"),
    *names("version"),
)


@click.group(cls=Group, invoke_without_command=True)
@options(as_json=json_flag("a list with all that is known"))
@time_limit()
@with_settings
def workers(settings: CommandSettings, as_json: bool) -> None:
    """List the worker processes, or free the workers of a run.

    Shows virtual users, the run that holds each process, CPU, clock offset, stuck threads, and
    refused messages by reason. Workers whose coordinator is gone wait for `resume`.

    \b
    Examples:
      osbench-coord workers
      osbench-coord workers --json
      osbench-coord workers free 20260401
    """
    if click.get_current_context().invoked_subcommand is None:
        _list(settings, as_json=as_json)


@workers.command()
@click.argument("run")
@time_limit()
@with_settings
def free(settings: CommandSettings, run: str) -> None:
    """Free the workers of a run whose coordinator is gone, for other runs.

    They drop unstarted iterations, and results that are not on the coordinator's disk. The
    run can still be resumed from that disk. RUN is an id, the beginning of one, or "last".

    \b
    Examples:
      osbench-coord workers free last
    """
    if not settings.conf.messaging.redis_url:
        raise UsageError(
            "[messaging] redis_url is not set; set it, as workers of local mode end with a run"
        )
    directory = RunDirectory.find(settings.conf.data_dir, run)
    directory.lock()
    try:
        gone, left = dismiss(settings, directory)
    finally:
        directory.close()
    name = directory.path.name
    echo(f"{processes(gone)} of run {name} freed", err=True)
    if left:
        error = FleetError(
            f"{processes(left)} of run {name} did not respond; try again, or stop them"
        )
        error.exit_code = 3
        raise error


def dismiss(settings: CommandSettings, directory: RunDirectory) -> tuple[int, int]:
    """Free the workers of a run; return how many have left, and how many have not.

    `directory` must be locked: no coordinator grants anything then. Journals a higher epoch (number
    of coordinators) first, and waits for the workers. Raises OsbenchError.
    """
    epoch, members = 0, {}
    for record in directory.decisions():
        if record["do"] == "open":
            epoch = max(epoch, int(record["epoch"]))
        elif record["do"] == "member":
            members[str(record["mid"])] = str(record["incarnation"])
    messaging = settings.conf.messaging
    client = connect(messaging.redis_url, messaging.redis_timeout_s)
    try:
        signer = Signer(settings.keyring())
        dismissal = Dismissal(client, signer, directory.path.name, epoch + 1)
        # a coordinator that resumes the run afterwards has a later number than this one
        directory.decide([{"do": "open", "run": directory.path.name, "epoch": epoch + 1}])
        return dismissal.dismiss(members.items())
    finally:
        client.close()


def _list(settings: CommandSettings, *, as_json: bool) -> None:
    conf = settings.conf
    url = conf.messaging.redis_url
    if not url:
        raise UsageError(
            "[messaging] redis_url is not set; set it: workers of local mode exist only in a run"
        )
    client = connect(url, conf.messaging.redis_timeout_s)
    check(client, url)
    heartbeats = HeartbeatReader(client, Signer(settings.keyring()))
    present = heartbeats.present()
    if heartbeats.unverified:
        echo(unverified_message(heartbeats.unverified), err=True)
    strangers = [beat for beat in present if beat.state == OTHER_VERSION]
    if strangers:
        echo(other_version(strangers), err=True)
    elif not present and not heartbeats.unverified:
        echo("no workers; start some with osbench-worker", err=True)
    if as_json:
        rows = [
            {**dataclasses.asdict(beat), "held_by": beat.run, "refused": beat.refused}
            for beat in present
        ]
        echo_json(rows)
        return
    if not present:
        return
    table = TextTable(COLUMNS)
    for beat in present:
        table.add_row(*_row(settings, beat))
    echo_table(table)


def _row(settings: CommandSettings, beat: Heartbeat) -> tuple[str, ...]:
    return (
        plain(f"{beat.host}:{beat.pid}"),
        plain(beat.label),
        _state(settings, beat),
        plain(beat.run),
        str(beat.capacity),
        str(beat.busy),
        f"{beat.cpu:.0%}",
        f"{beat.offset_s * 1000:+.1f} ms",
        str(beat.stuck),
        _refusals(beat),
        plain(beat.version),
    )


def _state(settings: CommandSettings, beat: Heartbeat) -> str:
    if beat.run and RUN_NAME.fullmatch(beat.run):
        directory = RunDirectory.of(settings.conf.data_dir, beat.run)
        if directory.path.is_dir() and not resumable.refusal(directory):
            return "waits for resume"
    return plain(beat.state)


def _refusals(beat: Heartbeat) -> str:
    if not beat.refused:
        return "0"
    reasons = (f"{plain(reason)} {count}" for reason, count in sorted(beat.refusals.items()))
    return f"{beat.refused} ({', '.join(reasons)})"
