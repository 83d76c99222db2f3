"""What users that share an event loop have beyond those with a thread each."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import re
import threading
import time
import warnings
from time import monotonic_ns

import pytest

from helpers.engines import COROUTINES, MS, THREADS, Books, Gauge, S, arrivals, batch, steps, until
from helpers.engines import closed as _closed
from helpers.engines import opened as _opened
from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.common.plugin.scenario import Scenario
from osbench.common.protocol.columns import decode_rows
from osbench.common.values.outcomes import Outcome
from osbench.worker.engine.asides import KINDS, OTHERS, Asides, tell_forgotten_awaits
from osbench.worker.engine.engine import HeldLoop
from osbench.worker.engine.loop import blocking_calls
from osbench.worker.session.result_source import ResultSource
from servers.child import PATIENCE_S

ITERATION, OUTCOME, DUE, STARTED, ENDED, IDLE, FAILURE, _, EXTRA = range(9)
OVER = threading.Event()


@pytest.fixture(autouse=True)
def _free():
    OVER.clear()
    yield
    OVER.set()


def closed(work, **more):
    return _closed(work, users=COROUTINES, **more)


def opened(work, **more):
    return _opened(work, users=COROUTINES, **more)


async def forever(scenario):
    await asyncio.Event().wait()


async def deaf(scenario):
    while not OVER.is_set():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)


async def spinning(scenario):
    while not OVER.is_set():
        await asyncio.sleep(0)


async def raising(scenario):
    try:
        await forever(scenario)
    finally:
        raise ValueError("late")


async def late_effects(scenario):
    try:
        await forever(scenario)
    finally:
        with ActionTimer(scenario, "late"):
            scenario.add_output(additive={"title": "t", "chart_plugin": "P", "data": []})


async def in_a_call(scenario):
    await scenario.run_blocking(OVER.wait, 20.0)


async def in_a_group(scenario):
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(forever(scenario))


async def with_a_limit_of_its_own(scenario):
    async with asyncio.timeout(60):
        await forever(scenario)


BODIES = [
    forever,
    deaf,
    spinning,
    raising,
    late_effects,
    in_a_call,
    in_a_group,
    with_a_limit_of_its_own,
]


@pytest.mark.parametrize("stuck", BODIES)
def test_a_stuck_iteration_is_recorded_once_and_its_user_replaced(stuck):
    async def work(scenario):
        if scenario.context["iteration"] == 1:
            await stuck(scenario)

    # so long that no other iteration lasts as long on a busy machine
    with closed(work, timeout_s=0.3) as engine:
        engine.add(batch((1, 11)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 10)
        left = list(engine.abandoned)
        OVER.set()
        until(lambda: not any(one.is_alive() for one in left))
        time.sleep(0.02)

        assert engine.users == 1
    assert sorted(row[ITERATION] for row in engine.rows) == list(range(1, 11))
    first = engine.rows[0]
    assert first[ITERATION] == 1
    assert first[OUTCOME] == Outcome.TIMED_OUT
    assert first[ENDED] - first[STARTED] >= 300 * MS
    assert (steps(first), first[EXTRA]) == ([], None)
    assert {row[OUTCOME] for row in engine.rows[1:]} == {Outcome.OK}
    assert engine.rows[1][DUE] == first[ENDED]


def test_a_coroutine_that_cannot_be_ended_is_shown_until_it_ends():
    with closed(deaf, timeout_s=0.05) as engine:
        engine.add(batch((1, 4)))
        engine.set_user_limit(3)
        until(lambda: len(engine.abandoned) == 3)

        assert not engine.inflight
        OVER.set()
        until(lambda: not any(one.is_alive() for one in engine.abandoned))


def test_a_blocking_call_that_outlives_its_iteration_is_shown_until_it_ends():
    with closed(in_a_call, timeout_s=0.05) as engine:
        engine.add(batch((1, 3)))
        engine.set_user_limit(2)
        until(lambda: len(engine.rows) == 2)
        until(lambda: sum(one.is_alive() for one in engine.abandoned) == 2)
        OVER.set()
        until(lambda: not any(one.is_alive() for one in engine.abandoned))


def test_where_it_stood_is_reported_without_our_frames():
    async def inner(scenario):
        await forever(scenario)

    async def work(scenario):
        await inner(scenario)

    # all of them stand where they wait by then
    with closed(work, timeout_s=0.5) as engine:
        engine.add(batch((1, 7)))
        engine.set_user_limit(6)
        until(lambda: len(engine.rows) == 6)

    (failure,) = engine.body.failures.fresh()
    number, etype, message, stack = failure
    assert {row[FAILURE] for row in engine.rows} == {number}
    assert (etype, message) == ("IterationTimeout", "no end after 0.5 s")
    assert "coroutine_engine.py" not in stack
    assert stack.index("in work") < stack.index("in inner") < stack.index("in forever")


@pytest.mark.parametrize("seed", range(3))
def test_iterations_that_end_about_at_their_limit_are_recorded_once(seed):
    late = []

    async def work(scenario):
        try:
            await asyncio.sleep(0.02 + (scenario.context["iteration"] * 7 + seed) % 30 / 1000)
        except asyncio.CancelledError:
            late.append(scenario.context["iteration"])
            raise

    with closed(work, timeout_s=0.03) as engine:
        books = Books(engine)
        engine.add(batch((1, 601)))
        engine.set_user_limit(24)
        until(lambda: books.complete(range(1, 601)))
        until(lambda: engine.users == 24)

    assert set(books.settled().values()) == {1}
    timed_out = {row[ITERATION] for row in engine.rows if row[OUTCOME] == Outcome.TIMED_OUT}
    assert set(late) <= timed_out
    assert timed_out


def test_an_open_engine_replaces_users_within_its_share():
    with opened(deaf, timeout_s=0.05, max_lag_ns=20 * S) as engine:
        engine.add(arrivals([0] * 12))
        engine.set_user_limit(4)
        until(lambda: len(engine.rows) == 12)

        assert engine.users <= 4
        OVER.set()
    assert {row[OUTCOME] for row in engine.rows} == {Outcome.TIMED_OUT}


def test_an_engine_that_is_closed_still_ends_what_it_has_in_hand():
    with closed(forever, timeout_s=0.1) as engine:
        engine.add(batch((1, 3)))
        engine.set_user_limit(2)
        until(lambda: len(engine.inflight) == 2)
    until(lambda: not engine.inflight)

    assert {row[OUTCOME] for row in engine.rows} == {Outcome.TIMED_OUT}


@pytest.mark.parametrize(
    "error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit]
)
def test_whatever_an_iteration_raises_is_its_failure_and_the_next_runs(error):
    async def work(scenario):
        if scenario.context["iteration"] == 1:
            await asyncio.sleep(0)
            raise error

    with closed(work) as engine:
        engine.add(batch((1, 4)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 3)

    assert [row[OUTCOME] for row in engine.rows] == [Outcome.FAILED, Outcome.OK, Outcome.OK]


async def returning_a_coroutine(scenario):
    return asyncio.sleep(60)


async def calling_a_coroutine(scenario):
    await scenario.run_blocking(asyncio.sleep, 60)


@pytest.mark.parametrize(
    ("work", "told"),
    [(returning_a_coroutine, "await it there"), (calling_a_coroutine, "await that itself")],
)
def test_a_coroutine_that_nobody_awaits_fails_its_iteration(work, told):
    with closed(work) as engine:
        engine.add(batch((1, 3)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 2)

    assert {row[OUTCOME] for row in engine.rows} == {Outcome.FAILED}
    [[_, etype, message, _]] = engine.body.failures.fresh()
    assert etype == "TypeError"
    assert told in message


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("error", [SystemExit, ValueError])
def test_a_task_that_a_scenario_leaves_behind_does_not_end_the_loop(error, caplog):
    async def failing():
        raise error("secret")

    async def work(scenario):
        scenario.left = asyncio.get_running_loop().create_task(failing())
        del scenario.left
        await asyncio.sleep(0.001)

    with closed(work) as engine, caplog.at_level(logging.WARNING):
        engine.add(batch((1, 41)))
        engine.set_user_limit(2)
        until(lambda: len(engine.rows) == 40)

    assert {row[OUTCOME] for row in engine.rows} == {Outcome.OK}
    assert "secret" not in caplog.text
    [[told, count]] = engine.body.asides.fresh()
    name = re.escape(f"left behind failed with {error.__name__}: test_coroutines.py")
    assert re.search(rf"{name}:\d+$", told)
    assert count == 40


def test_a_coroutine_that_is_dropped_is_told_with_its_place():
    asides = Asides()

    async def step():
        """Nobody runs it."""

    def work():
        step()

    with warnings.catch_warnings():
        tell_forgotten_awaits(asides.add)
        for _ in range(3):
            work()
        told = asides.fresh()
        tell_forgotten_awaits(asides.add)
        work()

    line = work.__code__.co_firstlineno + 1
    (first,) = told
    assert first[0].endswith(f"step' was never awaited: test_coroutines.py:{line}")
    assert (first[1], asides.fresh()) == (3, [[first[0], 1]])


@pytest.mark.parametrize("users", [THREADS, COROUTINES])
def test_an_iteration_that_drops_a_coroutine_fails(users):
    async def step():
        """Nobody runs it."""

    async def of_a_task():
        step()

    def work(scenario):
        if scenario.context["iteration"] % 2:
            step()

    async def awaited(scenario):
        work(scenario)
        # not within the iteration's own task: counted, and no failure
        await asyncio.get_running_loop().create_task(of_a_task())

    with warnings.catch_warnings():
        with _closed(work if users == THREADS else awaited, users=users) as engine:
            tell_forgotten_awaits(engine.forget)
            engine.add(batch((1, 41)))
            engine.set_user_limit(4)
            until(lambda: len(engine.rows) == 40)
        source = ResultSource(engine, 0)
        contents = source.contents()
        again = source.contents()
        source.stored(contents)

    for found in (contents, again):
        columns = decode_rows(found.fields["columns"])
        failed = {*columns.iteration[columns.outcome == Outcome.FAILED].tolist()}
        assert failed == set(range(1, 41, 2))
    [[_, etype, message, _]] = contents.fields["failures"]
    assert etype == "ForgottenAwait"
    line = work.__code__.co_firstlineno + 2
    assert message.endswith(f"step' was never awaited: test_coroutines.py:{line}")
    assert sum(count for _, count in contents.fields["asides"]) == (0 if users == THREADS else 40)
    assert engine.forgotten == {}


@pytest.mark.parametrize("users", [THREADS, COROUTINES])
def test_a_coroutine_that_is_dropped_by_a_user_that_begins_is_an_aside(users):
    async def step():
        """Nobody runs it."""

    def begin(scenario):
        step()

    with warnings.catch_warnings():
        with _closed(lambda _: None, users=users, on_start=begin) as engine:
            tell_forgotten_awaits(engine.forget)
            engine.add(batch((1, 3)))
            engine.set_user_limit(1)
            until(lambda: len(engine.rows) == 2)
        contents = ResultSource(engine, 0).contents()

    assert contents.fields["failures"] == []
    assert sum(count for _, count in contents.fields["asides"]) == 1
    assert engine.forgotten == {}


def test_kinds_of_what_goes_wrong_are_bounded():
    asides = Asides()
    for number in range(KINDS + 20):
        asides.add(f"kind {number}")

    counts = dict(asides.fresh())

    assert len(counts) == KINDS + 1
    assert counts[OTHERS] == 20


def test_actions_of_tasks_side_by_side_are_no_parents_of_each_other():
    async def part(scenario, name, sleep_s):
        with ActionTimer(scenario, name):
            await asyncio.sleep(sleep_s)
            with ActionTimer(scenario, f"within {name}"):
                await asyncio.sleep(sleep_s)

    async def work(scenario):
        with ActionTimer(scenario, "whole"):
            await asyncio.gather(part(scenario, "a", 0.002), part(scenario, "b", 0.003))
        with ActionTimer(scenario, "after"):
            pass

    with closed(work) as engine:
        engine.add(batch((1, 2)))
        engine.set_user_limit(1)
        until(lambda: engine.rows)

    names, found = engine.body.names.names, steps(engine.rows[0])
    parents = {names[step[0]]: names[found[step[1]][0]] if step[1] >= 0 else None for step in found}
    assert parents == {
        "whole": None,
        "a": "whole",
        "b": "whole",
        "within a": "a",
        "within b": "b",
        "after": None,
    }
    assert all(step[2] <= step[3] and not step[4] for step in found)


def test_an_action_of_a_task_left_behind_ends_with_its_iteration():
    async def part(scenario):
        with ActionTimer(scenario, "open"):
            await forever(scenario)

    kept = []

    async def work(scenario):
        kept.append(asyncio.get_running_loop().create_task(part(scenario)))
        await asyncio.sleep(0.001)

    with closed(work) as engine:
        engine.add(batch((1, 2)))
        engine.set_user_limit(1)
        until(lambda: engine.rows)

    (row,) = engine.rows
    ((_, _, _, end, failed),) = steps(row)
    assert (end, failed) == (row[ENDED], 1)


def test_a_method_that_is_a_coroutine_can_be_an_action():
    class Timed(Scenario):
        @action_timer("step")
        async def step(self):
            await asyncio.sleep(0.002)
            return 7

    async def run():
        scenario = Timed({})
        found = await scenario.step()
        return found, scenario._recorder.actions

    found, (_, parent, start, end, failed) = asyncio.run(run())
    assert (found, parent, failed) == (7, -1, 0)
    assert end - start >= 2 * MS


NOTE = contextvars.ContextVar("note")


def test_a_blocking_call_has_the_context_of_its_caller_and_a_thread_of_its_own():
    seen = []

    def call(a, b):
        seen.append((threading.current_thread().name, NOTE.get()))
        return a + b

    async def work(scenario):
        NOTE.set(scenario.context["iteration"])
        assert await scenario.run_blocking(call, 1, b=2) == 3

    with closed(work) as engine:
        engine.add(batch((1, 9)))
        engine.set_user_limit(4)
        until(lambda: len(engine.rows) == 8)

    assert {row[OUTCOME] for row in engine.rows} == {Outcome.OK}
    assert sorted(note for _, note in seen) == list(range(1, 9))
    assert all(name.startswith("blocking") for name, _ in seen)


@pytest.mark.parametrize(("at_once", "told"), [(2, 0), (3, 1)])
def test_blocking_calls_that_wait_for_a_thread_are_told_once(monkeypatch, caplog, at_once, told):
    monkeypatch.setattr(blocking_calls, "THREADS", 2)
    inside = Gauge()

    def call():
        with inside:
            time.sleep(0.01)

    async def work(scenario):
        await asyncio.gather(*(scenario.run_blocking(call) for _ in range(at_once)))

    with closed(work) as engine:
        engine.add(batch((1, 5)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 4)

    assert inside.most <= 2
    waits = [one for one in caplog.messages if one.startswith("more than 2 blocking calls")]
    assert len(waits) == told


@pytest.mark.parametrize("error", [ValueError, StopIteration, SystemExit])
def test_what_a_blocking_call_raises_is_the_failure_of_its_iteration(error):
    def call():
        raise error("from the call")

    async def work(scenario):
        await scenario.run_blocking(call)

    with closed(work) as engine:
        engine.add(batch((1, 3)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 2)

    assert {row[OUTCOME] for row in engine.rows} == {Outcome.FAILED}


def test_thinking_is_no_service_time_and_others_run_meanwhile():
    async def work(scenario):
        await scenario.think(0.05)

    with closed(work) as engine:
        engine.add(batch((1, 201)))
        engine.set_user_limit(200)
        until(lambda: len(engine.rows) == 200)

    # the timers of the loop have a resolution of 1 ms
    assert all(49 * MS <= row[IDLE] <= row[ENDED] - row[STARTED] for row in engine.rows)
    last = max(row[STARTED] for row in engine.rows)
    assert any(row[ENDED] > last for row in engine.rows)


def test_a_sleep_that_would_stop_all_users_is_a_failure():
    async def work(scenario):
        scenario.sleep_between(0.001)

    with closed(work) as engine:
        engine.add(batch((1, 2)))
        engine.set_user_limit(1)
        until(lambda: engine.rows)
        ((_, etype, message, _),) = engine.body.failures.fresh()

    assert (etype, "self.think" in message) == ("RuntimeError", True)


def test_users_that_never_wait_take_turns():
    """None is left out, and the loop's own timers go on."""
    ran = set()

    async def work(scenario):
        ran.add(asyncio.current_task())

    with closed(work) as engine:
        engine.add(batch((1, 10_000_000)))
        engine.set_user_limit(4)
        until(lambda: len(ran) == 4)
        until(lambda: len(engine.lags()) > 1)


def test_a_scenario_that_blocks_the_loop_is_named():
    go_on = threading.Event()
    found = []

    def block():
        time.sleep(0.3)
        # a wait for the event would be a place in the library
        for _ in range(int(20 * PATIENCE_S)):
            if not go_on.is_set():
                time.sleep(0.05)

    def seen_s():
        # how long is seen in samples
        found.extend(engine.blocked())
        return sum(lasted for _, lasted in found)

    async def work(scenario):
        block()

    with closed(work) as engine:
        engine.add(batch((1, 3)))
        engine.set_user_limit(1)
        until(lambda: seen_s() >= 0.1 * S)
        go_on.set()
        until(lambda: len(engine.rows) == 2)
        until(lambda: max(engine._loop.lateness.lags, default=0) > 200 * MS)
        lags = engine.lags()
        until(lambda: engine.blocked() == [])

    places = " ".join(place for place, _ in found)
    assert "test_coroutines.py" in places
    assert "block)" in places
    # the beats that were missed count, too
    assert sum(lag > 50 * MS for lag in lags) > 10


def test_a_loop_that_several_users_block_in_turn_is_blocked_once():
    async def work(scenario):
        time.sleep(0.15)

    begun = time.monotonic_ns()
    with closed(work) as engine:
        engine.add(batch((1, 11)))
        engine.set_user_limit(5)
        until(lambda: len(engine.rows) == 10)
        until(lambda: len(engine.lags()) > 1)
        found = engine.blocked()
    passed = time.monotonic_ns() - begun

    assert found
    assert sum(lasted for _, lasted in found) <= passed


def test_a_loop_that_waits_is_not_blocked():
    async def work(scenario):
        await asyncio.sleep(0.2)

    with closed(work) as engine:
        engine.add(batch((1, 3)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 2)

        assert engine.blocked() == []


def test_an_iteration_that_keeps_the_loop_is_timed_out_and_the_rest_can_be_taken_back():
    async def work(scenario):
        OVER.wait(PATIENCE_S)

    with closed(work, timeout_s=0.05) as engine:
        engine.add(batch((1, 11)))
        engine.set_user_limit(2)
        until(lambda: engine.rows)
        until(lambda: any(isinstance(one, HeldLoop) for one in engine.abandoned))
        back = engine.take_back()

        assert engine.rows[0][OUTCOME] == Outcome.TIMED_OUT
        assert back == [(2, 11)]
        OVER.set()
        until(lambda: not any(one.is_alive() for one in engine.abandoned))


def test_arrivals_that_are_due_together_start_together():
    inside = []

    async def work(scenario):
        inside.append(None)
        await asyncio.sleep(0.001)

    with opened(work, max_lag_ns=20 * S) as engine:
        engine.add(arrivals([0] * 500))
        engine.set_user_limit(500)
        until(lambda: len(engine.rows) == 500)

    assert {row[OUTCOME] for row in engine.rows} == {Outcome.OK}
    assert all(row[STARTED] >= row[DUE] for row in engine.rows)
    assert monotonic_ns() > engine.t0_ns
