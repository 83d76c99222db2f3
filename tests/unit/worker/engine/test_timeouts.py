"""An iteration past its limit is recorded once, its user replaced, its thread left alone."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import socket
import threading
import time
from operator import itemgetter
from time import monotonic_ns

import numpy as np
import pytest

from helpers.engines import (
    COROUTINES,
    MS,
    THREADS,
    Books,
    S,
    arrivals,
    batch,
    closed,
    opened,
    steps,
    until,
)
from osbench.common.plugin.atomic import ActionTimer
from osbench.common.protocol.exchanges import EXCHANGE, OWN, pack_kept
from osbench.common.values.outcomes import Outcome
from osbench.worker.engine.engine import IterationTimeout
from osbench.worker.http.http_clients import HttpClients
from servers.child import PATIENCE_S

ITERATION, OUTCOME, DUE, STARTED, ENDED, IDLE, FAILURE, _, EXTRA = range(9)
OVER = threading.Event()


def busy(scenario):
    while not OVER.is_set():
        pass


def asleep_in_pieces(scenario):
    while not OVER.is_set():
        time.sleep(0.01)


def blocked(scenario):
    OVER.wait(PATIENCE_S)


def lock_wait(scenario):
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=1.0)


def deaf(scenario):
    while not OVER.is_set():
        with contextlib.suppress(Exception):
            time.sleep(0.01)


def deaf_to_all(scenario):
    while not OVER.is_set():
        with contextlib.suppress(BaseException):
            time.sleep(0.01)


def late_effects(scenario):
    try:
        blocked(scenario)
    finally:
        with ActionTimer(scenario, "late"):
            scenario.add_output(additive={"title": "t", "chart_plugin": "P", "data": []})


def raising(scenario):
    try:
        blocked(scenario)
    finally:
        raise ValueError("late")


BODIES = [
    busy,
    asleep_in_pieces,
    blocked,
    lock_wait,
    deaf,
    deaf_to_all,
    late_effects,
    raising,
]


@pytest.fixture(autouse=True)
def _free():
    OVER.clear()
    yield
    OVER.set()


@pytest.mark.parametrize("stuck", BODIES)
def test_a_stuck_iteration_is_recorded_once_and_its_user_replaced(stuck):
    def work(scenario):
        if scenario.context["iteration"] == 1:
            stuck(scenario)

    # so long that no other iteration lasts as long on a busy machine
    with closed(work, timeout_s=0.3) as engine:
        engine.add(batch((1, 11)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 10)
        thread = [t for t in threading.enumerate() if t in engine.abandoned]
        OVER.set()
        until(lambda: not any(t.is_alive() for t in thread))
        time.sleep(0.02)

    assert sorted(row[ITERATION] for row in engine.rows) == list(range(1, 11))
    first = engine.rows[0]
    assert first[ITERATION] == 1
    assert first[OUTCOME] == Outcome.TIMED_OUT
    assert first[ENDED] - first[STARTED] >= 300 * MS
    assert {row[OUTCOME] for row in engine.rows[1:]} == {Outcome.OK}
    assert engine.rows[1][DUE] == first[ENDED]


def test_a_call_that_lets_no_other_thread_run_is_recorded_once_when_it_returns():
    with closed(lambda scenario: sum(range(10_000_000)), timeout_s=0.05) as engine:
        books = Books(engine)
        engine.add(batch((1, 4)))
        engine.set_user_limit(1)
        until(lambda: books.complete(range(1, 4)))
        until(lambda: not any(thread.is_alive() for thread in engine.abandoned))

    assert set(books.settled().values()) == {1}


def test_a_thread_that_cannot_be_ended_is_shown_until_it_ends():
    with closed(deaf_to_all, timeout_s=0.05) as engine:
        engine.add(batch((1, 4)))
        engine.set_user_limit(3)
        # a thread is left before its successor starts
        until(lambda: len(engine.abandoned) == engine.users == 3)

        assert not engine.inflight
        OVER.set()
        until(lambda: not any(thread.is_alive() for thread in engine.abandoned))


def test_where_it_stood_is_reported_once_without_our_frames():
    # all of them stand where they wait by then
    with closed(blocked, timeout_s=0.5) as engine:
        engine.add(batch((1, 7)))
        engine.set_user_limit(6)
        until(lambda: len(engine.rows) == 6)
        OVER.set()

    (failure,) = engine.body.failures.fresh()
    number, etype, message, stack = failure
    assert {row[FAILURE] for row in engine.rows} == {number}
    assert (etype, message) == ("IterationTimeout", "no end after 0.5 s")
    assert "OVER.wait(PATIENCE_S)" in stack
    assert "engine.py" not in stack
    assert stack.index("in run") < stack.index("in blocked")


def test_open_actions_end_with_the_timeout():
    def work(scenario):
        with ActionTimer(scenario, "whole"):
            with ActionTimer(scenario, "done"):
                pass
            with ActionTimer(scenario, "stuck"):
                blocked(scenario)

    with closed(work, timeout_s=0.5) as engine:
        engine.add(batch((1, 2)))
        engine.set_user_limit(1)
        until(lambda: engine.rows)

    (row,) = engine.rows
    whole, done, stuck = steps(row)
    assert [step[4] for step in (whole, done, stuck)] == [1, 0, 1]
    assert whole[3] == stuck[3] == row[ENDED]


def test_requests_before_the_timeout_are_kept():
    async def work(scenario):
        scenario._recorder.note_exchange(pack_kept(-1, OWN, 5, 6, 7, 8, 200))
        await asyncio.sleep(20)

    with closed(work, users=COROUTINES, timeout_s=0.5) as engine:
        engine.add(batch((1, 2)))
        engine.set_user_limit(1)
        until(lambda: engine.rows)

    assert engine.rows[0][EXTRA] == (b"", None, pack_kept(-1, OWN, 5, 6, 7, 8, 200))


@pytest.mark.parametrize("users", [THREADS, COROUTINES])
def test_a_request_under_way_at_the_timeout_counts_as_unanswered(users):
    clients = HttpClients([])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"

        def in_thread(scenario):
            clients.blocking_status("GET", url, [], {"timeout": 5}, scenario._recorder)

        async def in_loop(scenario):
            await asyncio.gather(
                *(clients.status("GET", url, [], {}, scenario._recorder) for _ in range(2))
            )

        work = in_thread if users == THREADS else in_loop
        with closed(work, users=users, timeout_s=1) as engine:
            engine.add(batch((1, 2)))
            engine.set_user_limit(1)
            until(lambda: engine.rows)

    found = np.frombuffer(engine.rows[0][EXTRA][2], EXCHANGE)
    assert len(found) == (1 if users == THREADS else 2)
    assert set(found["client"]) == {OWN}
    assert set(found["rest"]) == {0}


def test_what_an_abandoned_thread_does_later_changes_nothing():
    with closed(late_effects, timeout_s=0.05) as engine:
        engine.add(batch((1, 2)))
        engine.set_user_limit(1)
        # the row is there before
        until(lambda: engine.abandoned)
        (row,) = engine.rows
        (thread,) = engine.abandoned
        OVER.set()
        until(lambda: not thread.is_alive())

        assert engine.rows == [row]
        assert steps(row) == []
        assert row[EXTRA] is None


def test_iterations_within_the_limit_are_left_alone():
    with closed(lambda scenario: time.sleep(0.001), timeout_s=30) as engine:
        engine.add(batch((1, 301)))
        engine.set_user_limit(8)
        until(lambda: len(engine.rows) == 300)

    assert {row[OUTCOME] for row in engine.rows} == {Outcome.OK}
    assert not engine.abandoned


@pytest.mark.parametrize("seed", range(4))
def test_iterations_that_end_about_at_their_limit_are_recorded_once(seed):
    """Threads and watchdog race for each: only the one that takes it reports it."""
    chance = random.Random(seed)
    late = []

    def work(scenario):
        try:
            time.sleep(chance.random() * 0.06)
        except IterationTimeout:
            late.append(scenario.context["iteration"])
            raise

    with closed(work, timeout_s=0.03) as engine:
        books = Books(engine)
        engine.add(batch((1, 601)))
        engine.set_user_limit(24)
        until(lambda: books.complete(range(1, 601)))
        until(lambda: not any(thread.is_alive() for thread in engine.abandoned))
        until(lambda: engine.users == 24)

    assert set(books.settled().values()) == {1}
    timed_out = {row[ITERATION] for row in engine.rows if row[OUTCOME] == Outcome.TIMED_OUT}
    assert set(late) <= timed_out
    assert timed_out
    assert len(timed_out) < 600


def test_tiny_iterations_and_a_tiny_limit_lose_nothing():
    with closed(lambda scenario: time.sleep(0), timeout_s=0.0005) as engine:
        books = Books(engine)
        engine.add(batch((1, 20_001)))
        engine.set_user_limit(16)
        until(lambda: books.complete(range(1, 20_001)))
        until(lambda: not any(thread.is_alive() for thread in engine.abandoned))

    assert set(books.settled().values()) == {1}


def test_an_open_engine_replaces_users_within_its_share():
    with opened(blocked, timeout_s=0.05, max_lag_ns=20 * S) as engine:
        engine.add(arrivals([0] * 12))
        engine.set_user_limit(4)
        until(lambda: len(engine.rows) == 12)

        assert engine.users <= 4
        OVER.set()
    assert {row[OUTCOME] for row in engine.rows} == {Outcome.TIMED_OUT}


def test_users_beyond_a_lowered_share_are_not_replaced():
    with closed(blocked, timeout_s=0.1) as engine:
        engine.add(batch((1, 9)))
        engine.set_user_limit(4)
        until(lambda: len(engine.inflight) == 4)
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) >= 5)
        # none while one is replaced
        until(lambda: engine.users == 1)

        assert len(engine.inflight) <= 1
        OVER.set()


def test_an_engine_that_is_closed_still_ends_what_it_has_in_hand():
    with closed(blocked, timeout_s=0.1) as engine:
        engine.add(batch((1, 3)))
        engine.set_user_limit(2)
        until(lambda: len(engine.inflight) == 2)
    until(lambda: not engine.inflight)

    assert {row[OUTCOME] for row in engine.rows} == {Outcome.TIMED_OUT}
    assert monotonic_ns() > engine.t0_ns


@pytest.mark.parametrize("users", [THREADS, COROUTINES])
def test_the_iteration_that_runs_for_longest_is_told_with_its_place(users, monkeypatch):
    over = threading.Event()

    def in_thread(scenario):
        with ActionTimer(scenario, "shop.buy"):
            over.wait(PATIENCE_S)

    async def in_loop(scenario):
        with ActionTimer(scenario, "shop.buy"):
            while not over.is_set():
                await asyncio.sleep(0.01)

    work = in_thread if users == THREADS else in_loop
    with closed(work, users=users) as engine:
        assert engine.longest() is None
        engine.add(batch((1, 3)))
        engine.set_user_limit(2)
        until(lambda: len(engine.inflight) == 2)
        # seconds have not passed
        assert engine.longest() is None

        monkeypatch.setattr("osbench.worker.engine.engine.LONG_NS", 1)
        until(lambda: (engine.longest() or ("", "", ""))[2] == "shop.buy")
        iteration, lasted_ns, action, place = engine.longest()
        over.set()
        until(lambda: len(engine.rows) == 2)

    assert iteration == min(engine.rows, key=itemgetter(STARTED))[ITERATION]
    assert lasted_ns > 0
    assert action == "shop.buy"
    # the scenario's own line, and the one that it waits at
    waits = r"threading\.py:\d+ \(\w+\.wait\)" if users == THREADS else r"tasks\.py:\d+ \(sleep\)"
    assert re.fullmatch(rf"engines\.py:\d+ \(body\.<locals>\.Made\w*\.run\), in {waits}", place)
