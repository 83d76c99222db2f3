"""Where iterations are placed: what did not arrive is sent again, arrivals in large batches."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from helpers.heartbeats import heartbeat
from osbench.common.outcomes import Outcome
from osbench.common.plugin.runner import Step
from osbench.common.protocol.store import MemoryStore
from osbench.coordinator.dispatch.dispatcher import IDLE_S, Dispatcher
from osbench.coordinator.dispatch.open_load import AHEAD_S
from osbench.coordinator.dispatch.port import PlannedBatch
from osbench.coordinator.fleet.worker import Readiness, WorkerHandle
from osbench.coordinator.results.ledger import Ledger

EPOCH, BOOT = "e", "b"


class Desk:
    """A dispatcher whose messages go into a list, and whose workers claim from a real store."""

    def __init__(self, *, open_: bool = False, idempotent: bool = False) -> None:
        self.store = MemoryStore()
        self.store.open({"epoch": EPOCH, "boot": BOOT})
        self.sent: list[PlannedBatch] = []
        self.decisions: list[dict[str, Any]] = []
        self.ledger = Ledger(idempotent=idempotent)
        ids = itertools.count(1)
        port: Any = SimpleNamespace(
            next_batch_id=lambda: next(ids),
            journal=self.decisions.extend,
            publish=self.sent.append,
            revoke=self.store.take_away,
        )
        self.dispatcher = Dispatcher(port, self.ledger, 0, is_open=open_, max_lag_s=1.0)

    def claim(self, batch: PlannedBatch) -> bool:
        owners = self.store.claim(EPOCH, BOOT, batch.worker, [batch.batch])
        return owners == [batch.worker]

    def finish(self, *batches: PlannedBatch) -> None:
        for batch in batches:
            numbers = np.concatenate([np.arange(*pair) for pair in batch.intervals])
            self.ledger.report(batch.worker, numbers, np.full(len(numbers), Outcome.OK, np.uint8))

    def told(self) -> list[PlannedBatch]:
        sent, self.sent[:] = list(self.sent), []
        return sent


def worker(name: str, share: int = 2) -> WorkerHandle:
    return WorkerHandle(heartbeat(name), readiness=Readiness.READY, share=share)


def size(batch: PlannedBatch) -> int:
    return sum(high - low for low, high in batch.intervals)


def numbers(batches: list[PlannedBatch]) -> set[int]:
    return {n for batch in batches for low, high in batch.intervals for n in range(low, high)}


def test_what_never_reached_an_idle_worker_goes_to_one_that_works():
    desk, lost, other = Desk(), worker("w1"), worker("w2")
    desk.dispatcher.place(Step(budget=40), [lost, other], 0.0, None)
    batches = desk.told()
    astray = [batch for batch in batches if batch.worker == "w1"]
    arrived = [batch for batch in batches if batch.worker == "w2"]
    assert all(map(desk.claim, arrived))
    desk.finish(*arrived)
    lost.idle_s = IDLE_S

    desk.dispatcher.rescue([lost, other])
    desk.dispatcher.place(Step(budget=40), [other], 0.0, None)
    again = desk.told()

    assert numbers(again) == numbers(astray)
    assert {batch.worker for batch in again} == {"w2"}
    # whoever finds the message now may not start it
    assert not any(map(desk.claim, astray))
    desk.finish(*again)
    assert not desk.ledger.open
    assert desk.ledger.accounting().ok == 40
    assert lost.idle_s == 0.0


def test_what_an_idle_worker_has_claimed_after_all_stays_with_it():
    desk, slow = Desk(), worker("w1")
    desk.dispatcher.place(Step(budget=8), [slow], 0.0, None)
    batches = desk.told()
    desk.claim(batches[0])
    slow.idle_s = IDLE_S

    desk.dispatcher.rescue([slow])

    left = numbers(batches) - numbers(batches[:1])
    assert set(desk.ledger.pool.members().tolist()) == left
    assert desk.ledger.outstanding("w1") == size(batches[0])


def test_a_worker_is_not_robbed_before_it_was_idle_for_long():
    desk, busy = Desk(), worker("w1")
    desk.dispatcher.place(Step(budget=8), [busy], 0.0, None)
    busy.idle_s = IDLE_S - 0.5

    desk.dispatcher.rescue([busy])

    assert not desk.ledger.pool


def plan(desk: Desk, workers: list[WorkerHandle], horizon_s: float, rate: float = 100.0) -> Any:
    """Ask as a runner that plans arrivals up to `horizon_s` after now answers."""

    def at(elapsed_s: float, stop_s: float | None = None) -> list[PlannedBatch]:
        begin = desk.dispatcher.planned
        end = max(begin, int((elapsed_s + horizon_s) * rate))
        step = Step(arrivals=[number / rate for number in range(begin, end)])
        desk.dispatcher.place(step, workers, elapsed_s, stop_s)
        return desk.told()

    return at


def test_arrivals_far_ahead_wait_until_they_make_a_large_batch():
    desk = Desk(open_=True)
    at = plan(desk, [worker("w1")], AHEAD_S + 2)
    first = at(0.0)

    later = [at(turn / 10) for turn in range(1, 101)]

    assert numbers(first) == set(range(1, 1501))
    sizes = [sum(map(size, sent)) for sent in later if sent]
    assert all(180 <= size <= 220 for size in sizes)
    assert 4 <= len(sizes) <= 5
    assert desk.dispatcher.planned == 2500
    assert all(len(sent) <= 1 for sent in later)


def test_arrivals_that_are_near_go_at_once():
    desk = Desk(open_=True)
    at = plan(desk, [worker("w1")], 1.0)
    at(0.0)

    assert [sum(map(size, at(turn / 10))) for turn in range(1, 6)] == [10] * 5


@pytest.mark.parametrize("stop_s", [15.05, 3.0])
def test_arrivals_that_wait_and_come_after_the_stop_are_never_given_out(stop_s):
    desk = Desk(open_=True)
    at = plan(desk, [worker("w1")], AHEAD_S + 2)
    at(0.0)

    sent = [batch for turn in range(1, 40) for batch in at(turn / 10, stop_s)]

    assert all(due < stop_s * 1e9 for batch in sent for due in np.frombuffer(batch.dues, "<i8"))
    assert len(numbers(sent)) == max(0, round((stop_s - 15) * 100))


def test_the_journal_has_the_arrivals_that_are_dropped_and_not_those_that_may_have_started():
    desk, lost = Desk(open_=True, idempotent=True), worker("w1")
    for due in (0.1, 0.2):
        desk.dispatcher.place(Step(arrivals=(due,)), [lost], 0.0, None)
    claimed, unclaimed = desk.told()
    assert desk.claim(claimed)
    desk.ledger.fence("w1")
    desk.dispatcher.reclaim("w1")

    desk.dispatcher.place(Step(), [], 5.0, None)

    (dropped,) = [one for one in desk.decisions if one["do"] == "drop"]
    assert [tuple(pair) for pair in dropped["numbers"]] == [tuple(*unclaimed.intervals)]
    assert np.frombuffer(dropped["dues"], "<i8").tolist() == [200_000_000]
    assert desk.ledger.accounting().drops == {"worker_lost": 1}
    desk.ledger.close(2)
    assert desk.ledger.accounting().lost == 1
