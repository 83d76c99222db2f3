"""Virtual users begin before their first iteration, think between iterations, and end."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from time import monotonic_ns

import pytest

from helpers import engines
from helpers.engines import COROUTINES, MS, THREADS, S, arrivals, batch, nap, until
from osbench.common.values.outcomes import LifeEvent, Outcome
from osbench.worker.engine import thread_engine
from osbench.worker.engine.users import user_plan
from osbench.worker.engine.users.pacing import Pacing, thinking
from osbench.worker.engine.users.user_plan import NoRow, UserNumbers, UserPlan, pause_ns
from servers.child import PATIENCE_S

ROWS = [{"name": "ann"}, {"name": "bob"}, {"name": "eve"}]
ITERATION, OUTCOME, DUE, STARTED, ENDED, IDLE = range(6)


@pytest.fixture(params=[THREADS, COROUTINES])
def kind(request) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(user_plan, "FIRST_PAUSE_NS", 20 * MS)
    monkeypatch.setattr(user_plan, "LONGEST_PAUSE_NS", 40 * MS)


def kinds_of(engine) -> Counter[int]:
    return Counter(LifeEvent(event[0]) for event in engine.life)


def test_a_user_keeps_what_is_set_on_it(kind):
    seen: dict[int, list[int]] = {}

    def work(scenario):
        user = scenario.user
        user.count = getattr(user, "count", 0) + 1
        seen.setdefault(user.number, []).append(user.count)

    with engines.closed(work, users=kind) as engine:
        engine.add(batch((1, 201)))
        engine.set_user_limit(4, [(11, 13), (31, 33)])
        until(lambda: len(engine.rows) == 200)

    assert set(seen) <= {11, 12, 31, 32}
    assert all(counts == list(range(1, len(counts) + 1)) for counts in seen.values())
    assert sum(map(len, seen.values())) == 200


def test_users_begin_once_before_their_iterations_and_end_after_them(kind):
    told: list[tuple[str, int]] = []
    lock = threading.Lock()

    def tell(what):
        def say(scenario):
            with lock:
                told.append((what, scenario.user.number))

        return say

    async def work(scenario):
        await nap(0.001)
        tell("run")(scenario)

    with engines.closed(
        work, users=kind, on_start=tell("start"), on_stop=tell("stop"), plan={"rows": ROWS}
    ) as engine:
        engine.add(batch((1, 61)))
        engine.set_user_limit(3)
        until(lambda: len(engine.rows) == 60)
        assert engine.living == {0, 1, 2}
        engine.close()
        until(lambda: not engine.living)

    for number in (1, 2, 3):
        mine = [what for what, who in told if who == number]
        assert mine[0] == "start"
        assert mine[-1] == "stop"
        assert set(mine[1:-1]) <= {"run"}
    assert kinds_of(engine) == {LifeEvent.BEGUN: 3, LifeEvent.ENDED: 3}
    assert all(begun <= ended for _, _, begun, ended, _ in engine.life)


def test_on_start_may_be_a_coroutine():
    started = []

    async def on_start(scenario):
        await nap(0.001)
        started.append(scenario.user.data["name"])

    async def work(scenario):
        await nap(0)

    with engines.closed(work, users=COROUTINES, on_start=on_start, plan={"rows": ROWS}) as engine:
        engine.add(batch((1, 10)))
        engine.set_user_limit(3)
        # two users may have done all of it before the third has begun
        until(lambda: len(engine.rows) == 9 and len(started) == 3)

    assert sorted(started) == ["ann", "bob", "eve"]


def test_a_user_that_cannot_begin_tries_again(kind):
    tries: Counter[int] = Counter()
    lock = threading.Lock()

    def on_start(scenario):
        with lock:
            tries[scenario.user.number] += 1
            count = tries[scenario.user.number]
        if count < 3:
            raise ConnectionError("not yet")

    with engines.closed(lambda scenario: None, users=kind, on_start=on_start) as engine:
        engine.add(batch((1, 11)))
        engine.set_user_limit(2)
        until(lambda: kinds_of(engine)[LifeEvent.BEGUN] == 2)
        until(lambda: len(engine.rows) == 10)

    assert tries == {1: 3, 2: 3}
    assert kinds_of(engine) == {LifeEvent.NOT_BEGUN: 4, LifeEvent.BEGUN: 2}
    (failure,) = engine.body.failures.fresh()
    assert failure[1:3] == ["ConnectionError", "not yet"]
    # the scenario's own frames, none of the engine's
    assert failure[3].count("File ") == 1, failure[3]
    # time on starting is no start lag
    assert all(row[STARTED] - row[DUE] < 2 * S for row in engine.rows)


def test_a_user_that_takes_too_long_to_begin_is_replaced(kind):
    first: list[int] = []

    async def slow(scenario):
        first.append(1)
        if len(first) == 1:
            await nap(1.5)

    def slow_thread(scenario):
        first.append(1)
        if len(first) == 1:
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                time.sleep(0.01)

    on_start = slow if kind == COROUTINES else slow_thread
    with engines.closed(
        lambda scenario: None, users=kind, timeout_s=0.5, on_start=on_start
    ) as engine:
        engine.add(batch((1, 6)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 5)

    assert kinds_of(engine) == {LifeEvent.NOT_BEGUN: 1, LifeEvent.BEGUN: 1}
    assert {row[OUTCOME] for row in engine.rows} == {Outcome.OK}


def test_a_user_that_was_replaced_does_not_begin_in_place_of_its_successor():
    gate, threads = threading.Event(), []

    def on_start(scenario):
        threads.append(threading.current_thread())
        if len(threads) == 1:
            # a single call, which no exception ends
            gate.wait(PATIENCE_S)
        elif len(threads) == 2:
            gate.set()
            threads[0].join(PATIENCE_S)

    with engines.closed(
        lambda scenario: None, users=THREADS, timeout_s=2.0, on_start=on_start
    ) as engine:
        engine.add(batch((1, 6)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 5)
        until(lambda: not threads[0].is_alive())

    assert len(threads) == 2
    assert kinds_of(engine) == {LifeEvent.NOT_BEGUN: 1, LifeEvent.BEGUN: 1}


def test_a_user_whose_iteration_timed_out_is_replaced_by_a_new_one(kind):
    lives: list[object] = []

    def on_start(scenario):
        lives.append(scenario.user)

    async def work(scenario):
        if scenario.context["iteration"] == 1:
            for _ in range(150):
                await nap(0.01)

    with engines.closed(work, users=kind, timeout_s=0.5, on_start=on_start) as engine:
        engine.add(batch((1, 4)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 3)

    assert len(lives) == 2
    assert lives[0] is not lives[1]
    assert kinds_of(engine) == {LifeEvent.BEGUN: 2, LifeEvent.REPLACED: 1}


def test_a_failing_on_stop_is_told(kind):
    def on_stop(scenario):
        raise RuntimeError("no goodbye")

    with engines.closed(lambda scenario: None, users=kind, on_stop=on_stop) as engine:
        engine.add(batch((1, 3)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 2)
        engine.close()
        until(lambda: not engine.living)

    assert kinds_of(engine) == {LifeEvent.BEGUN: 1, LifeEvent.NOT_ENDED: 1}
    assert not engine.unsettled - len(engine.rows)


def test_free_users_end_by_on_stop_however_late_the_loop_notices():
    async def work(scenario):
        await nap(0.001)

    async def on_stop(scenario):
        await nap(0.1)

    with engines.opened(work, users=COROUTINES, on_stop=on_stop) as engine:
        engine.set_user_limit(2)
        engine.add(arrivals([0, 1 * MS]))
        until(lambda: len(engine.rows) == 2)
        begun = len(engine.living)
        engine._loop.call(time.sleep, 0.5)
        engine.close()
        until(lambda: not engine.living)

    assert kinds_of(engine) == {LifeEvent.BEGUN: begun, LifeEvent.ENDED: begun}


def test_arrivals_wait_for_users_that_begin(kind):
    users: set[int] = set()

    def work(scenario):
        users.add(scenario.user.number)

    def on_start(scenario):
        time.sleep(0.01)

    with engines.opened(
        work, users=kind, t0_in_ns=500 * MS, on_start=on_start, on_stop=lambda scenario: None
    ) as engine:
        engine.set_user_limit(3)
        until(lambda: kinds_of(engine)[LifeEvent.BEGUN] == 3)
        assert monotonic_ns() < engine.t0_ns + 20 * S
        engine.add(arrivals([n * 2 * MS for n in range(100)]))
        until(lambda: len(engine.rows) == 100)
        engine.close()
        until(lambda: not engine.living)

    assert users <= {1, 2, 3}
    assert kinds_of(engine) == {LifeEvent.BEGUN: 3, LifeEvent.ENDED: 3}


def test_more_users_begin_where_arrivals_need_them(kind):
    async def work(scenario):
        await nap(0.1)

    with engines.opened(
        work,
        users=kind,
        at_limit=Outcome.DROPPED_CAPACITY,
        max_lag_ns=30 * S,
        on_start=lambda scenario: None,
    ) as engine:
        engine.set_user_limit(50)
        engine.add(arrivals([n * MS for n in range(60)]))
        until(lambda: len(engine.rows) == 60)

    begun = kinds_of(engine)[LifeEvent.BEGUN]
    assert 3 < begun <= 50
    assert {row[OUTCOME] for row in engine.rows} == {Outcome.OK}


def test_think_time_is_between_iterations_and_in_no_time_of_theirs(kind):
    think_ns = 30 * MS
    with engines.closed(
        lambda scenario: None, users=kind, plan={"think": lambda: think_ns}
    ) as engine:
        engine.add(batch((1, 6)))
        engine.set_user_limit(1)
        until(lambda: len(engine.rows) == 5)

    rows = sorted(engine.rows, key=lambda row: row[ITERATION])
    for before, after in itertools.pairwise(rows):
        assert after[STARTED] - before[ENDED] >= think_ns
        # due when it has thought: a late start is start lag
        assert after[DUE] == before[ENDED] + think_ns


def test_users_that_think_end_soon_after_the_stop_instant(kind):
    with engines.closed(
        lambda scenario: None,
        users=kind,
        on_stop=lambda scenario: None,
        plan={"think": lambda: 600 * S},
    ) as engine:
        engine.add(batch((1, 10)))
        engine.set_user_limit(2)
        until(lambda: len(engine.rows) == 2)
        engine.stop(monotonic_ns())
        engine.close()
        until(lambda: not engine.living)
        until(lambda: not engine.users)

    assert kinds_of(engine)[LifeEvent.ENDED] == 2


def test_rows_go_to_users_in_order_in_turn_or_at_random():
    def names(plan, numbers):
        return [plan.user(number).data["name"] for number in numbers]

    assert names(UserPlan(rows=ROWS), [1, 2, 3]) == ["ann", "bob", "eve"]
    with pytest.raises(NoRow, match=r"virtual user 4 has no row.* has 3"):
        UserPlan(rows=ROWS).user(4)
    assert names(UserPlan(rows=ROWS, order="cycle"), [3, 4, 5]) == ["eve", "ann", "bob"]
    several = names(UserPlan(rows=ROWS, order="random", seed="s"), range(1, 60))
    assert several == names(UserPlan(rows=ROWS, order="random", seed="s"), range(1, 60))
    assert set(several) == {"ann", "bob", "eve"}
    unique = UserPlan(rows=ROWS, order="random", unique=True, seed="s")
    assert sorted(names(unique, [1, 2, 3])) == ["ann", "bob", "eve"]
    with pytest.raises(NoRow):
        UserPlan(rows=ROWS, order="cycle", unique=True).user(4)


def test_a_user_without_a_row_cannot_begin(kind):
    with engines.closed(lambda scenario: None, users=kind, plan={"rows": ROWS[:1]}) as engine:
        engine.add(batch((1, 6)))
        engine.set_user_limit(2)
        until(lambda: len(engine.rows) == 5)
        until(lambda: kinds_of(engine)[LifeEvent.NOT_BEGUN] > 1)

    assert kinds_of(engine)[LifeEvent.BEGUN] == 1
    assert engine.body.failures.fresh()[0][1] == "NoRow"


def test_pauses_grow_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(user_plan, "FIRST_PAUSE_NS", S)
    monkeypatch.setattr(user_plan, "LONGEST_PAUSE_NS", 30 * S)

    assert [pause_ns(tries) // S for tries in (1, 2, 3, 5, 6, 400)] == [1, 2, 4, 16, 30, 30]


@pytest.mark.parametrize("distribution", ["uniform", "normal", "exponential"])
def test_think_times_stay_within_their_bounds(distribution):
    draw = thinking({"min": 0.5, "max": 2, "distribution": distribution})
    assert draw is not None

    times = [draw() / 1e9 for _ in range(2000)]

    assert 0.5 <= min(times) <= max(times) <= 2
    middle = sum(times) / len(times)
    assert (0.9 if distribution == "exponential" else 1.2) < middle < 1.35
    assert thinking({}) is None
    assert thinking({"min": 0}) is None
    constant = thinking({"min": 0.25})
    assert constant is not None
    assert constant() == 250 * MS


def test_a_greatest_rate_is_kept_by_all_users_together(kind):
    with engines.closed(lambda scenario: None, users=kind) as engine:
        engine.pacing.set_rate(200)
        engine.add(batch((1, 61)))
        engine.set_user_limit(10)
        until(lambda: len(engine.rows) == 60)

    dues = sorted(row[DUE] for row in engine.rows)
    distances = [after - before for before, after in itertools.pairwise(dues)]
    # a turn may be taken late, by half of the way to the next; nothing is made up for
    assert min(distances) >= 2.5 * MS
    assert max(dues) - min(dues) >= 58.5 * 5 * MS
    assert all(row[STARTED] >= row[DUE] for row in engine.rows)


def test_a_rate_may_change_and_end(kind):
    with engines.closed(lambda scenario: None, users=kind) as engine:
        engine.pacing.set_rate(0.001)
        engine.add(batch((1, 2001)))
        engine.set_user_limit(2)
        until(lambda: len(engine.rows) == 1)
        engine.pacing.set_rate(0)
        engine.set_user_limit(3)
        until(lambda: len(engine.rows) == 2000)

    assert not engine.pacing.limits


def test_a_new_rate_gives_no_turn_before_it_is_due():
    pacing = Pacing()
    pacing.set_rate(100)
    (first,) = (turn_of(pacing) for _ in range(1))
    pacing.set_rate(50)
    second = turn_of(pacing)
    pacing.set_rate(0)

    assert second - first >= 20 * MS
    assert turn_of(pacing) == 0


def turn_of(pacing: Pacing) -> int:
    """The next turn, without the sleep before it."""
    turns = pacing.turns(0, monotonic_ns())
    while True:
        try:
            time.sleep(max(0, next(turns) - monotonic_ns()) / 1e9)
        except StopIteration as taken:
            return int(taken.value)


def test_a_replaced_user_that_cannot_begin_again_has_nothing_to_end(kind):
    starts: list[int] = []

    def on_start(scenario):
        starts.append(1)
        if len(starts) > 1:
            raise ConnectionError("not again")

    async def work(scenario):
        for _ in range(60):
            await nap(0.01)

    with engines.closed(
        work, users=kind, timeout_s=0.1, on_start=on_start, on_stop=lambda scenario: None
    ) as engine:
        engine.add(batch((1, 3)))
        engine.set_user_limit(1)
        until(lambda: kinds_of(engine)[LifeEvent.NOT_BEGUN])

        assert engine.living == set()


def test_users_that_wait_for_their_turn_end_soon_after_the_stop_instant(kind):
    with engines.closed(lambda scenario: None, users=kind) as engine:
        engine.pacing.set_rate(0.001)
        engine.add(batch((1, 11)))
        engine.set_user_limit(4)
        until(lambda: len(engine.rows) == 1)
        engine.stop(monotonic_ns())
        engine.close()
        until(lambda: not engine.users)

    assert len(engine.rows) == 1


def test_users_whose_numbers_go_to_another_worker_end_and_the_others_keep_their_state(kind):
    lives: list[tuple[str, int]] = []

    def on_start(scenario):
        scenario.user.since = scenario.context["iteration"]
        lives.append(("start", scenario.user.number))

    def on_stop(scenario):
        lives.append(("stop", scenario.user.number))

    async def work(scenario):
        await nap(0.001)

    with engines.closed(work, users=kind, on_start=on_start, on_stop=on_stop) as engine:
        engine.add(batch((1, 1_000_000)))
        engine.set_user_limit(4, [(11, 15)])
        until(lambda: len(engine.living) == 4)
        engine.set_user_limit(2, [(11, 13)])
        until(lambda: not engine.surplus)

        assert engine.living == {0, 1}
        assert sorted(lives) == [
            *(("start", number) for number in (11, 12, 13, 14)),
            *(("stop", number) for number in (13, 14)),
        ]
        # other numbers come in their place, and begin as new users
        engine.set_user_limit(3, [(11, 13), (21, 23)])
        until(lambda: ("start", 21) in lives)
        assert Counter(lives)["start", 11] == 1
    ended = [number for event, number, *_ in engine.life if event == LifeEvent.ENDED]
    assert ended[:2] in ([13, 14], [14, 13])


def test_a_user_that_thinks_ends_at_once_if_its_number_goes_to_another_worker(kind):
    with engines.closed(
        lambda scenario: None, users=kind, plan={"think": lambda: 3_600 * S}
    ) as engine:
        engine.add(batch((1, 1_000)))
        engine.set_user_limit(4, [(1, 5)])
        until(lambda: len(engine.rows) == 4)
        engine.set_user_limit(2, [(1, 3)])
        until(lambda: not engine.surplus)

        assert engine.users == 2


def test_a_number_that_comes_back_while_its_user_ends_has_a_user_again(kind):
    began: Counter[int] = Counter()
    stopping = threading.Event()
    go_on = threading.Event()

    def on_start(scenario):
        began[scenario.user.number] += 1

    async def on_stop(scenario):
        stopping.set()
        await engines.waited_for(go_on)

    async def work(scenario):
        await nap(0.001)

    ends = engines.adapted(on_stop, kind)
    with engines.closed(work, users=kind, on_start=on_start, on_stop=ends) as engine:
        engine.add(batch((1, 1_000_000)))
        engine.set_user_limit(2, [(1, 3)])
        until(lambda: len(engine.living) == 2)
        engine.set_user_limit(1, [(1, 2)])
        until(stopping.is_set)
        assert engine.surplus
        engine.set_user_limit(2, [(1, 3)])
        go_on.set()
        until(lambda: began[2] == 2)

    assert began[1] == 1


def test_a_user_that_begins_while_its_number_moves_has_that_number(monkeypatch):
    begun, there, go_on = [], threading.Event(), threading.Event()
    make = thread_engine.new_recorder

    def held_up(names):
        if threading.current_thread().name == "user-3":
            there.set()
            go_on.wait(PATIENCE_S)
        return make(names)

    async def work(scenario):
        await nap(0.001)

    monkeypatch.setattr(thread_engine, "new_recorder", held_up)
    with engines.closed(
        work, users=THREADS, on_start=lambda one: begun.append(one.user.number)
    ) as engine:
        engine.add(batch((1, 61)))
        engine.set_user_limit(4, [(11, 15)])
        assert there.wait(PATIENCE_S)
        engine.set_user_limit(2, [(11, 13)])
        go_on.set()
        until(lambda: not engine.surplus)

    assert set(begun) <= {11, 12, 13, 14}


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([(1, 5)], True),
        ([(1, 3)], True),
        ([(1, 5), (9, 10)], True),
        ([(1, 5), (9, 12)], True),
        ([], False),
        ([(1, 6)], False),
        ([(2, 5)], False),
        ([(1, 4), (9, 10)], False),
        ([(1, 5), (9, 12), (20, 22)], False),
    ],
)
def test_numbers_begin_with_others(others, expected):
    assert UserNumbers([(1, 5), (9, 12)]).begins_with(UserNumbers(others)) is expected
