"""The loop over workloads goes on where Redis is away for a moment, before the load too."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from helpers.fixed_clock import FixedClock
from helpers.memberships import handle
from helpers.virtual_time import VirtualTime
from osbench.common.errors import BrokerAway, StoreLost, StoreUnreachable
from osbench.common.protocol import timers
from osbench.coordinator.load.fleet.worker import LeaveReason
from osbench.coordinator.load.run.load_loop import LONGEST_TURN_S, LoadLoop
from osbench.coordinator.load.run.run_history import RunHistory
from osbench.coordinator.load.run.services import Limits
from osbench.coordinator.load.run.status import RunStatus
from osbench.coordinator.load.transport import outages
from osbench.coordinator.load.transport.receiver import Arrival


@pytest.fixture(autouse=True)
def time(virtual_time: VirtualTime) -> VirtualTime:
    return virtual_time


class Workload:
    """A workload whose steps are noted, and that is ready after one look at heartbeats."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.workers = Mock(ready=False)
        self.plan = SimpleNamespace(number=0, users=1)
        self.users_to_end = 0
        self.specification = SimpleNamespace(timeout_s=0.0)
        self.runner = SimpleNamespace(is_search=False)
        #: It is all of its parts.
        self.ending = self.allocation = self.view = self
        self.runs_short = False
        self.scant = 0
        self.wants_workers = True
        self.most_workers = 1

    def prepare(self) -> None:
        self.steps.append("prepare")

    def update_ready_workers(self) -> None:
        self.steps.append("update_ready_workers")
        self.workers.ready = True

    def start(self, t0_at: float) -> None:
        self.steps.append("start")

    def run_pass(self, *, poll: bool) -> None:
        self.steps.append("run_pass")

    def elapsed(self) -> float:
        return 0.0

    def finished(self) -> bool:
        return "run_pass" in self.steps

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
            raise StoreUnreachable("Redis does not respond")
        return self._step(*args, **fields)


def nothing(*args: Any, **named: Any) -> None:
    """A step that does not matter here."""


class Desk:
    """A loop with one workload."""

    def __init__(self) -> None:
        self.workload = Workload()
        self.status = RunStatus()
        self.arrivals: list[Arrival] = []
        self.workers: dict[str, Any] = {}
        self.outages: list[dict[str, Any]] = []
        self.restored: list[Any] = []
        self.services: Any = SimpleNamespace(
            receiver=SimpleNamespace(receive=lambda _: self.arrivals),
            pool=SimpleNamespace(
                poll=nothing, present=[], workers=self.workers, restore=self.restored.append
            ),
            controls=SimpleNamespace(answer=nothing, change=nothing),
            key_notes=SimpleNamespace(look=nothing),
            channel=SimpleNamespace(
                tend=nothing, restate=nothing, ready=nothing, behind=False, broker_away_s=0.0
            ),
            clock=FixedClock(),
            limits=Limits(lost_after_s=3.0, wait_s=0.0, patience_s=60.0),
            accounts=SimpleNamespace(
                memberships={"m-x": "membership"},
                results=defaultdict(lambda: SimpleNamespace(ledger=self)),
            ),
            check=nothing,
            port=SimpleNamespace(decide=self.outages.extend),
            directory=SimpleNamespace(path=Path("no such folder")),
        )
        #: Iterations that each worker has in hand.
        self.in_hand = 100
        failover: Any = SimpleNamespace(detect=nothing, invite=nothing, enlist=nothing)
        workload: Any = self.workload
        note = partial(self.workload.steps.append, "note")
        self.loop = LoadLoop(self.services, self.status, failover, [workload], note)

    def outstanding(self, worker: str) -> int:
        return self.in_hand


@pytest.mark.parametrize("where", ["prepare", "poll", "start", "run_pass"])
def test_a_moment_without_redis_changes_nothing(where):
    desk = Desk()
    owner = desk.services.pool if where == "poll" else desk.workload
    failing = Failing(getattr(owner, where), 2 if where != "start" else 1)
    setattr(owner, where, failing)

    desk.loop.run(lambda: None)

    assert not failing.left
    assert not desk.status.store_away
    assert desk.workload.steps[0] == "prepare"
    # what another coordinator could not know is noted before it cannot be asked for any more
    assert desk.workload.steps[-4:] == ["run_pass", "note", "settle", "end"]


def test_a_resumed_load_makes_its_publisher_before_workers_wait_for_batches() -> None:
    desk = Desk()
    desk.services.channel.ready = partial(desk.workload.steps.append, "ready")
    desk.workload.restore = lambda _: desk.workload.steps.append("restore")
    desk.workload.resume = lambda _: desk.workload.steps.append("resume")
    desk.workload.finished = lambda: True
    earlier: Any = SimpleNamespace(has_begun=lambda _: True, dues=lambda _: ())

    desk.loop.resume(1000.0, earlier, lambda: None)

    assert desk.workload.steps[:3] == ["ready", "restore", "resume"]


def test_redis_that_is_away_for_longer_than_patience_ends_the_run(time):
    desk = Desk()
    desk.services.pool.poll = Failing(desk.services.pool.poll, 1000)
    begun = time.now_s

    with pytest.raises(StoreLost, match="patience_s"):
        desk.loop.run(lambda: None)

    assert 60.0 < time.now_s - begun < 61.0
    assert "start" not in desk.workload.steps


def told(desk: Desk) -> tuple[str, ...]:
    """Sentences of the report."""
    history = RunHistory({})
    for record in desk.outages:
        history.apply(record)
    return history.losses()


def test_the_report_tells_how_long_redis_was_away_in_one_sentence(monkeypatch):
    desk = Desk()
    monkeypatch.setattr(outages, "OUTAGE_S", 0.0)
    turns = iter([False] * 30)
    desk.workload.finished = lambda: next(turns, True)
    desk.services.pool.poll = Failing(desk.services.pool.poll, 1)

    def fail_again(_: Any) -> None:
        desk.services.pool.poll = Failing(nothing, 1)

    desk.workload.start = fail_again
    monkeypatch.setattr(timers, "POLL_S", 0.0)
    desk.loop.run(lambda: None)

    (sentence,) = told(desk)
    assert sentence.startswith("the coordinator could not reach or use Redis 2 times, in all for ")


def test_a_broker_that_is_away_is_not_called_redis(monkeypatch):
    desk = Desk()
    monkeypatch.setattr(outages, "OUTAGE_S", 0.0)
    channel, shown = desk.services.channel, []
    left = iter([True] * 3)

    def refused(*, poll: bool) -> None:
        if next(left, False):
            channel.broker_away_s = 1.0
            raise BrokerAway("the broker at amqp://b does not take messages", server="the broker")
        channel.broker_away_s = 0.0
        desk.workload.steps.append("run_pass")

    desk.workload.run_pass = refused
    desk.workload.show = lambda: shown.append(desk.status.store_away)
    monkeypatch.setattr(timers, "POLL_S", 0.0)
    desk.loop.run(lambda: None)

    (sentence,) = told(desk)
    assert sentence.startswith("the coordinator could not send to the broker for ")
    assert "Redis" not in sentence
    assert shown == ["the broker"] * 3
    assert not desk.status.store_away


def test_a_redis_that_was_away_for_a_moment_is_not_told():
    desk = Desk()
    desk.services.pool.poll = Failing(desk.services.pool.poll, 1)

    desk.loop.run(lambda: None)

    assert desk.outages == []


def test_redis_that_answers_and_takes_no_writes_ends_the_load_too(time):
    desk = Desk()
    begun = time.now_s
    failing = Failing(nothing, 1000)
    desk.workload.start = lambda _: setattr(desk.services.controls, "answer", failing)
    desk.workload.finished = lambda: False

    with pytest.raises(StoreLost, match="patience_s"):
        desk.loop.run(lambda: None)

    assert failing.left < 1000
    assert 60.0 < time.now_s - begun < 61.0


def arrival(mid: str, workload: int = 0, problem: str = "") -> Arrival:
    return Arrival(mid=mid, workload=workload, ran=4, busy_s=2.0, problem=problem)


def test_a_block_is_a_sign_of_life_and_says_how_fast_a_worker_is():
    desk = Desk()
    worker = desk.workers["m-w"] = handle(silence_s=2.0, user_limit=2)
    desk.arrivals = [arrival("m-w")]

    desk.loop.run(lambda: None)

    assert worker.silence_s == 0.0
    assert worker.rate == pytest.approx(4.0)


def test_a_worker_with_less_than_an_iteration_a_user_is_as_fast_as_its_last_block_says():
    speeds = []
    for in_hand in (2, 1):
        desk = Desk()
        desk.in_hand = in_hand
        worker = desk.workers["m-w"] = handle(user_limit=2, rate=0.1)
        desk.arrivals = [arrival("m-w")]
        desk.loop.run(lambda: None)
        speeds.append(worker.rate)

    remembers, follows = speeds
    assert remembers < 4.0
    assert follows == pytest.approx(4.0)


def test_a_block_of_an_earlier_workload_says_nothing_of_the_speed():
    desk = Desk()
    worker = desk.workers["m-w"] = handle(user_limit=2, workload=1)
    desk.arrivals = [arrival("m-w")]

    desk.loop.run(lambda: None)

    assert worker.rate == 0.0


def test_who_sends_what_cannot_be_read_gets_no_more_work():
    desk = Desk()
    worker = desk.workers["m-w"] = handle()
    desk.arrivals = [arrival("m-w", problem="malformed")]

    desk.loop.run(lambda: None)

    assert worker.leave_reason is LeaveReason.UNREADABLE


def test_a_block_of_no_workload_says_nothing_of_the_speed():
    desk = Desk()
    worker = desk.workers["m-w"] = handle(user_limit=2, workload=-1)
    desk.services.accounts.results = {}
    desk.arrivals = [arrival("m-w", workload=-1)]

    desk.loop.run(lambda: None)

    assert worker.rate == 0.0


def test_a_block_of_a_worker_that_nobody_saw_join_makes_it_known():
    desk = Desk()
    desk.arrivals = [arrival("m-x")]

    desk.loop.run(lambda: None)

    assert desk.restored[0] == "membership"


def test_workers_learn_that_turns_last_long_and_soon_forget_it():
    desk = Desk()
    worker = SimpleNamespace(turn_s=0.0)
    desk.services.pool.present = [worker]

    desk.loop._note_turn(timers.POLL_S / 2)
    assert worker.turn_s == 0.0
    desk.loop._note_turn(timers.POLL_S + 0.5)
    assert worker.turn_s == pytest.approx(0.5)
    desk.loop._note_turn(60.0)
    assert worker.turn_s == LONGEST_TURN_S
    for _ in range(50):
        desk.loop._note_turn(0.0)
    assert worker.turn_s < 0.01


def test_a_run_that_was_told_to_stop_waits_a_minute_for_iterations_and_says_so(time, caplog):
    desk = Desk()
    begun = time.now_s
    # it would run for ever without a bound
    desk.workload.finished = lambda: desk.status.interruption.stops or time.now_s > begun + 200
    desk.services.pool.present = [SimpleNamespace(beat=SimpleNamespace(busy=19), trip_s=0.0)]
    desk.workload.start = lambda _: setattr(desk.status.interruption, "level", 1)
    desk.services.contexts = SimpleNamespace(holds=False)

    desk.loop.run(lambda: time.sleep(0.5))

    assert 60.0 <= time.now_s - begun < 63.0
    told = [record.getMessage() for record in caplog.records]
    assert told[0].startswith("stopping: 19 iterations run, and have 50 s more to end; Ctrl-C")
    assert len(told) == 6
    assert told[-1] == "19 iterations have not ended within 60 s: they are abandoned"
