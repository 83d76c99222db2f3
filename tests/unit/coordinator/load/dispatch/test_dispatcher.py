"""What is granted to whom and when, what is sent again, what is asked back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from helpers.memberships import handle
from osbench.common.errors import StoreUnreachable
from osbench.common.plugin.runner import Step
from osbench.common.protocol import timers
from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import DROP_REASONS, Outcome
from osbench.coordinator.load.dispatch import open_load
from osbench.coordinator.load.dispatch.batches import UNDELIVERED_MOST
from osbench.coordinator.load.dispatch.dispatcher import Dispatcher
from osbench.coordinator.load.dispatch.open_load import ArrivalRules
from osbench.coordinator.load.dispatch.port import PlannedBatch
from osbench.coordinator.load.fleet.worker import LeaveReason, WorkerHandle
from osbench.coordinator.load.fleet.zones import NO_ZONES, ZoneShares
from osbench.coordinator.results.accounting.ledger import Ledger


class StandingClock:
    """How long a worker was silent must not grow while a test waits for a core."""

    def __init__(self) -> None:
        self._now = time.monotonic()

    def monotonic(self) -> float:
        return self._now


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    monkeypatch.setattr(open_load, "time", StandingClock())


class Desk:
    """A dispatcher whose decisions reach a ledger and whose messages go into a list."""

    def __init__(
        self,
        *,
        open_: bool = False,
        idempotent: bool = False,
        warmup_s: float = 0.0,
        data: Any = None,
        zones: ZoneShares = NO_ZONES,
    ) -> None:
        self.sent: list[PlannedBatch] = []
        self.published = 0
        self.decisions: list[dict[str, Any]] = []
        self.ledger = Ledger(idempotent=idempotent)
        self.handles: dict[str, WorkerHandle] = {}
        self.away = False
        self.dispatcher = Dispatcher(
            self,
            self.ledger,
            0,
            arrivals=ArrivalRules(max_lag_s=1.0, warmup_ns=int(warmup_s * 1e9), zones=zones)
            if open_
            else None,
            data=data,
        )

    def worker(self, name: str, user_limit: int = 2, **fields: Any) -> WorkerHandle:
        found = self.handles[f"m-{name}"] = handle(name, user_limit=user_limit, **fields)
        return found

    def decide(self, records: Iterable[dict[str, Any]]) -> None:
        for record in records:
            self.decisions.append(record)
            if record["do"] == "cut":
                worker = self.handles[record["mid"]]
                self.ledger.cut(worker.name, record["seq"], Intervals(record["intervals"]))
                worker.membership.seq = record["seq"]
            elif record["do"] == "drop":
                why = next(one for one, word in DROP_REASONS.items() if word == record["why"])
                self.ledger.drop(Intervals(record["numbers"]), why)

    def publish(self, batches: Sequence[PlannedBatch]) -> None:
        if self.away:
            raise StoreUnreachable("the broker does not take messages")
        self.sent += batches
        self.published += 1

    def place(self, step: Step, *workers: WorkerHandle, at: float = 0.0) -> list[PlannedBatch]:
        self.dispatcher.place(step, workers, at, None)
        return self.told()

    def finish(self, *batches: PlannedBatch) -> None:
        for batch in batches:
            done = np.concatenate([np.arange(*pair) for pair in batch.intervals])
            codes = np.full(len(done), Outcome.OK, np.uint8)
            self.ledger.report(batch.worker.name, done, codes)

    def told(self) -> list[PlannedBatch]:
        sent, self.sent[:] = list(self.sent), []
        return sent


def size(batch: PlannedBatch) -> int:
    return sum(high - low for low, high in batch.intervals)


def numbers(batches: Iterable[PlannedBatch]) -> set[int]:
    return {n for batch in batches for low, high in batch.intervals for n in range(low, high)}


def silent(worker: WorkerHandle, seconds: float) -> None:
    worker.alive_at = open_load.time.monotonic() - seconds


def beats(worker: WorkerHandle, *, got: int, queued: int = 0, made: int = 0) -> None:
    """A heartbeat that says what the worker has taken, a while after the last message."""
    fields = {**vars(worker.beat), "beat": worker.beat.beat + 1}
    fields |= {"got": got, "queued": queued, "made": made}
    worker.hear(type(worker.beat)(**fields), 0.2, time.monotonic() + timers.RESEND_S + 0.1)


# closed loads


def test_at_first_each_user_gets_a_bounded_number_of_iterations_and_no_more():
    desk = Desk()
    one, two = desk.worker("w1", user_limit=2), desk.worker("w2", user_limit=3)

    batches = desk.place(Step(budget=1000), one, two)

    for worker in (one, two):
        sizes = [size(batch) for batch in batches if batch.worker is worker]
        assert sum(sizes) == timers.BLIND_PER_USER * worker.user_limit
        # what turns out to be too much can be asked back in parts
        assert sizes[:3] == [worker.user_limit, worker.user_limit, 2 * worker.user_limit]
    assert desk.place(Step(budget=1000), one, two) == []


def test_the_batches_of_all_workers_are_sent_in_one_go():
    desk = Desk()
    workers = [desk.worker(f"w{number}") for number in range(200)]

    batches = desk.place(Step(budget=100_000), *workers)

    assert {batch.worker for batch in batches} == set(workers)
    assert desk.published == 1


def test_a_worker_that_reports_nothing_for_a_while_is_asked_for_all_but_two_a_user():
    desk = Desk()
    worker = desk.worker("w1", user_limit=2)
    batches = desk.place(Step(budget=1000), worker)
    beats(worker, got=len(batches), queued=126)

    desk.place(Step(budget=1000), worker, at=timers.BLIND_S / 2)
    assert not worker.recall
    desk.place(Step(budget=1000), worker, at=timers.BLIND_S)

    kept = [batch for batch in batches if batch.seq not in worker.recall]
    assert sum(map(size, kept)) == timers.STOCK_PER_USER * worker.user_limit
    assert [batch.seq for batch in kept] == [1, 2]


def test_a_worker_that_is_far_away_has_longer_to_report():
    desk = Desk()
    worker = desk.worker("w1", user_limit=2)
    worker.beat = replace(worker.beat, uncertainty_s=0.1)
    batches = desk.place(Step(budget=1000), worker)
    beats(worker, got=len(batches), queued=126)

    desk.place(Step(budget=1000), worker, at=timers.BLIND_S + 0.7)
    assert not worker.recall

    desk.place(Step(budget=1000), worker, at=timers.BLIND_S + timers.TRIPS * 0.2)
    assert worker.recall


@pytest.mark.parametrize(("uncertainty_s", "sizes"), [(0.0, [100, 100]), (0.1, [100, 100, 80])])
def test_a_worker_that_is_far_away_gets_a_small_batch_while_it_has_work(uncertainty_s, sizes):
    desk = Desk()
    worker = desk.worker("w1", user_limit=100, rate=100.0, stock=280)
    worker.beat = replace(worker.beat, uncertainty_s=uncertainty_s)

    batches = desk.place(Step(budget=10_000), worker)

    # the last one when there is a second of work beside what runs
    assert [size(batch) for batch in batches] == sizes


def test_a_short_plan_is_shared_out():
    desk = Desk()
    workers = [desk.worker("w1"), desk.worker("w2")]

    batches = desk.place(Step(budget=4), *workers)

    assert [size(batch) for batch in batches] == [2, 2]
    assert {batch.worker.name for batch in batches} == {"w1", "w2"}


def test_a_worker_whose_speed_is_known_has_two_seconds_of_work():
    desk = Desk()
    worker = desk.worker("w1", rate=100.0, stock=200)

    batches = desk.place(Step(budget=10_000), worker)

    assert [size(batch) for batch in batches] == [100, 100]
    assert [batch.seq for batch in batches] == [1, 2]


def test_each_grant_is_journalled_before_it_is_sent():
    desk = Desk()
    worker = desk.worker("w1")
    desk.away = True

    with pytest.raises(StoreUnreachable):
        desk.place(Step(budget=4), worker)

    cuts = [one for one in desk.decisions if one["do"] == "cut"]
    assert [one["seq"] for one in cuts] == [1, 2]
    assert desk.ledger.outstanding("w1") == 4


def test_what_the_broker_did_not_take_is_sent_once_it_does():
    desk = Desk()
    worker = desk.worker("w1")
    desk.away = True
    with pytest.raises(StoreUnreachable):
        desk.place(Step(budget=4), worker)
    desk.away = False

    desk.dispatcher.deliver([worker])

    assert [batch.seq for batch in desk.told()] == [1, 2]
    assert desk.place(Step(budget=4), worker) == []


def test_a_batch_that_did_not_arrive_is_sent_again_as_it_was():
    desk = Desk()
    worker = desk.worker("w1")
    first = desk.place(Step(budget=4), worker)
    beats(worker, got=1)

    desk.dispatcher.deliver([worker])

    again = desk.told()
    assert again == first[1:]
    beats(worker, got=2)
    desk.dispatcher.deliver([worker])
    assert desk.told() == []


def test_a_batch_is_not_sent_again_before_a_heartbeat_could_show_it():
    desk = Desk()
    worker = desk.worker("w1")
    desk.place(Step(budget=4), worker)

    desk.dispatcher.deliver([worker])

    assert desk.told() == []


def test_nothing_is_sent_again_to_a_worker_that_is_lost():
    desk = Desk()
    worker = desk.worker("w1")
    desk.place(Step(budget=4), worker)
    beats(worker, got=0)
    worker.declare_lost()

    desk.dispatcher.deliver([worker])

    assert desk.told() == []


def test_silence_moves_nothing():
    desk = Desk()
    lost, other = desk.worker("w1"), desk.worker("w2")
    batches = desk.place(Step(budget=8), lost, other)
    lost.declare_lost()
    desk.ledger.mark_lost("w1")
    desk.finish(*(batch for batch in batches if batch.worker is other))

    assert desk.place(Step(budget=8), other) == []
    assert desk.ledger.outstanding("w1") == 4


def test_idempotent_work_of_a_lost_worker_goes_to_another_and_never_to_itself():
    desk = Desk(idempotent=True)
    lost, other = desk.worker("w1", stock=4), desk.worker("w2", stock=4)
    batches = desk.place(Step(budget=8), lost, other)
    desk.finish(*(batch for batch in batches if batch.worker is other))
    desk.ledger.mark_lost("w1")
    desk.ledger.offer_again("w1")

    assert desk.place(Step(budget=8), lost) == []
    again = desk.place(Step(budget=8), other)

    astray = numbers(batch for batch in batches if batch.worker is lost)
    assert numbers(again) == astray
    assert desk.ledger.reruns == len(astray)


def test_at_the_end_the_fullest_worker_is_asked_for_what_it_has_not_started():
    desk = Desk()
    full, idle = desk.worker("w1", rate=10.0, stock=20), desk.worker("w2")
    batches = desk.place(Step(budget=20), full)
    beats(full, got=len(batches), queued=18)

    assert desk.place(Step(budget=20), full, idle) == []

    newest = [batch.seq for batch in batches[::-1]]
    assert full.recall == set(newest[: max(1, len(newest) // 2)])
    back = Intervals()
    for seq in full.recall:
        back.update(desk.ledger.batch("w1", seq))
    desk.ledger.give_back("w1", list(back))
    desk.dispatcher.deliver([full])
    assert not full.recall
    moved = desk.place(Step(budget=20), full, idle)
    assert {batch.worker.name for batch in moved} >= {"w2"}


def test_a_recall_is_over_once_the_worker_has_nothing_left_to_give_back():
    desk = Desk()
    worker = desk.worker("w1")
    desk.place(Step(budget=4), worker)
    desk.dispatcher.recall_all([worker])
    assert worker.recall == {1, 2}

    beats(worker, got=2, queued=1)
    desk.dispatcher.deliver([worker])
    assert worker.recall == {1, 2}
    beats(worker, got=2, made=1)
    desk.dispatcher.deliver([worker])
    assert worker.recall == {1, 2}
    worker.membership.acknowledged = 1
    desk.dispatcher.deliver([worker])

    assert worker.recall == set()
    assert desk.ledger.outstanding("w1") == 4


def test_a_batch_that_is_recalled_before_it_was_sent_is_not_sent():
    desk = Desk()
    worker = desk.worker("w1")
    desk.away = True
    with pytest.raises(StoreUnreachable):
        desk.place(Step(budget=4), worker)
    desk.dispatcher.recall_all([worker])
    desk.away = False

    desk.dispatcher.deliver([worker])

    assert desk.told() == []


def test_only_workers_whose_results_cannot_be_read_are_asked_to_stop():
    desk = Desk()
    fine, damaged = desk.worker("w1"), desk.worker("w2")
    desk.place(Step(budget=8), fine, damaged)
    damaged.unreadable()

    desk.dispatcher.recall_unused([fine, damaged])

    assert (fine.recall, damaged.recall) == (set(), {1, 2})
    assert damaged.leave_reason is LeaveReason.UNREADABLE


def test_a_worker_whose_users_have_moved_is_asked_for_what_waits():
    desk = Desk()
    busy, idle = desk.worker("w1"), desk.worker("w2")
    desk.place(Step(budget=8), busy, idle)
    for one in (busy, idle):
        one.user_limit = 0
    idle.beat = replace(idle.beat, queued=2)

    desk.dispatcher.recall_unused([busy, idle])

    assert (busy.recall, idle.recall) == (set(), {1, 2})


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("osbench.coordinator.load.dispatch.batches.UNDELIVERED_S", 0.0)


def given_back(desk: Desk, worker: WorkerHandle) -> None:
    """The worker agrees to give back all that it is asked for."""
    desk.ledger.reject(worker.name, sorted(worker.recall))


@pytest.mark.usefixtures("no_patience")
def test_a_worker_that_takes_nothing_is_asked_for_it_back_and_gets_no_more():
    desk = Desk()
    worker = desk.worker("w1", rate=100.0, stock=200)
    reasons = []
    for _ in range(UNDELIVERED_MOST):
        assert desk.place(Step(budget=4), worker)
        desk.dispatcher.deliver([worker])
        assert worker.recall
        given_back(desk, worker)
        desk.dispatcher.deliver([worker])
        assert not worker.recall
        reasons.append(worker.leave_reason)

    assert reasons == [None, None, LeaveReason.UNREACHABLE]
    assert worker.leaving
    beats(worker, got=worker.membership.seq)
    assert worker.leave_reason is LeaveReason.UNREACHABLE


@pytest.mark.usefixtures("no_patience")
def test_a_worker_that_takes_something_in_between_goes_on():
    desk = Desk()
    worker = desk.worker("w1", rate=100.0, stock=200)
    for _ in range(2 * UNDELIVERED_MOST):
        desk.place(Step(budget=4), worker)
        desk.dispatcher.deliver([worker])
        given_back(desk, worker)
        desk.dispatcher.deliver([worker])
        taken = desk.place(Step(budget=4), worker)
        beats(worker, got=worker.membership.seq)
        desk.dispatcher.deliver([worker])
        desk.finish(*taken)

    assert worker.leave_reason is None


@pytest.mark.usefixtures("no_patience")
def test_nobody_is_blamed_for_what_the_broker_does_not_take():
    desk = Desk()
    worker = desk.worker("w1")
    desk.away = True
    with pytest.raises(StoreUnreachable):
        desk.place(Step(budget=4), worker)
    for _ in range(2 * UNDELIVERED_MOST):
        with pytest.raises(StoreUnreachable):
            desk.dispatcher.deliver([worker])

    assert not worker.recall
    assert worker.leave_reason is None


def test_a_worker_of_an_earlier_coordinator_is_asked_for_what_it_never_took():
    desk = Desk()
    worker = desk.worker("w1")
    for seq in (1, 2):
        desk.ledger.cut("w1", seq, desk.ledger.allot(2, 4))
    worker.membership.seq = 2
    beats(worker, got=1)

    desk.dispatcher.deliver([worker])

    assert worker.recall == {2}
    assert desk.told() == []


# open loads


def plan(desk: Desk, horizon_s: float, rate: float = 100.0) -> Any:
    """Ask as a runner that plans arrivals up to `horizon_s` after now answers."""

    def at(elapsed_s: float, *workers: WorkerHandle, stop_s: float | None = None) -> Any:
        begin = desk.dispatcher.planned
        end = max(begin, int((elapsed_s + horizon_s) * rate))
        step = Step(arrivals=[number / rate for number in range(begin, end)])
        desk.dispatcher.place(step, workers, elapsed_s, stop_s)
        return desk.told()

    return at


def dues(batches: Iterable[PlannedBatch]) -> list[float]:
    return sorted(due / 1e9 for one in batches for due in np.frombuffer(one.dues, "<i8").tolist())


def test_arrivals_are_granted_at_most_a_second_ahead_of_the_last_sign_of_life():
    desk = Desk(open_=True)
    worker = desk.worker("w1")
    at = plan(desk, 15.0)
    silent(worker, 0.4)

    sent = at(0.0, worker)

    assert 0.5 < dues(sent)[-1] < timers.HORIZON_S - 0.4 + 0.001
    assert desk.dispatcher.planned == 1500


@pytest.mark.parametrize("warmup_s", [0.0, 10.0])
def test_a_change_of_the_load_begins_after_the_arrivals_that_were_granted(warmup_s):
    desk = Desk(open_=True, warmup_s=warmup_s)
    worker = desk.worker("w1")
    sent = plan(desk, 15.0)(0.0, worker)

    at_s, planned = desk.dispatcher.cut(0.1)

    assert at_s > dues(sent)[-1]
    assert planned == sum(map(size, sent))


def test_a_change_of_the_load_before_the_first_arrival_is_granted_begins_at_once():
    assert Desk(open_=True).dispatcher.cut(0.0) == (0.0, 0)


def test_arrivals_are_given_out_in_parts_worth_a_message():
    desk = Desk(open_=True)
    worker = desk.worker("w1")
    at = plan(desk, 15.0)
    at(0.0, worker)

    turns = []
    for turn in range(1, 41):
        silent(worker, 0.0)
        turns.append(at(turn / 20, worker))

    sizes = [sum(map(size, sent)) for sent in turns if sent]
    assert 6 <= len(sizes) <= 12
    assert all(len(sent) <= 1 for sent in turns)


def test_a_worker_that_was_not_heard_lately_is_passed_over():
    desk = Desk(open_=True)
    quiet, heard = desk.worker("w1"), desk.worker("w2")
    at = plan(desk, 15.0)
    silent(quiet, 0.9)

    sent = at(0.0, quiet, heard)

    assert {batch.worker.name for batch in sent} == {"w2"}
    assert len(numbers(sent)) > 70


def test_arrivals_that_nobody_was_there_for_are_dropped_when_too_late():
    desk = Desk(open_=True)
    at = plan(desk, 15.0)
    at(0.0)
    assert desk.ledger.allotted == 0

    at(3.0)

    assert desk.ledger.accounting().drops == {"worker_lost": 200}
    (dropped,) = [one for one in desk.decisions if one["do"] == "drop"]
    assert np.frombuffer(dropped["dues"], "<i8")[-1] == 1_990_000_000


def test_arrivals_after_the_stop_are_never_given_out():
    desk = Desk(open_=True)
    worker = desk.worker("w1")
    at = plan(desk, 15.0)

    sent = at(0.0, worker, stop_s=0.3)

    assert dues(sent)[-1] < 0.3
    assert desk.dispatcher.planned == 30


def test_arrivals_that_came_back_go_to_another_worker_with_their_instants():
    desk = Desk(open_=True)
    gone, other = desk.worker("w1"), desk.worker("w2")
    at = plan(desk, 1.0)
    (first,) = at(0.0, gone)
    desk.ledger.consent("w1")

    moved = at(0.1, other)

    assert set(numbers([first])) <= numbers(moved)
    assert dues([first])[0] in dues(moved)


@pytest.mark.parametrize(("idempotent", "state"), [(True, "dropped"), (False, "lost")])
def test_an_arrival_that_may_have_started_is_dropped_only_where_that_does_no_harm(
    idempotent, state
):
    desk = Desk(open_=True, idempotent=idempotent)
    gone = desk.worker("w1")
    desk.place(Step(arrivals=(0.1,)), gone)
    desk.ledger.mark_lost("w1")
    if idempotent:
        desk.ledger.offer_again("w1")

    desk.place(Step(), at=5.0)
    desk.ledger.close(1)

    assert desk.ledger.accounting().state(state) == 1


def test_the_gap_of_a_resumed_load_is_dropped_and_never_made_up():
    desk = Desk(open_=True)
    step = Step(arrivals=[number / 100 for number in range(300)])

    desk.dispatcher.skip(step, 2.0)

    assert desk.ledger.accounting().drops == {"coordinator_gone": 200}
    worker = desk.worker("w1")
    sent = desk.place(Step(), worker, at=2.0)
    assert dues(sent)[0] == pytest.approx(2.0)
    assert desk.dispatcher.planned == 300


# recorded arrivals


class RankedRows:
    """Rows of arrivals, which are their ranks themselves."""

    def encrypt(self, numbers: Intervals, ranks: Sequence[int]) -> bytes:
        return np.array(ranks, "<i8").tobytes()


def made_at(batches: Iterable[PlannedBatch]) -> dict[int, int]:
    """When the arrival of each rank is made, milliseconds after t0."""
    found = {}
    for batch in batches:
        ranks = np.frombuffer(batch.rows, "<i8").tolist()
        assert len(ranks) == size(batch)
        dues = (np.frombuffer(batch.dues, "<i8") // 1_000_000).tolist()
        found.update(zip(ranks, dues, strict=True))
    return found


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_each_arrival_is_made_at_its_own_time_by_however_many_workers(workers: int) -> None:
    desk = Desk(open_=True, data=RankedRows())
    times = sorted(k * 37 % 2700 // 3 for k in range(400))
    staff = [desk.worker(f"w{n}") for n in range(workers)]

    batches = desk.place(Step(arrivals=[at / 1000 for at in times]), *staff)

    assert made_at(batches) == dict(enumerate(times, 1))
    # what a worker gives back is made at its time by another one
    desk.ledger.give_back(batches[0].worker.name, batches[0].intervals)
    again = desk.place(Step(), *staff)
    assert made_at(again).items() <= dict(enumerate(times, 1)).items()
    assert sum(map(size, again)) == size(batches[0])


def test_each_arrival_is_made_at_its_own_time_after_a_resume() -> None:
    desk = Desk(open_=True, data=RankedRows())
    times = [2 * k for k in range(400)]
    first = desk.place(
        Step(arrivals=[at / 1000 for at in times[:250]]), desk.worker("w1"), desk.worker("w2")
    )
    other = Desk(open_=True, data=RankedRows())
    for batch in sorted(first, key=lambda one: one.intervals[0][0]):
        (begin, _), *_ = batch.intervals
        other.dispatcher.restore(begin, np.frombuffer(batch.dues, "<i8").astype(np.int64))
    other.ledger.pool.update(other.ledger.allot_new(250))

    made = made_at(
        other.place(
            Step(arrivals=[at / 1000 for at in times[250:]]), other.worker("w3"), other.worker("w4")
        )
    )

    assert made == dict(enumerate(times, 1))
