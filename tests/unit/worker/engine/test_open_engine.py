"""The open engine starts arrivals when they are due, and says why it dropped one."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from time import monotonic_ns

import pytest

from helpers.engines import (
    MS,
    THREADS,
    Books,
    Cores,
    Gauge,
    S,
    arrivals,
    batch,
    nap,
    napping,
    until,
    waited_for,
    waiting,
)
from osbench.common.values.outcomes import Outcome
from osbench.worker.engine.precise_sleep import PreciseSleep

ITERATION, OUTCOME, DUE, STARTED, ENDED = range(5)
DROPPED = {Outcome.DROPPED_MAX_CONCURRENCY, Outcome.DROPPED_CAPACITY, Outcome.DROPPED_LATE}


def outcomes(engine):
    return Counter(Outcome(row[OUTCOME]).name for row in engine.rows)


def test_arrivals_start_when_due_and_not_before(opened):
    dues = [n * 5 * MS for n in range(40)]
    with opened(max_lag_ns=10 * S) as engine:
        engine.add(arrivals(dues))
        engine.set_user_limit(8)
        until(lambda: len(engine.rows) == 40)

    rows = sorted(engine.rows)
    assert [row[DUE] - engine.t0_ns for row in rows] == dues
    assert all(row[STARTED] >= row[DUE] for row in rows)
    assert outcomes(engine) == {"OK": 40}


@pytest.mark.parametrize("idle", [2.0, 0.0])
def test_users_are_awake_before_an_arrival_where_a_core_is_idle(opened, idle):
    sleep = PreciseSleep(1.0, Cores(idle))
    sleep.look(monotonic_ns())

    with opened(max_lag_ns=600 * S) as engine:
        engine._sleep = sleep
        engine.set_user_limit(8)
        # on a busy machine a user may come too late to be awake before any of some arrivals
        for number in range(1, 51):
            begin_ns, count = monotonic_ns() - engine.t0_ns, 40 * number
            dues = [begin_ns + n * 5 * MS for n in range(40)]
            engine.add(arrivals(dues, first=count - 39, number=number))
            until(lambda count=count: len(engine.rows) == count)
            if sleep.awake_ns or not idle:
                break

    assert all(row[STARTED] >= row[DUE] for row in engine.rows)
    assert (sleep.awake_ns > 0) == (idle > 0)


def test_arrivals_do_not_wait_for_others_to_end(opened):
    gauge, go = Gauge(), threading.Event()

    async def work(scenario):
        with gauge:
            await waited_for(go)

    with opened(work, max_lag_ns=20 * S) as engine:
        engine.add(arrivals([n * MS for n in range(30)]))
        engine.set_user_limit(64)
        until(lambda: gauge.now == 30)
        go.set()
        until(lambda: len(engine.rows) == 30)


def test_batches_may_come_in_any_order_and_while_the_leader_sleeps(opened):
    with opened(t0_in_ns=0, max_lag_ns=10 * S) as engine:
        engine.set_user_limit(4)
        # nobody waits for those that are due in ten minutes
        engine.add(arrivals([600 * S, 601 * S], first=3, number=1))
        time.sleep(0.05)
        engine.add(arrivals([150 * MS, 600 * S], first=1, number=2))
        until(lambda: engine.rows)

        assert [row[ITERATION] for row in engine.rows] == [1]
        assert engine.rows[0][STARTED] >= engine.rows[0][DUE]


def test_users_are_started_as_needed_and_never_above_the_share(opened, users):
    gauge = Gauge()

    async def work(scenario):
        with gauge:
            await nap(0.02)

    with opened(work, max_lag_ns=10 * S) as engine:
        engine.add(arrivals([n * MS for n in range(120)]))
        engine.set_user_limit(9)
        at_first = engine.users
        until(lambda: len(engine.rows) == 120)

        assert at_first == (3 if users == THREADS else 0)
        assert gauge.most <= 9
        assert engine.users <= 9
    assert outcomes(engine) == {"OK": 120}


def test_few_users_are_started_for_a_slow_load(opened):
    with opened(max_lag_ns=10 * S) as engine:
        engine.add(arrivals([n * 5 * MS for n in range(200)]))
        engine.set_user_limit(500)
        until(lambda: len(engine.rows) == 200)

        # those that a busy machine starts late start together, and need a user each
        assert engine.users < 100


def test_a_late_arrival_runs_and_its_lag_is_recorded(opened):
    with opened(t0_in_ns=-300 * MS, max_lag_ns=60 * S) as engine:
        engine.add(arrivals([0, 100 * MS]))
        engine.set_user_limit(2)
        until(lambda: len(engine.rows) == 2)

    first, second = sorted(engine.rows)
    assert outcomes(engine) == {"OK": 2}
    assert first[STARTED] - first[DUE] >= 300 * MS
    assert second[STARTED] - second[DUE] >= 200 * MS


@pytest.mark.parametrize("limit", [Outcome.DROPPED_MAX_CONCURRENCY, Outcome.DROPPED_CAPACITY])
def test_arrivals_that_find_all_users_busy_for_too_long_are_dropped_in_time(opened, limit):
    go = threading.Event()
    # so long that a busy machine starts the first two in time
    with opened(waiting(go), max_lag_ns=S, at_limit=limit) as engine:
        engine.add(arrivals([0, 0, 10 * MS, 20 * MS]))
        engine.set_user_limit(2)
        until(lambda: len(engine.rows) == 2)
        held = list(engine.rows)
        go.set()
        until(lambda: len(engine.rows) == 4)

    assert outcomes(engine) == {limit.name: 2, "OK": 2}
    for row in held:
        assert row[OUTCOME] == limit
        assert row[STARTED] == row[ENDED] >= row[DUE] + S


def test_what_was_due_while_all_were_busy_is_not_called_late_after_it(opened):
    """A user that comes back may find it before the watchdog does."""
    # so long that a busy machine starts the first one in time
    with opened(napping(1.1), max_lag_ns=S) as engine:
        engine.look = lambda now: None
        engine.add(arrivals([0, 1 * MS, 2 * MS, 3 * MS]))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 4)

    assert outcomes(engine) == {"OK": 1, "DROPPED_MAX_CONCURRENCY": 3}


def test_arrivals_that_come_too_late_to_a_worker_with_free_users_are_late(opened):
    with opened(t0_in_ns=-5 * S, max_lag_ns=1 * S) as engine:
        engine.set_user_limit(4)
        engine.add(arrivals([0, 1 * S, 6 * S]))
        until(lambda: len(engine.rows) == 3)

    assert outcomes(engine) == {"DROPPED_LATE": 2, "OK": 1}


def test_nothing_starts_at_or_after_the_stop_instant_and_the_rest_comes_back(opened):
    # time enough to say when to stop before that
    with opened(t0_in_ns=1 * S) as engine:
        books = Books(engine)
        engine.add(arrivals([n * MS for n in range(200)]))
        engine.set_user_limit(4)
        stop_ns = engine.t0_ns + 50 * MS
        engine.stop(stop_ns)
        until(lambda: books.complete(range(1, 201)))

    assert set(books.settled().values()) == {1}
    assert len(books.returned.within(51, 201)) == 150
    assert all(row[STARTED] < stop_ns for row in engine.rows)


def test_a_lowered_share_sends_users_away(opened):
    gauge, go = Gauge(), threading.Event()

    async def work(scenario):
        with gauge:
            await waited_for(go)
            await nap(0.005)

    with opened(work, max_lag_ns=600 * S) as engine:
        books = Books(engine)
        engine.add(arrivals([n * MS // 2 for n in range(400)]))
        engine.set_user_limit(12)
        until(lambda: gauge.now == 12)
        engine.set_user_limit(2)
        go.set()
        until(lambda: not engine.surplus)
        gauge.reset()
        until(lambda: books.complete(range(1, 401)))

    assert gauge.most <= 2
    assert set(books.settled().values()) == {1}


@pytest.mark.parametrize("seed", range(6))
def test_every_arrival_is_run_dropped_or_given_back_once(opened, seed):
    chance = random.Random(seed)

    async def work(scenario):
        await nap(chance.choice([0, 0.001, 0.02]))

    with opened(work, t0_in_ns=10 * MS, max_lag_ns=20 * MS) as engine:
        books, last = Books(engine), 1
        engine.set_user_limit(chance.randint(1, 10))
        for number in range(1, 30):
            begin = monotonic_ns() - engine.t0_ns + chance.randint(-30, 20) * MS
            count = chance.randint(1, 25)
            dues = sorted(begin + chance.randint(0, 20 * MS) for _ in range(count))
            engine.add(arrivals(dues, first=last, number=number))
            last += count
            if chance.random() < 0.2:
                engine.set_user_limit(chance.randint(1, 10))
            time.sleep(chance.random() * 0.01)
        engine.stop(monotonic_ns() + chance.choice([0, 10]) * MS)
        engine.add(arrivals([0] * 5, first=last, number=30))
        last += 5
        until(lambda: books.complete(range(1, last)))

        assert set(books.settled()) == set(range(1, last))
        assert set(books.settled().values()) == {1}
        assert engine.added == last - 1
    for row in engine.rows:
        assert (row[STARTED] == row[ENDED]) == (row[OUTCOME] in DROPPED)
        assert row[STARTED] >= row[DUE]


def test_pushes_pops_and_taking_back_at_once_lose_nothing(opened):
    with opened(t0_in_ns=0, max_lag_ns=60 * S) as engine:
        books = Books(engine)
        engine.set_user_limit(16)

        def push():
            for first in range(1, 2001, 10):
                engine.add(arrivals([monotonic_ns() - engine.t0_ns] * 10, first=first))

        thread = threading.Thread(target=push)
        thread.start()
        for _ in range(50):
            engine.give_back(engine.take_back())
            time.sleep(0.001)
        thread.join()
        until(lambda: books.complete(range(1, 2001)))

    assert set(books.settled().values()) == {1}


def test_a_dry_engine_asks_once_for_more(opened):
    asked = []
    with opened(t0_in_ns=0, request_work=lambda: asked.append(1)) as engine:
        engine.set_user_limit(2)
        until(lambda: len(asked) == 2)
        time.sleep(0.05)

        # within its user limit, and as it ran dry
        assert len(asked) == 2


def test_users_leave_when_the_engine_is_closed(opened):
    before = set(threading.enumerate())
    with opened() as engine:
        engine.set_user_limit(5)
        ours = set(threading.enumerate()) - before

    until(lambda: not any(thread.is_alive() for thread in ours))
    assert engine.users == 0


def test_numbers_and_dues_must_agree(opened):
    with opened() as engine, pytest.raises(ValueError, match="zip"):
        engine.add(batch((1, 3), dues=b"\0" * 8))
