"""A resumed load of which nothing comes is ended, and one that goes on is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from osbench.common.errors import FleetError
from osbench.coordinator.load.run.resumption.stall_watch import STALL_S, StallWatch


class Load:
    """A workload whose one worker holds iterations."""

    def __init__(self) -> None:
        self.beat = SimpleNamespace(busy=0, state="running")
        self.worker = SimpleNamespace(
            present=True, gone=False, name="w", beat=self.beat, user_limit=2, pace=0.0
        )
        self.runner = SimpleNamespace(is_paused=False)
        self.pool = SimpleNamespace(workers={"m": self.worker}, watched_s=0.0)
        self.ledger = SimpleNamespace(settled=5, outstanding=lambda _: self.held)
        self.held = 48
        services: Any = SimpleNamespace(pool=self.pool)
        self.watch = StallWatch(services)
        self.running: Any = [
            SimpleNamespace(results=SimpleNamespace(ledger=self.ledger), runner=self.runner)
        ]

    def after(self, seconds: float) -> None:
        self.pool.watched_s += seconds
        self.watch.look(self.running)


def test_a_load_of_which_nothing_comes_is_ended() -> None:
    load = Load()
    load.after(1)
    load.after(STALL_S)

    with pytest.raises(FleetError, match="no message came from 1 worker process holding 48 iterat"):
        load.after(1)


@pytest.mark.parametrize(
    ("thing", "changed"),
    [
        ("ledger", {"settled": 6}),
        ("beat", {"busy": 1}),
        ("beat", {"state": "preparing"}),
        ("runner", {"is_paused": True}),
        ("worker", {"user_limit": 0}),
        ("worker", {"pace": 0.01}),
    ],
)
def test_a_load_that_goes_on_is_not(thing: str, changed: dict[str, Any]) -> None:
    load = Load()
    load.after(1)
    load.after(STALL_S)
    vars(getattr(load, thing)).update(changed)

    load.after(1)
    load.after(STALL_S)


def test_one_that_waits_for_workers_is_not() -> None:
    load = Load()
    load.held = 0

    load.after(1)
    load.after(2 * STALL_S)
