"""Virtual time: waits, kills and pauses of processes, and what threads wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from osbench.common.ports import chance, clock, disk
from osbench.common.ports import threads as port
from world import ports, present, threads
from world.event_loop import VirtualLoop
from world.fibers import Process, S, Scheduler


@pytest.fixture
def scheduler() -> Scheduler:
    found = Scheduler(1)
    present.begin(found)
    return found


def begin(scheduler: Scheduler, target: Callable[[], object], name: str = "one") -> Process:
    process = Process(name, 1)
    scheduler.spawn(process, target, "main")
    return process


def test_time_passes_only_while_all_wait(scheduler: Scheduler) -> None:
    seen: list[tuple[str, int]] = []

    def sleeps(name: str, seconds: float) -> Callable[[], None]:
        def main() -> None:
            clock.sleep(seconds)
            seen.append((name, scheduler.now // S))

        return main

    begin(scheduler, sleeps("late", 3))
    begin(scheduler, sleeps("soon", 1))
    scheduler.run(10 * S)

    assert seen == [("soon", 1), ("late", 3)]
    assert scheduler.now == 10 * S


def test_a_killed_process_never_goes_on(scheduler: Scheduler) -> None:
    seen: list[str] = []

    def main() -> None:
        try:
            clock.sleep(2)
            seen.append("after")
        finally:
            seen.append("finally")

    process = begin(scheduler, main)
    scheduler.at(S, lambda: setattr(process, "alive", False))
    scheduler.run(10 * S)

    assert seen == []


def test_a_paused_process_goes_on_later_and_its_clock_went_on(scheduler: Scheduler) -> None:
    seen: list[float] = []

    def main() -> None:
        before = clock.monotonic()
        clock.sleep(1)
        seen.append(clock.monotonic() - before)

    process = begin(scheduler, main)
    scheduler.at(S // 2, lambda: setattr(process, "paused_until", 5 * S))
    scheduler.run(10 * S)

    assert seen == [pytest.approx(5)]


def test_clocks_of_processes_run_at_their_rates(scheduler: Scheduler) -> None:
    seen: list[float] = []

    def main() -> None:
        before = clock.monotonic()
        clock.sleep(10)
        seen.append(clock.monotonic() - before)

    process = Process("fast", 1, rate=1.01)
    scheduler.spawn(process, main, "main")
    scheduler.run(20 * S)

    assert seen == [pytest.approx(10)]
    assert process.monotonic_ns(10 * S) - process.monotonic_ns(0) == pytest.approx(10.1 * S)


def test_a_thread_that_ends_by_an_exception_is_a_failure(scheduler: Scheduler) -> None:
    def main() -> None:
        raise ValueError("what went wrong")

    begin(scheduler, main)
    scheduler.run(S)

    ((who, error),) = scheduler.failures
    assert who == "one/main"
    assert isinstance(error, ValueError)


def test_an_event_wakes_who_waits_and_a_wait_ends_by_itself(scheduler: Scheduler) -> None:
    event, seen = threads.Event(), list[tuple[bool, float]]()

    def waits(seconds: float) -> Callable[[], None]:
        def main() -> None:
            found = event.wait(seconds)
            seen.append((found, round(scheduler.now / S, 3)))

        return main

    begin(scheduler, waits(1))
    begin(scheduler, waits(9))
    scheduler.at(2 * S, event.set)
    scheduler.run(10 * S)

    assert seen == [(False, 1.0), (True, 2.0)]


def test_a_lock_is_had_by_one_at_a_time(scheduler: Scheduler) -> None:
    lock, seen = threads.Lock(), list[str]()

    def main(name: str) -> None:
        with lock:
            seen.append(f"{name} in")
            clock.sleep(1)
            seen.append(f"{name} out")

    begin(scheduler, lambda: main("a"))
    begin(scheduler, lambda: main("b"))
    scheduler.run(10 * S)

    assert seen == ["a in", "a out", "b in", "b out"]


def test_a_condition_tells_those_that_wait(scheduler: Scheduler) -> None:
    condition, seen = threads.Condition(), list[bool]()
    found: list[int] = []

    def waits() -> None:
        with condition:
            seen.append(bool(condition.wait_for(lambda: found, timeout=5)))
            seen.append(bool(condition.wait_for(lambda: len(found) > 1, timeout=1)))

    def tells() -> None:
        clock.sleep(1)
        with condition:
            found.append(1)
            condition.notify_all()

    begin(scheduler, waits)
    begin(scheduler, tells)
    scheduler.run(10 * S)

    assert seen == [True, False]
    assert scheduler.failures == []


def test_threads_end_and_are_joined(scheduler: Scheduler) -> None:
    seen: list[tuple[bool, bool]] = []

    def main() -> None:
        thread = port.Thread(target=clock.sleep, args=(2,), name="other", daemon=True)
        thread.start()
        thread.join(1)
        early = thread.is_alive()
        thread.join(5)
        seen.append((early, thread.is_alive()))

    begin(scheduler, main)
    scheduler.run(10 * S)

    assert seen == [(True, False)]
    assert scheduler.fibers[1].process.paused_until + 2 * S >= 2 * S


def test_each_process_has_its_own_chance(scheduler: Scheduler) -> None:
    seen: dict[str, str] = {}

    def draws(name: str) -> Callable[[], None]:
        return lambda: seen.update({name: chance.token_hex(8)})

    begin(scheduler, draws("one"), "one")
    begin(scheduler, draws("two"), "two")
    begin(scheduler, draws("again"), "one")
    scheduler.run(S)

    assert seen["one"] == seen["again"] != seen["two"]


def test_the_ports_of_osbench_are_those_of_worlds() -> None:
    assert clock.monotonic_ns is ports.monotonic_ns
    assert port.Thread is threads.Thread
    assert disk.fsync is disk.fdatasync


def test_what_reads_a_real_clock_in_a_world_has_failed(scheduler: Scheduler) -> None:
    import time

    code = compile("time.monotonic()", "module of osbench", "exec")

    begin(scheduler, lambda: exec(code, {"time": time, "__name__": "osbench.somewhere"}))
    scheduler.run(S)

    assert [who for who, _ in scheduler.failures] == ["osbench.somewhere", "one/main"]


def test_a_fiber_that_waits_for_no_time_again_and_again_is_found(scheduler: Scheduler) -> None:
    def main() -> None:
        while True:
            clock.sleep(0)

    begin(scheduler, main, "spinning")
    scheduler.run(S)

    ((who, error),) = scheduler.failures
    assert who == "spinning/main"
    assert "turns within a second" in str(error)


def test_tasks_of_two_loops_run_while_each_waits(scheduler: Scheduler) -> None:
    done = []

    def loop_of(name: str) -> Callable[[], None]:
        async def wait_in_a_task() -> None:
            for _ in range(3):
                # as code that takes a lock or looks at the clock, in the middle of a task
                scheduler.wait(1.0)
                await asyncio.sleep(0)
            done.append(name)

        def run() -> None:
            loop = VirtualLoop()
            loop.run_until_complete(wait_in_a_task())
            loop.close()

        return run

    host = Process("a", 1)
    for name in ("first", "second"):
        scheduler.spawn(host, loop_of(name), name)
    scheduler.run(10 * S)

    assert scheduler.failures == []
    assert sorted(done) == ["first", "second"]
