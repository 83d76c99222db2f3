"""The claimer makes batches its own ahead of need, and knows of every claim how it ended."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic_ns

import pytest

from helpers.engines import MS, Books, S, arrivals, batch, closed, opened, until
from osbench.common.errors import StoreAway
from osbench.common.intervals import Intervals
from osbench.common.protocol.store import MemoryStore
from osbench.worker.session.claimer import Claimer
from osbench.worker.session.intake import Intake


class Wire:
    """A store whose claims may fail, before or after they took effect."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.store.open({"epoch": "e", "boot": "b"})
        self.claimed: list[int] = []
        #: What is to happen to the next claims: "lost" (the reply) or "away".
        self.trouble: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.asked = 0

    def claim(self, epoch, boot, incarnation, batches):
        self.asked += 1
        self.gate.wait(10)
        trouble = self.trouble.pop(0) if self.trouble else ""
        if trouble == "away":
            raise StoreAway("no answer")
        owners = self.store.claim(epoch, boot, incarnation, batches)
        self.claimed.extend(batches)
        if trouble == "lost":
            raise StoreAway("no answer")
        return owners

    def owns(self, number):
        return self.store.take_away([number]) == [False]


@contextmanager
def claiming(wire: Wire) -> Iterator[Claimer]:
    claimer = Claimer(intake=Intake("r", "e", "w"), epoch="e", incarnation="w", store=wire)
    claimer.server_run_id = "b"
    try:
        yield claimer
    finally:
        wire.gate.set()
        claimer.close()


def offer(claimer, *batches):
    for one in batches:
        assert claimer.offer(one) == ""


def singles(numbers, workload=0):
    """Batches of one number each."""
    return [batch((n, n + 1), number=n, workload=workload) for n in numbers]


def test_what_is_claimed_runs():
    wire = Wire()
    with closed() as engine, claiming(wire) as claimer:
        claimer.serve(engine, 0)
        engine.set_share(4)
        offer(claimer, *singles(range(1, 101)))
        until(lambda: len(engine.rows) == 100)

    assert sorted(wire.claimed) == list(range(1, 101))


def test_a_batch_that_was_taken_away_does_not_run():
    wire = Wire()
    wire.store.take_away([2])
    with closed() as engine, claiming(wire) as claimer:
        claimer.serve(engine, 0)
        engine.set_share(1)
        offer(claimer, *singles([1, 2, 3]))
        until(lambda: len(engine.rows) == 2)

    assert sorted(row[0] for row in engine.rows) == [1, 3]


@pytest.mark.parametrize(("epoch", "boot"), [("other", "b"), ("e", "other")])
def test_nothing_is_claimed_of_another_epoch_or_server(epoch, boot):
    wire = Wire()
    wire.store.open({"epoch": epoch, "boot": boot})
    with closed() as engine, claiming(wire) as claimer:
        claimer.serve(engine, 0)
        engine.set_share(1)
        offer(claimer, *singles([1]))
        until(lambda: wire.asked)

        assert engine.added == 0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"run": "x"}, "of another run"),
        ({"epoch": "x"}, "of another run"),
        ({"incarnation": "x"}, "for another worker process"),
    ],
)
def test_batches_of_others_are_refused(change, why):
    other = batch((1, 2))
    for name, value in change.items():
        object.__setattr__(other, name, value)
    with claiming(Wire()) as claimer:
        assert claimer.offer(other) == why


def test_a_batch_that_was_seen_before_is_refused():
    with claiming(Wire()) as claimer:
        offer(claimer, batch((1, 2), number=5))

        assert claimer.offer(batch((1, 2), number=5)) == "seen before"
        assert claimer.offer(batch((3, 4), number=4)) == "seen before"


def test_nothing_is_claimed_while_the_share_is_none():
    wire = Wire()
    with closed() as engine, claiming(wire) as claimer:
        claimer.serve(engine, 0)
        offer(claimer, *singles([1, 2]))
        time.sleep(0.15)
        before = wire.asked
        engine.set_share(1)
        claimer.wake()
        until(lambda: len(engine.rows) == 2)

    assert before == 0


def test_few_are_claimed_before_anything_is_known():
    wire, go = Wire(), threading.Event()
    with closed(lambda scenario: go.wait(20)) as engine, claiming(wire) as claimer:
        claimer.serve(engine, 0)
        engine.set_share(5)
        offer(claimer, *singles(range(1, 101)))
        until(lambda: len(engine.inflight) == 5 and engine.queued == 5)
        time.sleep(0.15)

        assert len(wire.claimed) == 10
        go.set()


def test_long_iterations_leave_the_rest_to_others(monkeypatch):
    monkeypatch.setattr("osbench.worker.session.claimer.AHEAD_S", 0.01)
    wire, go = Wire(), threading.Event()
    with closed(lambda scenario: go.wait(20)) as engine, claiming(wire) as claimer:
        claimer.serve(engine, 0)
        engine.set_share(10)
        offer(claimer, *singles(range(1, 11)))
        until(lambda: len(engine.inflight) == 10)
        time.sleep(0.15)
        offer(claimer, *singles(range(11, 101)))
        until(lambda: engine.queued)
        time.sleep(0.15)

        assert len(wire.claimed) == 11
        go.set()


def test_one_that_ends_early_does_not_have_many_claimed():
    wire, go = Wire(), threading.Event()

    def work(scenario):
        if scenario.context["iteration"] > 1:
            go.wait(20)

    with closed(work) as engine, claiming(wire) as claimer:
        claimer.serve(engine, 0)
        engine.set_share(5)
        offer(claimer, *singles(range(1, 1001)))
        until(lambda: engine.rows and len(engine.inflight) == 5)
        time.sleep(0.25)

        assert len(wire.claimed) <= 1 + 5 + 5 + 2
        go.set()


def test_short_iterations_have_seconds_of_work_claimed():
    wire = Wire()
    with closed(lambda scenario: time.sleep(0.001)) as engine, claiming(wire) as claimer:
        claimer.serve(engine, 0)
        engine.set_share(4)
        offer(claimer, *(batch((n, n + 20), number=n) for n in range(1, 40_001, 20)))
        until(lambda: len(engine.rows) > 2000)
        begin, before = monotonic_ns(), len(engine.rows)
        time.sleep(0.1)
        rate = (len(engine.rows) - before) / (monotonic_ns() - begin) * S

        assert engine.queued > rate * 0.5
        assert engine.queued < rate * 8


def test_open_arrivals_are_claimed_by_their_due_instants():
    wire = Wire()
    with opened() as engine, claiming(wire) as claimer:
        claimer.serve(engine, 0)
        engine.set_share(1)
        soon, later = arrivals([1 * S, 40 * S]), arrivals([30 * S], first=3, number=2)
        offer(claimer, soon, later)
        until(lambda: engine.queued == 2)
        time.sleep(0.15)

        assert wire.claimed == [1]


@pytest.mark.parametrize("trouble", [["lost"], ["away"], ["lost", "away", "lost"]])
def test_a_claim_without_an_answer_is_asked_for_again(trouble, caplog):
    wire = Wire()
    wire.trouble = trouble
    with closed() as engine, claiming(wire) as claimer:
        claimer.serve(engine, 0)
        engine.set_share(2)
        offer(claimer, *singles(range(1, 11)))
        until(lambda: len(engine.rows) == 10)

    assert sorted(row[0] for row in engine.rows) == list(range(1, 11))
    assert set(wire.claimed) == set(range(1, 11))


def test_a_lost_claim_is_settled_even_after_a_pause():
    wire = Wire()
    wire.trouble = ["lost"]
    wire.gate.clear()
    with closed() as engine, claiming(wire) as claimer:
        books = Books(engine)
        claimer.serve(engine, 0)
        offer(claimer, *singles([1, 2, 3]))
        engine.set_share(1)
        until(lambda: wire.asked)
        pausing = threading.Thread(target=claimer.pause)
        pausing.start()
        engine.stop(monotonic_ns())
        wire.gate.set()
        pausing.join()
        until(lambda: not claimer.unsure and engine.added)
        claimed = set(wire.claimed)
        until(lambda: set(books.settled()) == claimed)

    assert engine.rows == []
    assert claimed == {1}


def test_nothing_is_claimed_after_a_pause():
    wire = Wire()
    with closed() as engine, claiming(wire) as claimer:
        claimer.serve(engine, 0)
        engine.set_share(1)
        offer(claimer, *singles([1]))
        until(lambda: engine.rows)
        claimer.pause()
        offer(claimer, *singles([2]))
        claimer.wake()
        time.sleep(0.15)

        assert wire.claimed == [1]


def test_nothing_is_claimed_after_the_stop_instant():
    wire = Wire()
    with closed() as engine, claiming(wire) as claimer:
        claimer.serve(engine, 0)
        engine.set_share(1)
        engine.stop(monotonic_ns())
        offer(claimer, *singles([1]))
        claimer.wake()
        time.sleep(0.15)

        assert wire.claimed == []


def test_early_batches_wait_for_their_workload_and_old_ones_do_not_stand_in_the_way():
    wire = Wire()
    with closed() as first, closed() as second, claiming(wire) as claimer:
        claimer.serve(first, 0)
        first.set_share(1)
        first.stop(monotonic_ns())
        offer(claimer, batch((1, 10_001), number=1))
        offer(claimer, batch((1, 4), number=2, workload=1))
        time.sleep(0.12)
        before = list(wire.claimed)
        claimer.serve(second, 1)
        second.set_share(1)
        until(lambda: len(second.rows) == 3)

    assert before == []
    assert wire.claimed == [2]
    assert first.added == 0


def test_an_error_of_our_own_does_not_end_the_thread(monkeypatch, caplog):
    wire, broken = Wire(), iter([True, True])
    with closed() as engine, claiming(wire) as claimer:

        def ahead(engine, now):
            if next(broken, False):
                raise ZeroDivisionError
            return 5

        monkeypatch.setattr(claimer, "_ahead", ahead)
        claimer.serve(engine, 0)
        engine.set_share(1)
        offer(claimer, *singles([1]))
        until(lambda: engine.rows)

    assert "internal error" in caplog.text


@pytest.mark.parametrize("seed", range(5))
def test_what_the_store_says_is_ours_comes_back_and_nothing_else(seed):
    """Lost replies, batches taken away and a pause: no number is lost, none starts unclaimed."""
    chance = random.Random(seed)
    wire = Wire()
    wire.trouble = [chance.choice(["", "", "lost", "away"]) for _ in range(12)]
    revoked: set[int] = set()
    with closed(lambda scenario: time.sleep(0.0005)) as engine, claiming(wire) as claimer:
        books = Books(engine)
        claimer.serve(engine, 0)
        engine.set_share(chance.randint(1, 6))
        for number in range(1, 60):
            offer(claimer, batch((number * 10, number * 10 + 5), number=number))
            if chance.random() < 0.2:
                target = chance.randint(1, number)
                revoked |= {target} if wire.store.take_away([target]) == [True] else set()
            time.sleep(0.002 * chance.random())
        claimer.pause()
        engine.stop(monotonic_ns() + chance.choice([0, 20 * MS]))
        until(lambda: not claimer.unsure)
        ours = [number for number in range(1, 60) if number not in revoked and wire.owns(number)]
        expected = Intervals([(number * 10, number * 10 + 5) for number in ours])
        until(lambda: set(books.settled()) == set(expected.members().tolist()))

    assert set(books.settled().values()) <= {1}
    assert not revoked & {row[0] // 10 for row in engine.rows}
