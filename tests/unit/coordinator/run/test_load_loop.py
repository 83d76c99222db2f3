"""The loop over workloads goes on where Redis is away for a moment, before the load too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from osbench.common.errors import StoreAway, StoreLost
from osbench.coordinator.run.load_loop import LoadLoop
from osbench.coordinator.run.status import RunStatus


class Workload:
    """A workload whose steps are noted, and that is ready after one look at heartbeats."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.workers = SimpleNamespace(ready=False)
        self.plan = SimpleNamespace(number=0)
        self.lost: list[Any] = []

    def prepare(self) -> None:
        self.steps.append("prepare")

    def await_workers(self) -> None:
        self.steps.append("await_workers")
        self.workers.ready = True

    def start(self, t0_at: float) -> None:
        self.steps.append("start")

    def turn(self, *, poll: bool) -> None:
        self.steps.append("turn")

    def record_lost(self, worker: Any) -> None:
        self.lost.append(worker)

    def elapsed(self) -> float:
        return 0.0

    def finished(self) -> bool:
        return "turn" in self.steps

    def settle(self) -> None:
        self.steps.append("settle")

    def end_hooks(self) -> None:
        self.steps.append("end")

    def show(self) -> None:
        """Nothing is shown."""


class Failing:
    """A step that fails a number of times."""

    def __init__(self, step: Any, times: int) -> None:
        self._step = step
        self.left = times

    def __call__(self, *args: Any, **fields: Any) -> Any:
        if self.left:
            self.left -= 1
            raise StoreAway("Redis does not answer")
        return self._step(*args, **fields)


def nothing(*args: Any) -> None:
    """A step that does not matter here."""


def another_server() -> None:
    raise StoreLost("Redis was restarted")


class Desk:
    """A loop with one workload."""

    def __init__(self, verify: Any = nothing) -> None:
        self.workload = Workload()
        self.status = RunStatus()
        self.services: Any = SimpleNamespace(
            receiver=SimpleNamespace(receive=nothing),
            pool=SimpleNamespace(poll=nothing, present=[]),
            controls=SimpleNamespace(change=nothing),
            channel=SimpleNamespace(trim=nothing, behind=False, untrimmed=0, broker_away_s=0.0),
            clock=SimpleNamespace(now_s=lambda: 0.0),
            server=SimpleNamespace(verify=verify),
            limits=SimpleNamespace(patience_s=60.0),
            check=nothing,
        )
        self.lost: dict[str, Any] = {}
        failover: Any = SimpleNamespace(fence_read=self.lost.get)
        workload: Any = self.workload
        self.loop = LoadLoop(self.services, self.status, failover, [workload])


@pytest.mark.parametrize("where", ["prepare", "poll", "start", "turn"])
def test_a_moment_without_redis_changes_nothing(where):
    desk = Desk()
    owner = desk.services.pool if where == "poll" else desk.workload
    failing = Failing(getattr(owner, where), 2 if where != "start" else 1)
    setattr(owner, where, failing)

    desk.loop.run(lambda: None)

    assert not failing.left
    assert not desk.status.store_away
    assert desk.workload.steps[0] == "prepare"
    assert desk.workload.steps[-3:] == ["turn", "settle", "end"]


def test_another_redis_before_the_load_ends_the_run():
    desk = Desk(another_server)
    desk.services.pool.poll = Failing(desk.services.pool.poll, 1)

    with pytest.raises(StoreLost, match="restarted"):
        desk.loop.run(lambda: None)

    assert "start" not in desk.workload.steps


def test_a_worker_whose_fence_is_read_is_recorded_as_lost_by_its_workload():
    desk = Desk()
    desk.lost = {"n1": SimpleNamespace(workload=0), "n2": SimpleNamespace(workload=1)}
    desk.loop._failover.fence_read = desk.lost.get
    fences = iter(["n1", "n2", "forged"])

    def receive(_: float, on_fence: Any) -> None:
        for nonce in fences:
            on_fence(nonce)

    desk.services.receiver.receive = receive

    desk.loop.run(lambda: None)

    assert desk.workload.lost == [desk.lost["n1"]]
