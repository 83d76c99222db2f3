"""The closed engine keeps as many users in use as its limit says and accounts for every number."""

from __future__ import annotations

import random
import threading
import time
from itertools import pairwise
from time import monotonic_ns
from types import SimpleNamespace

import pytest

from helpers import engines
from helpers.engines import (
    MS,
    Books,
    Gauge,
    batch,
    nap,
    napping,
    steps,
    think,
    until,
    waiting,
)
from osbench.common.plugin.atomic import ActionTimer
from osbench.common.values.outcomes import Outcome
from osbench.worker.engine.granted_numbers import Wait
from servers.child import PATIENCE_S

ITERATION, OUTCOME, DUE, STARTED, ENDED, IDLE, FAILURE, _, EXTRA = range(9)


def test_every_number_runs_once_on_many_threads(closed):
    ran: list[int] = []
    with closed(lambda scenario: ran.append(scenario.context["iteration"])) as engine:
        engine.add(batch((1, 20_001)))
        engine.add(batch((20_001, 20_002), (20_010, 30_010), number=2))

        engine.set_user_limit(32)
        until(lambda: len(engine.rows) == 30_001)

    expected = [*range(1, 20_002), *range(20_010, 30_010)]
    assert sorted(ran) == expected
    assert sorted(row[ITERATION] for row in engine.rows) == expected
    assert {row[OUTCOME] for row in engine.rows} == {Outcome.OK}


def test_exactly_the_share_runs_at_once_as_it_goes_up_and_down(closed):
    gauge = Gauge()

    async def work(scenario):
        with gauge:
            await nap(0.001)

    with closed(work) as engine:
        engine.add(batch((1, 1_000_000)))
        for user_limit in (3, 7, 2, 0, 5):
            engine.set_user_limit(user_limit)
            # not the gauge: a user may have claimed a number and not begun with it
            until(lambda: not engine.surplus)
            gauge.reset()
            until(lambda user_limit=user_limit: gauge.most == user_limit)
            time.sleep(0.02)

            assert gauge.most == user_limit


def test_users_that_a_ramp_adds_begin_evenly_until_it_adds_more(closed):
    over = threading.Event()
    with closed(waiting(over)) as engine:
        engine.add(batch((1, 102)))
        engine.set_user_limit(1)
        time.sleep(0.02)
        engine.set_user_limit(101)
        until(lambda: len(engine.inflight) == 101)
        over.set()
        until(lambda: len(engine.rows) == 101)

    due = sorted(row[DUE] for row in engine.rows)[1:]
    between = {after - before for before, after in pairwise(due)}
    assert max(between) - min(between) <= 1
    assert due[-1] - due[0] >= 19 * MS
    assert all(row[DUE] <= row[STARTED] for row in engine.rows)


def test_a_lowered_share_is_in_force_once_inflight_shows_it(closed):
    """Who reads `inflight` after lowering the user limit sees all that may still run."""
    gauge = Gauge()

    async def work(scenario):
        with gauge:
            await nap(0.0002)

    with closed(work) as engine:
        engine.add(batch((1, 1_000_000)))
        for _ in range(30):
            engine.set_user_limit(16)
            time.sleep(0.003)
            engine.set_user_limit(4)
            # not how many: one of the others may be between two iterations
            until(lambda: not engine.surplus)
            gauge.reset()
            time.sleep(0.003)

            assert gauge.most <= 4


def test_numbers_that_wait_in_a_shared_run_survive_a_share_of_none(closed):
    with closed() as engine:
        engine.set_user_limit(1)
        engine.add(batch((1, 50_001)))
        engine.add(batch((60_001, 60_101), number=2))
        books = Books(engine)

        for user_limit in (0, 1, 0, 1, 0, 1):
            engine.set_user_limit(user_limit)
            time.sleep(0.002)
        until(lambda: len(books.settled()) == 50_100)

    assert set(books.settled().values()) == {1}


@pytest.mark.parametrize("seed", range(6))
def test_what_was_claimed_is_reported_or_given_back_once(closed, seed):
    chance = random.Random(seed)

    async def work(scenario):
        if scenario.context["iteration"] % 97 == 0:
            await nap(0.001)

    with closed(work, t0_in_ns=10 * MS) as engine:
        books, last = Books(engine), 1
        for number in range(1, 40):
            count = chance.choice([1, 3, 50, 2000])
            engine.add(batch((last, last + count), number=number))
            last += count
            if chance.random() < 0.4:
                engine.set_user_limit(chance.randint(0, 24))
            time.sleep(chance.random() * 0.002)
        engine.stop(monotonic_ns() + chance.choice([0, 3 * MS]))
        engine.add(batch((last, last + 10), number=40))
        last += 10
        until(lambda: books.complete(range(1, last)))

        assert set(books.settled()) == set(range(1, last))
        assert set(books.settled().values()) == {1}
        assert engine.queued == 0
        assert engine.added == last - 1


def test_what_is_claimed_and_not_started_is_queued_wherever_it_waits(closed):
    go_on = threading.Event()

    with closed(waiting(go_on)) as engine:
        engine.add(batch((1, 11), number=1))
        engine.add(batch((11, 14), number=2))
        before = engine.queued
        engine.set_user_limit(2)
        until(lambda: len(engine.inflight) == 2)
        during = engine.queued
        go_on.set()
        until(lambda: len(engine.rows) == 13)

        assert (before, during, engine.queued) == (13, 11, 0)


def test_nothing_starts_at_or_after_the_stop_instant(closed):
    with closed() as engine:
        returned = Books(engine).returned
        engine.add(batch((1, 300_001)))
        stop_ns = monotonic_ns() + 30 * MS
        engine.stop(stop_ns)
        engine.set_user_limit(4)
        until(lambda: monotonic_ns() > stop_ns and not engine.queued and not engine.inflight)
        until(
            lambda: (
                returned.update(engine.returned()) or len(engine.rows) + len(returned) == 300_000
            )
        )

    assert all(row[STARTED] < stop_ns for row in engine.rows)


def test_nothing_starts_before_the_load_and_users_are_free_from_its_start(closed):
    with closed(t0_in_ns=80 * MS) as engine:
        engine.add(batch((1, 101)))
        engine.set_user_limit(4)
        # a busy machine may come to this after the start
        free_ns = max(engine.t0_ns, monotonic_ns())
        until(lambda: len(engine.rows) == 100)

        assert min(row[STARTED] for row in engine.rows) >= engine.t0_ns
        assert sum(row[DUE] == engine.t0_ns for row in engine.rows) <= 4
        assert engine.t0_ns <= min(row[DUE] for row in engine.rows) <= free_ns


def test_an_iteration_is_due_when_its_user_was_free(closed):
    with closed(napping(0.002)) as engine:
        engine.add(batch((1, 21)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 20)

    for before, after in zip(engine.rows, engine.rows[1:], strict=False):
        assert after[DUE] == before[ENDED]
        assert after[STARTED] >= after[DUE]


def test_a_user_that_comes_later_is_free_from_then_on(closed):
    with closed(napping(0.03)) as engine:
        engine.add(batch((1, 1000)))
        engine.set_user_limit(1)
        until(lambda: engine.inflight)
        time.sleep(0.1)
        raised_ns = monotonic_ns()
        begun = len(engine.rows) + 1
        engine.set_user_limit(8)
        until(lambda: len(engine.rows) >= begun + 7)

    first = sorted(engine.rows)[begun : begun + 7]
    assert all(row[DUE] >= raised_ns for row in first)


def test_waiting_for_work_counts_once_the_work_has_come(closed):
    asked: list[None] = []
    with closed(request_work=lambda: asked.append(None)) as engine:
        engine.set_user_limit(2)
        # once for the user limit, and once for each user that waits
        until(lambda: len(asked) >= 3)
        time.sleep(0.06)
        before = engine.want_ns
        engine.add(batch((1, 2)))
        until(lambda: engine.rows)
        counted = engine.want_ns
        time.sleep(0.06)

        assert before == 0
        assert counted >= 60 * MS
        assert engine.want_ns <= counted + 2 * (monotonic_ns() - engine.t0_ns)
        (row,) = engine.rows
        assert row[STARTED] - row[DUE] >= 60 * MS


def test_the_wait_at_the_end_of_all_work_does_not_count(closed):
    with closed() as engine:
        engine.add(batch((1, 101)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 100)
        counted = engine.want_ns
        time.sleep(0.05)

        assert engine.want_ns == counted


def test_waiting_for_work_until_the_stop_instant_counts(closed):
    request_work = threading.Event()
    with closed(request_work=request_work.set) as engine:
        begin_ns = monotonic_ns()
        stop_ns = begin_ns + 1000 * MS
        engine.stop(stop_ns)
        engine.add(batch((1, 2)))
        engine.set_user_limit(2)
        until(lambda: engine.want_ns)
        until(lambda: monotonic_ns() > stop_ns + 20 * MS)
        counted, rows = engine.want_ns, list(engine.rows)
        request_work.clear()

    assert len(rows) == 1
    # users that a busy machine wakes late begin to wait late
    assert 0 < counted <= 2 * (stop_ns - engine.t0_ns)
    # what comes after the stop adds nothing
    assert engine.want_ns == counted


def test_waiting_for_work_without_a_stop_instant_does_not_count_when_it_is_stopped(
    closed,
):
    with closed() as engine:
        engine.set_user_limit(2)
        time.sleep(0.03)
        engine.stop(monotonic_ns())
        time.sleep(0.05)

    assert engine.want_ns == 0


def test_users_that_the_share_has_no_place_for_do_not_wait_for_work(closed):
    with closed() as engine:
        engine.set_user_limit(2)
        engine.set_user_limit(0)
        time.sleep(0.05)
        raised_ns = monotonic_ns()
        engine.add(batch((1, 3)))
        engine.set_user_limit(2)
        until(lambda: len(engine.rows) == 2)

        assert engine.want_ns <= 2 * (monotonic_ns() - raised_ns)
        assert all(row[DUE] >= raised_ns for row in engine.rows)


def test_a_user_without_a_place_does_not_wait_for_a_stop_that_has_passed(closed):
    """It would wait for no time, again and again, and use a core."""
    with closed() as engine:
        engine.stop(monotonic_ns())
        wait = Wait(0, engine.stop_ns)
        assert wait.until_stop

        found = engine._offer(SimpleNamespace(number=1), wait)

    assert found is None
    assert not wait.until_stop


def test_users_request_work_before_they_need_it(closed):
    asked = threading.Event()
    with closed(request_work=asked.set) as engine:
        engine.set_user_limit(1)
        assert asked.wait(PATIENCE_S)
        asked.clear()
        engine.add(batch((1, 101)))

        assert asked.wait(PATIENCE_S)


def test_actions_outputs_and_sleep_stand_in_the_row(closed):
    async def work(scenario):
        with ActionTimer(scenario, "outer"), ActionTimer(scenario, "inner"):
            await think(scenario, 0.003)
        scenario.add_output(additive={"title": "t", "chart_plugin": "Pie", "data": [["a", 1]]})

    with closed(work) as engine:
        engine.add(batch((5, 6)))
        engine.set_user_limit(1)
        until(lambda: engine.rows)

    (row,) = engine.rows
    outer, inner = steps(row)
    assert engine.body.names.names == ["outer", "inner"]
    assert (outer[0], outer[1], outer[4], inner[0], inner[1], inner[4]) == (0, -1, 0, 1, 0, 0)
    assert row[STARTED] <= outer[2] <= inner[2] < inner[3] <= outer[3] <= row[ENDED]
    # a clock that steps, as of a virtual machine that was moved, may show less than was slept
    assert MS <= row[IDLE] <= inner[3] - inner[2]
    trace, outputs, exchanges = row[EXTRA]
    assert trace == exchanges == b""
    assert len(outputs) == 1


def test_an_action_that_was_not_closed_ends_with_its_iteration(closed):
    async def work(scenario):
        ActionTimer(scenario, "open").__enter__()

    with closed(work) as engine:
        engine.add(batch((1, 2)))
        engine.set_user_limit(1)
        until(lambda: engine.rows)

    (row,) = engine.rows
    assert row[OUTCOME] == Outcome.OK
    ((_, _, _, end, failed),) = steps(row)
    assert end == row[ENDED]
    assert failed == 1


def test_outputs_are_packed_at_once_and_cut_where_they_are_too_large(closed):
    async def work(scenario):
        item = {"title": "t", "chart_plugin": "Lines", "data": [1]}
        scenario.add_output(complete=item)
        item["data"] = object()
        if scenario.context["iteration"] == 2:
            scenario.add_output(complete={**item, "data": "x" * 70_000})

    with closed(work) as engine:
        engine.add(batch((1, 3)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 2)

    kept, cut = engine.rows
    assert kept[OUTCOME] == cut[OUTCOME] == Outcome.OK
    assert len(kept[EXTRA][1]) == 1
    assert cut[EXTRA] is None
    assert engine.body.failures.cut == 1


def test_an_attribute_named_as_ours_does_not_stop_the_load(closed):
    async def work(scenario):
        scenario._outputs = {"mine": 1}

    with closed(work) as engine:
        engine.add(batch((1, 2)))
        engine.set_user_limit(1)
        until(lambda: engine.rows)

    assert engine.rows[0][EXTRA] is None


async def _never_awaited():
    """Nobody runs it."""


async def _never_read():
    yield 1


@pytest.mark.parametrize("made", [_never_awaited, _never_read])
def test_what_a_scenario_returns_to_be_awaited_is_a_failure(made):
    """It would pass without having run."""
    with engines.closed(lambda scenario: made()) as engine:
        engine.add(batch((1, 2)))
        engine.set_user_limit(1)
        until(lambda: engine.rows)
        ((_, etype, message, _),) = engine.body.failures.fresh()

    assert engine.rows[0][OUTCOME] == Outcome.FAILED
    assert etype == "TypeError"
    assert "`async def`" in message


def _pieces():
    yield 1


def test_a_generator_of_which_nothing_has_run_is_a_failure():
    def begun(scenario):
        pieces = _pieces()
        if scenario.context["iteration"] == 2:
            next(pieces)
        return pieces

    with engines.closed(begun) as engine:
        engine.add(batch((1, 3)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 2)
        ((_, etype, message, _),) = engine.body.failures.fresh()

    assert [row[OUTCOME] for row in engine.rows] == [Outcome.FAILED, Outcome.OK]
    assert etype == "TypeError"
    assert "its code has not run" in message


def test_users_leave_when_the_engine_is_closed(closed, users):
    before = set(threading.enumerate())
    with closed() as engine:
        engine.set_user_limit(12)
        ours = set(threading.enumerate()) - before

    # with the watchdog
    assert len(ours) == 1 + (12 if users == engines.THREADS else 1)
    until(lambda: not any(thread.is_alive() for thread in ours))
    assert engine.users == 0 or users == engines.THREADS


def test_a_thread_that_the_system_refuses_is_tried_for_again(monkeypatch, caplog):
    start, refusals = threading.Thread.start, iter([True] * 3)

    def stingy(self):
        if self.name.startswith("user-3") and next(refusals, False):
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", stingy)
    with engines.closed() as engine:
        engine.set_user_limit(6)
        until(lambda: engine.users == 6)

    assert [record.getMessage() for record in caplog.records] == [
        "virtual user 4 of 6: can't start new thread"
    ]


def test_unsettled_numbers_are_known_until_they_are_shipped(closed):
    go = threading.Event()
    with closed(waiting(go)) as engine:
        engine.add(batch((1, 4)))
        engine.set_user_limit(1)
        until(lambda: engine.inflight)
        before = engine.unsettled
        go.set()
        until(lambda: len(engine.rows) == 3)

        assert before == engine.unsettled == 3
        engine.shipped += 3
        assert engine.unsettled == 0
