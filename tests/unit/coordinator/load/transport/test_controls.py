"""Control records: what a worker is told, and when it is told nothing yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from helpers.memberships import handle
from osbench.common.protocol.messages import Control
from osbench.coordinator.load.transport.controls import Controls


class Written:
    """Takes records in place of Redis."""

    run_id = "r"

    def __init__(self) -> None:
        self.records: dict[str, Control] = {}

    def control(self, records: Mapping[str, Control]) -> None:
        self.records.update(records)


def controls() -> tuple[Controls, Written]:
    written: Any = Written()
    return Controls(written), written


def test_a_worker_whose_load_is_taken_over_is_not_told_that_it_serves_none() -> None:
    found, written = controls()
    worker = handle("w", workload=3)

    found.answer([worker], taking_over={3})
    assert written.records == {}

    found.change([worker], workload=3, specification=b"digest")
    found.answer([worker], taking_over={3})
    assert written.records["m-w"].workload == 3
    assert written.records["m-w"].answers == worker.beat.beat


def test_a_worker_without_a_load_is_answered() -> None:
    found, written = controls()

    found.answer([handle("w", workload=-1)], taking_over={3})

    assert written.records["m-w"].workload == -1
