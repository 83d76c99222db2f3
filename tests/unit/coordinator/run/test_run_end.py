"""The end of a run while Redis is away, and what is told of blocks that did not arrive."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from helpers.memberships import handle
from osbench.common.errors import StoreAway
from osbench.coordinator.fleet.worker import WorkerHandle, WorkerState
from osbench.coordinator.results.accounts import Accounts
from osbench.coordinator.run import release
from osbench.coordinator.run.disturbances import remarks_of


class EndingRun:
    """The services of a run that ends: Redis fails some times, then the worker leaves."""

    def __init__(self, worker: WorkerHandle, failures: int) -> None:
        self.worker, self.failures = worker, failures
        self.told = self.tended = 0
        self.closed = False
        self.checked = 0

    def services(self) -> Any:
        pool = SimpleNamespace(
            workers={self.worker.mid: self.worker}, invited={}, poll=lambda: None, refused=0
        )
        return SimpleNamespace(
            pool=pool,
            channel=SimpleNamespace(tend=self.tend, close=self.close, rollbacks=0, refusals={}),
            controls=SimpleNamespace(
                dismiss=lambda _: None, restate=lambda _: None, change=self.change
            ),
            receiver=SimpleNamespace(receive=lambda _: []),
            accounts=Accounts(),
            check=self.check,
        )

    def tend(self) -> None:
        self.tended += 1
        if self.failures:
            self.failures -= 1
            raise StoreAway("Redis does not answer")

    def change(self, workers: Any, *, over: bool) -> None:
        self.told += over
        self.worker.state = WorkerState.LEFT

    def close(self, left: Any, offered: Any) -> None:
        self.closed = True

    def check(self) -> None:
        self.checked += 1


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "AWAY_S", 0.0)


def test_a_redis_that_is_away_at_the_end_is_waited_for() -> None:
    run = EndingRun(handle(), failures=3)

    release.release(run.services(), 60.0)

    # its stream is made anew before the workers hear of the end, so that they can deliver
    assert (run.tended, run.checked, run.told, run.closed) == (4, 3, 1, True)


def test_nobody_waits_for_it_without_patience(caplog: pytest.LogCaptureFixture) -> None:
    run = EndingRun(handle(), failures=10)

    release.release(run.services(), 0.0)

    assert not run.closed
    assert "the run's keys could not be removed: Redis does not answer" in caplog.text


def test_blocks_that_did_not_arrive_are_counted_in_the_report() -> None:
    worker = handle("host.7.aa", made=5)
    worker.membership.note(1)
    worker.membership.note(3)
    run = EndingRun(worker, failures=0)

    (said,) = remarks_of(run.services())

    assert said.startswith("3 result blocks did not arrive from host.7.aa: ")


def test_nothing_is_told_where_all_blocks_arrived() -> None:
    worker = handle(made=2)
    # the last one came after the last heartbeat
    for number in (1, 2, 3):
        worker.membership.note(number)

    assert list(remarks_of(EndingRun(worker, failures=0).services())) == []
