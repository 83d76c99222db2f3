"""Nothing starts while the lease is over, and each number keeps exactly one owner."""

from __future__ import annotations

import random
import threading
import time
from time import monotonic_ns

import pytest

from helpers.engines import (
    MS,
    Books,
    S,
    arrivals,
    batch,
    nap,
    until,
    waiting,
)
from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import Outcome
from osbench.worker.engine.engine import NEVER
from osbench.worker.engine.will_page import WillPage

ITERATION, OUTCOME, DUE, STARTED = range(4)


@pytest.fixture(params=["no page", "page"])
def page(request):
    if request.param == "no page":
        yield None
        return
    found = WillPage.create()
    found.join("run-1", "a" * 32)
    found.serve(0, False)
    yield found
    found.close()


def test_nothing_starts_beyond_the_lease_and_what_waits_starts_once_it_is_renewed(closed, page):
    with closed(page=page) as engine:
        engine.add(batch((1, 2_000_001)))
        lease_ns = monotonic_ns() + 30 * MS
        engine.set_lease(lease_ns)
        engine.set_user_limit(6)
        until(lambda: monotonic_ns() > lease_ns and not engine.inflight)
        time.sleep(0.05)
        within = list(engine.rows)
        waiting, returned = engine.queued, engine.returned()
        renewed_ns = monotonic_ns()
        engine.set_lease(NEVER)
        until(lambda: len(engine.rows) > len(within))

        assert returned == []
        assert waiting == 2_000_000 - len(within)
        assert all(row[STARTED] < lease_ns for row in within)
        assert all(row[STARTED] >= renewed_ns for row in engine.rows[len(within) :])


def test_a_number_that_was_taken_as_the_lease_ended_is_started_later(closed):
    with closed() as engine:
        engine.set_lease(monotonic_ns())
        engine.add(batch((1, 11)))
        engine.set_user_limit(3)
        time.sleep(0.05)
        before = engine.unsettled, engine.queued, list(engine.rows)
        engine.set_lease(NEVER)
        until(lambda: len(engine.rows) == 10)

        assert before == (10, 10, [])
        assert engine.returned() == []
        assert sorted(row[ITERATION] for row in engine.rows) == list(range(1, 11))


def test_users_that_wait_for_the_lease_leave_at_the_stop_instant(closed):
    with closed() as engine:
        books = Books(engine)
        engine.set_lease(monotonic_ns())
        engine.add(batch((1, 101)))
        engine.set_user_limit(4)
        engine.stop(monotonic_ns() + 30 * MS)
        until(lambda: books.complete(range(1, 101)))

        assert len(books.returned) == 100
        assert engine.rows == []


def test_a_renewed_lease_does_not_move_the_stop_instant(closed):
    with closed() as engine:
        books = Books(engine)
        engine.stop(monotonic_ns())
        engine.set_lease(NEVER)
        engine.add(batch((1, 11)))
        engine.set_user_limit(1)
        until(lambda: books.complete(range(1, 11)))

        assert engine.rows == []


def test_an_open_load_starts_nothing_without_a_lease_and_drops_what_gets_late(opened):
    with opened(t0_in_ns=0, max_lag_ns=100 * MS) as engine:
        engine.set_lease(monotonic_ns())
        engine.set_user_limit(4)
        engine.add(arrivals([0, MS, 2 * MS, 3600 * S]))
        until(lambda: len(engine.rows) == 3)
        dropped = list(engine.rows)
        engine.set_lease(NEVER)
        engine.add(arrivals([monotonic_ns() - engine.t0_ns], first=5, number=2))
        until(lambda: len(engine.rows) == 4)

        assert {row[OUTCOME] for row in dropped} == {Outcome.DROPPED_LATE}
        assert engine.rows[3][ITERATION] == 5
        assert engine.queued == 1


class SlowTracer:
    """Tracing that takes a while to begin."""

    def sampled(self, iteration):
        time.sleep(0.05)
        return False

    def clear(self):
        """Nothing is traced."""


@pytest.mark.parametrize(("lease_s", "late"), [(0.02, 1), (600.0, 0)])
def test_an_iteration_whose_lease_ends_while_tracing_begins_is_counted(closed, lease_s, late):
    with closed(tracer=SlowTracer()) as engine:
        engine.add(batch((1, 2)))
        tracer = engine.body.tracer

        def sampled(iteration):
            # the user has looked at its lease before
            engine.set_lease(monotonic_ns() + int(lease_s * S))
            return SlowTracer.sampled(tracer, iteration)

        tracer.sampled = sampled
        engine.set_user_limit(1)
        until(lambda: engine.rows)

        assert engine.started_late == late


def test_one_batch_comes_back_and_the_others_run(closed, page):
    with closed(page=page) as engine:
        engine.add(batch((1, 4), (10, 13), number=1))
        engine.add(batch((20, 30), number=2))
        engine.add(batch((4, 6), number=3))
        back = engine.take_back(2)
        engine.set_user_limit(2)
        until(lambda: len(engine.rows) == 8)

        assert back == [(20, 30)]
        assert engine.take_back(2) == []
        assert {row[ITERATION] for row in engine.rows} == {1, 2, 3, 10, 11, 12, 4, 5}


def test_a_batch_that_is_under_way_comes_back_but_for_what_has_started(closed, page):
    go_on = threading.Event()
    with closed(waiting(go_on), page=page) as engine:
        engine.add(batch((1, 51), number=1))
        engine.add(batch((51, 53), number=2))
        engine.set_user_limit(2)
        until(lambda: len(engine.inflight) == 2)
        back = engine.take_back(1)
        go_on.set()
        until(lambda: len(engine.rows) == 4)

        assert back == [(3, 51)]
        assert {row[ITERATION] for row in engine.rows} == {1, 2, 51, 52}


def test_one_batch_of_arrivals_comes_back_and_the_others_run(opened):
    with opened(t0_in_ns=100 * MS, max_lag_ns=60 * S) as engine:
        engine.add(arrivals([0, 2 * MS, 4 * MS], first=1, number=1))
        engine.add(arrivals([1 * MS, 3 * MS], first=8, number=2))
        back = engine.take_back(2)
        engine.set_user_limit(2)
        until(lambda: len(engine.rows) == 3)

        assert back == [(8, 10)]
        assert {row[ITERATION] for row in engine.rows} == {1, 2, 3}


def test_a_number_that_is_put_back_after_its_batch_was_recalled_is_given_back(closed):
    with closed() as engine:
        engine.add(batch((1, 5), number=1))
        engine.take_back(1)
        engine._keep(1, 7)
        engine._keep(2, 8)

        assert engine.returned() == [(7, 8)]
        assert engine.take_back() == [(8, 9)]


def test_a_number_that_is_put_back_by_a_user_outside_the_share_is_started_by_another(closed):
    with closed() as engine:
        engine.set_user_limit(2)
        engine.add(batch((1, 3), number=1))
        until(lambda: len(engine.rows) == 2)
        # both users wait for work by now, or very nearly
        time.sleep(0.05)
        engine._keep(1, 7)

        until(lambda: 7 in {row[ITERATION] for row in engine.rows})


def test_an_arrival_that_is_put_back_after_its_batch_was_recalled_is_given_back(opened):
    with opened() as engine:
        engine.add(arrivals([0], number=1))
        engine.take_back()
        engine._keep((0, 7, 1))
        engine._keep((0, 8, 2))

        assert engine.returned() == [(7, 8)]
        assert engine.take_back() == [(8, 9)]


@pytest.mark.parametrize("seed", range(4))
def test_recalls_and_leases_beside_running_users_keep_each_number_once(closed, seed, page):
    chance = random.Random(seed)
    ran: list[int] = []

    async def work(scenario):
        ran.append(scenario.context["iteration"])
        if scenario.context["iteration"] % 101 == 0:
            await nap(0.001)

    with closed(work, page=page) as engine:
        books, last = Books(engine), 1
        engine.set_user_limit(24)
        recalled: list[tuple[int, int]] = []
        for seq in range(1, 150):
            count = chance.choice([1, 7, 300, 1500])
            engine.add(batch((last, last + count), number=seq))
            last += count
            if chance.random() < 0.4:
                back = engine.take_back(chance.choice([seq, max(1, seq - 1), None]))
                recalled += back
                engine.give_back(back)
            if chance.random() < 0.3:
                engine.set_lease(monotonic_ns() + chance.choice([-1, 0, 1]) * MS)
                time.sleep(chance.random() * 0.002)
                engine.set_lease(monotonic_ns() + 60 * S)
        until(lambda: books.complete(range(1, last)))

        assert set(books.settled().values()) == {1}
        assert sorted(ran) == sorted(row[ITERATION] for row in engine.rows)
        assert not set(ran) & set(Intervals(recalled).members().tolist())
        assert recalled
        assert engine.queued == 0


@pytest.mark.parametrize("seed", range(4))
def test_recalls_and_leases_beside_the_leader_keep_each_arrival_once(opened, seed):
    chance = random.Random(seed)
    with opened(t0_in_ns=0, max_lag_ns=600 * S) as engine:
        books = Books(engine)
        engine.set_user_limit(8)
        done = threading.Event()

        def recall():
            mine = random.Random(-seed)
            while not done.is_set():
                engine.give_back(engine.take_back(mine.randint(1, 120)))
                time.sleep(0.0005)

        thread = threading.Thread(target=recall)
        thread.start()
        for seq in range(1, 120):
            now = monotonic_ns() - engine.t0_ns
            dues = [now + chance.randint(-MS, 3 * MS) for _ in range(10)]
            engine.add(arrivals(dues, first=seq * 10, number=seq))
            if chance.random() < 0.3:
                engine.set_lease(monotonic_ns())
                time.sleep(chance.random() * 0.002)
                engine.set_lease(monotonic_ns() + 60 * S)
        until(lambda: books.complete(range(10, 1200)))
        done.set()
        thread.join()

        assert set(books.settled().values()) == {1}
