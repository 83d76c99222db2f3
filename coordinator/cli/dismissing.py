"""Frees the workers of a run whose coordinator is gone: for `workers free` and `cleanup`."""

from __future__ import annotations

from osbench.common.protocol.envelope import Sealer
from osbench.common.protocol.redis_client import connect
from osbench.coordinator.cli.base import CommandSettings
from osbench.coordinator.fleet.dismissal import Dismissal
from osbench.coordinator.storage.run_directory import RunDirectory


def dismiss(settings: CommandSettings, directory: RunDirectory) -> tuple[int, int]:
    """Free the workers of a run; returns how many left, and how many did not.

    `directory` is locked: no coordinator grants anything meanwhile. Raises OsbenchError.
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
        sealer = Sealer(settings.keyring())
        dismissal = Dismissal(client, sealer, directory.path.name, epoch + 1)
        # a coordinator that resumes the run afterwards has a later number than this one
        directory.decide([{"do": "open", "epoch": epoch + 1}])
        return dismissal.dismiss(members.items())
    finally:
        client.close()
