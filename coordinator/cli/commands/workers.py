"""The command `workers`: lists the worker processes and their state."""

from __future__ import annotations

import dataclasses
import json

import click
from rich.table import Table

from osbench.common.errors import UsageError
from osbench.common.protocol.envelope import Sealer
from osbench.common.protocol.redis_client import check, connect
from osbench.coordinator.cli.base import CommandSettings, echo_table, with_settings
from osbench.coordinator.fleet.heartbeats import HeartbeatReader
from osbench.coordinator.fleet.worker_request import unverified
from osbench.coordinator.formatting import plain

COLUMNS = (
    "worker", "label", "state", "run", "users", "busy", "cpu", "offset", "stuck", "refused",
    "version",
)  # fmt: skip


@click.command()
@click.option("--json", "as_json", is_flag=True, help="A JSON list with all that is known.")
@with_settings
def workers(settings: CommandSettings, as_json: bool) -> None:
    """List the worker processes and their state.

    Shows virtual users, the run that holds each process, CPU, clock offset and stuck threads.

    \b
    Examples:
      osbench-coord workers
      osbench-coord workers --json
    """
    conf = settings.conf
    url = conf.messaging.redis_url
    if not url:
        raise UsageError(
            "[messaging] redis_url is not set: in local mode workers only exist during a run"
        )
    client = connect(url, conf.messaging.redis_timeout_s)
    check(client, url)
    heartbeats = HeartbeatReader(client, Sealer(settings.keyring()))
    present = heartbeats.present()
    if heartbeats.unverified:
        click.echo(unverified(heartbeats.unverified), err=True)
    elif not present:
        click.echo("no workers; start some with osbench-worker", err=True)
    if as_json:
        rows = [{**dataclasses.asdict(beat), "held_by": holder} for beat, holder in present]
        click.echo(json.dumps(rows))
        return
    table = Table(*COLUMNS, box=None)
    for beat, holder in present:
        table.add_row(
            plain(f"{beat.host}:{beat.pid}"),
            plain(beat.label),
            plain(beat.state),
            plain(holder),
            str(beat.capacity),
            str(beat.busy),
            f"{beat.cpu:.0%}",
            f"{beat.offset_s * 1000:+.1f} ms",
            str(beat.stuck),
            str(beat.refused),
            plain(beat.version),
        )
    echo_table(table)
