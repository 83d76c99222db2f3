"""Errors that leave a run to another coordinator, and errors that end it for good."""

from __future__ import annotations

import pytest

from osbench.common.errors import (
    DamagedRun,
    DirectoryRemoved,
    FleetError,
    OlderCopy,
    OsbenchError,
    StorageError,
    StoreUnreachable,
    Superseded,
    UsageError,
)
from osbench.coordinator.load.local.server import ServerDied
from osbench.coordinator.load.run.resumption.endings import leaves_resumable, leaves_workers


@pytest.mark.parametrize("error", [StoreUnreachable, StorageError, ServerDied, DamagedRun])
def test_a_lost_server_or_disk_leaves_workers_unless_the_user_has_ended_the_run(
    error: type[OsbenchError],
) -> None:
    assert leaves_workers(error("lost"), resumed=False, drains=False)
    assert not leaves_workers(error("lost"), resumed=False, drains=True)


def test_missing_workers_are_waited_for_by_the_next_try_only() -> None:
    assert not leaves_workers(FleetError("none"), resumed=False, drains=False)
    assert leaves_workers(FleetError("none"), resumed=True, drains=False)


def test_another_coordinator_and_a_removed_directory_decide_whatever_the_user_did() -> None:
    for drains in (False, True):
        assert leaves_workers(Superseded("gone on"), resumed=False, drains=drains)
        assert not leaves_workers(DirectoryRemoved("gone"), resumed=True, drains=drains)


@pytest.mark.parametrize(
    ("error", "begun", "workers_left", "resumable"),
    [
        (UsageError("wrong"), False, False, False),
        (UsageError("wrong"), True, False, True),
        (StorageError("full"), False, True, True),
        (ZeroDivisionError(), False, False, True),
        (KeyboardInterrupt(), False, False, False),
        (OlderCopy("older"), True, True, False),
        (DirectoryRemoved("gone"), True, False, False),
    ],
)
def test_a_run_with_load_or_an_accident_can_be_resumed(
    error: BaseException, begun: bool, workers_left: bool, resumable: bool
) -> None:
    assert leaves_resumable(error, begun=begun, workers_left=workers_left) is resumable
