"""Load that the runner's own code starts: numbers, threads, results, and how it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic_ns
from types import SimpleNamespace
from typing import Any

import pytest

from helpers import engines
from osbench.common.plugin.atomic import ActionTimer
from osbench.common.plugin.scenario import Scenario
from osbench.common.plugin.scripted_runner import ScriptedLoad
from osbench.common.protocol.messages import Batch
from osbench.common.values.outcomes import LifeEvent, Outcome
from osbench.edges.rally import scripted_engine
from osbench.edges.rally.scripted_engine import ScriptedEngine
from osbench.edges.rally.scripted_iterations import DoneIteration, LoadOver
from osbench.worker.engine.engine import EngineSetup
from osbench.worker.engine.failures import KeptFailures
from servers.child import PATIENCE_S

ENDED, FAILED = int(LifeEvent.SCRIPT_ENDED), int(LifeEvent.SCRIPT_FAILED)


@contextmanager
def scripted(
    drive: Callable[[ScriptedLoad], None],
    work: Callable[[Scenario], Any] = lambda scenario: None,
    *,
    user_limit: int = 8,
    granted: int = 100,
    timeout_s: float = 0.0,
    args: dict[str, Any] | None = None,
    **more: Any,
) -> Iterator[ScriptedEngine]:
    """An engine that has `granted` numbers, ended when the block is left."""
    body = engines.body(work, timeout_s=timeout_s, failures=KeptFailures())
    setup = EngineSetup(body=replace(body, **more), t0_ns=monotonic_ns(), request_work=lambda: None)
    engine = ScriptedEngine(setup, drive, args)
    try:
        grant(engine, 1, granted)
        engine.set_user_limit(user_limit)
        yield engine
    finally:
        engine.close()


def grant(engine: ScriptedEngine, seq: int, count: int, first: int = 1) -> None:
    if count:
        engine.add(
            Batch(
                run="r",
                workload=0,
                session="s",
                incarnation="i",
                seq=seq,
                intervals=[(first, first + count)],
            )
        )


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def numbers(engine: ScriptedEngine) -> list[int]:
    return [row[0] for row in engine.rows]


def returned(engine: ScriptedEngine) -> int:
    return sum(high - low for low, high in engine.returned())


def test_the_code_is_run_once_and_what_it_does_not_start_is_given_back():
    begun = []

    def drive(load: ScriptedLoad) -> None:
        begun.append(load)
        for _ in range(7):
            load.iterate(load.args)

    with scripted(drive) as engine:
        until(lambda: engine.life)
        until(lambda: not engine.queued)
        engine.set_user_limit(4)
        engine.set_user_limit(8)

        assert numbers(engine) == [1, 2, 3, 4, 5, 6, 7]
        assert returned(engine) == 93
        assert [event[0] for event in engine.life] == [ENDED]
        assert len(begun) == 1


def test_iterations_of_several_threads_are_each_a_number():
    def drive(load: ScriptedLoad) -> None:
        def several() -> None:
            for _ in range(10):
                load.iterate(load.args)

        threads = [threading.Thread(target=several) for _ in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

    users = set()
    with scripted(drive, lambda scenario: users.add(scenario.user.number)) as engine:
        until(lambda: engine.life)

        assert sorted(numbers(engine)) == list(range(1, 81))
        assert users <= set(range(1, 9))


def test_no_more_run_at_once_than_there_are_virtual_users():
    running, most, lock = [0], [0], threading.Lock()
    all_asked = threading.Event()

    def work(scenario: Scenario) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        all_asked.wait(PATIENCE_S)
        time.sleep(0.002)
        with lock:
            running[0] -= 1

    def drive(load: ScriptedLoad) -> None:
        threads = [threading.Thread(target=load.iterate, args=(load.args,)) for _ in range(12)]
        for one in threads:
            one.start()
        until(lambda: running[0] == 3)
        # the others wait for a user by now
        time.sleep(0.02)
        all_asked.set()
        for one in threads:
            one.join()

    with scripted(drive, work, user_limit=3) as engine:
        until(lambda: engine.life)

        assert len(numbers(engine)) == 12
        assert most[0] <= 3
        # the code wanted more than there were
        assert engine.want_ns > 0


def test_the_code_sees_how_an_iteration_went():
    done: list[DoneIteration] = []

    def work(scenario: Scenario) -> None:
        with ActionTimer(scenario, "outer"), ActionTimer(scenario, "inner"):
            if scenario.context["iteration"] == 2:
                raise KeyError("on purpose")

    def drive(load: ScriptedLoad) -> None:
        done.extend(load.iterate(load.args) for _ in range(2))

    with scripted(drive, work) as engine:
        until(lambda: engine.life)

    assert [one.number for one in done] == [1, 2]
    assert done[0].error == ()
    assert done[1].error[:2] == ("KeyError", "'on purpose'")
    assert "on purpose" in done[1].error[2]
    assert [(one.name, one.parent, one.failed) for one in done[1].actions] == [
        ("outer", -1, True),
        ("inner", 0, True),
    ]
    assert done[0].duration_s > 0


def test_an_iteration_that_times_out_is_told_and_the_code_goes_on():
    done: list[DoneIteration] = []

    def work(scenario: Scenario) -> None:
        while scenario.context["iteration"] == 1:
            time.sleep(0.001)

    def drive(load: ScriptedLoad) -> None:
        done.extend(load.iterate(load.args) for _ in range(3))

    with scripted(drive, work, timeout_s=0.3) as engine:
        until(lambda: engine.life)

        assert [(row[0], row[1]) for row in engine.rows] == [
            (1, Outcome.TIMED_OUT),
            (2, Outcome.OK),
            (3, Outcome.OK),
        ]
        assert done[0].error[0] == "IterationTimeout"
        assert [event[0] for event in engine.life] == [ENDED]
        until(lambda: not engine.abandoned)


def test_code_that_fails_says_so_once():
    def drive(load: ScriptedLoad) -> None:
        load.iterate(load.args)
        raise ValueError("no second")

    with scripted(drive) as engine:
        until(lambda: engine.life)

        ((kind, _, _, _, failure),) = engine.life
        assert kind == FAILED
        assert engine.body.failures.texts(failure)[:2] == ("ValueError", "no second")
        assert engine.stop_ns <= monotonic_ns()


def test_a_load_that_is_stopped_ends_the_code_and_does_not_say_that_it_ended_by_itself():
    ended = threading.Event()
    told: list[str] = []

    def drive(load: ScriptedLoad) -> None:
        load.call_when_over(lambda: told.append("over"))
        try:
            while True:
                load.iterate(load.args)
        except Exception:  # noqa: BLE001 - what many runners do
            told.append("caught by mistake")
        finally:
            ended.set()

    with scripted(drive, lambda scenario: time.sleep(0.002)) as engine:
        until(lambda: len(engine.rows) > 3)
        engine.stop(monotonic_ns())
        assert ended.wait(PATIENCE_S)
        until(lambda: told)
        until(lambda: not engine.users)

        assert told == ["over"]
        assert not engine.life
        until(lambda: not engine.queued)
        assert len(engine.rows) + returned(engine) == 100


def test_code_waits_for_numbers_and_for_the_lease():
    def drive(load: ScriptedLoad) -> None:
        for _ in range(4):
            load.iterate(load.args)

    with scripted(drive, granted=2) as engine:
        until(lambda: len(engine.rows) == 2)
        engine.set_lease(monotonic_ns())
        grant(engine, 2, 2, first=3)
        time.sleep(0.02)
        assert len(engine.rows) == 2

        engine.set_lease(monotonic_ns() + 600 * engines.S)
        until(lambda: engine.life)

        assert numbers(engine) == [1, 2, 3, 4]
        assert engine.want_ns > 0


def test_threads_that_the_code_leaves_behind_start_nothing_more():
    over = threading.Event()
    go = threading.Event()

    def later(load: ScriptedLoad) -> None:
        go.wait(PATIENCE_S)
        try:
            load.iterate(load.args)
        except LoadOver:
            over.set()

    def drive(load: ScriptedLoad) -> None:
        threading.Thread(target=later, args=(load,), daemon=True).start()

    with scripted(drive) as engine:
        until(lambda: engine.life)
        go.set()

        assert over.wait(PATIENCE_S)
        assert not engine.rows


def test_arguments_that_the_code_changes_are_those_of_its_iteration():
    seen: list[dict[str, Any]] = []

    def function(scenario: Scenario, **given: Any) -> None:
        seen.append(given)

    def drive(load: ScriptedLoad) -> None:
        load.iterate(dict(load.args))
        load.iterate({**load.args, "a": 5})
        load.iterate({"b": 2})

    args = {"a": 1, "b": 2}
    with scripted(
        drive, args=args, function=function, arguments=lambda i: {**args, "n": i}
    ) as engine:
        until(lambda: engine.life)

    assert seen == [{"a": 1, "b": 2, "n": 1}, {"a": 5, "b": 2, "n": 2}, {"b": 2, "n": 3}]


def test_an_exception_that_another_thread_raises_in_an_iteration_is_its_failure():
    import ctypes

    class Elsewhere(Exception):
        pass

    inside = threading.Event()

    def work(scenario: Scenario) -> None:
        if scenario.context["iteration"] == 1:
            ident = threading.get_ident()

            def raise_there() -> None:
                inside.wait(PATIENCE_S)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(ident), ctypes.py_object(Elsewhere)
                )

            threading.Thread(target=raise_there).start()
            inside.set()
            while True:
                time.sleep(0.001)

    def drive(load: ScriptedLoad) -> None:
        load.iterate(load.args)
        load.iterate(load.args)

    with scripted(drive, work) as engine:
        until(lambda: engine.life)

        assert [(row[0], row[1]) for row in engine.rows] == [(1, Outcome.FAILED), (2, Outcome.OK)]


@pytest.mark.parametrize("user_limit", [0])
def test_without_virtual_users_the_code_is_not_begun(user_limit):
    begun = []
    with scripted(begun.append, user_limit=user_limit) as engine:
        engine.set_user_limit(0)
        time.sleep(0.02)

        assert not begun
        assert not engine.users


def test_what_fails_after_the_stop_is_told_beside_the_load():
    def drive(load: ScriptedLoad) -> None:
        try:
            while True:
                load.iterate(load.args)
        finally:
            raise ValueError("in the clean-up")

    with scripted(drive, lambda scenario: time.sleep(0.002)) as engine:
        until(lambda: engine.rows)
        engine.stop(monotonic_ns())
        until(lambda: not engine.users)

        assert not engine.life
        ((said, count),) = engine.body.asides.fresh()
        assert (count, said.partition(": ")[2]) == (1, "ValueError: in the clean-up")


def test_code_that_catches_every_exception_is_slowed_down_after_the_end(monkeypatch):
    monkeypatch.setattr(scripted_engine, "MOST_REFUSED", 2)
    pauses: list[float] = []

    def drive(load: ScriptedLoad) -> None:
        load.iterate(load.args)

    with scripted(drive) as engine:
        until(lambda: engine.life)
        monkeypatch.setattr(scripted_engine, "time", SimpleNamespace(sleep=pauses.append))
        for _ in range(5):
            with pytest.raises(LoadOver):
                engine.iterate({})

    assert pauses == [scripted_engine.REFUSED_PAUSE_S] * 3
