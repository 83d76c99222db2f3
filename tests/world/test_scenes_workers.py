"""Workers that die, stop, leave, take nothing, or have wrong clocks: what that costs."""

from __future__ import annotations

import functools
import re

import pytest

from osbench.coordinator.results.accounting.block_contents import counted_rows
from osbench.coordinator.results.storage.run_directory import RunDirectory
from world.coordinators import SimulatedRun
from world.fibers import S
from world.scenes import (
    MEDIUM,
    SHORT,
    closed,
    code_and_ok,
    marks,
    open_load,
    play_out,
    report,
    staffed,
    sums,
    when,
    workload,
)
from world.workers import DRIFT
from world.world import World

TIMES = 400
RATE, SECONDS = 100, 12
OPEN = open_load(RATE, SECONDS)


def kill_after(world: World, run: SimulatedRun, after_s: float, *, supervised: bool) -> None:
    """Kill a worker so long after the first iteration."""
    kill = functools.partial(world.workers[0].kill, supervised=supervised)
    when(world, lambda: run.known.starts, lambda: world.scheduler.after(after_s, kill))


def is_right(run: SimulatedRun, rate: int) -> None:
    """All arrivals were due at the instants of the plan, and their rows tell the true starts."""
    at_s = {one.number: one.at_ns / S for one in run.known.starts}
    due_s: dict[int, float] = {}
    started_s: dict[int, float] = {}
    for *_, rows in counted_rows(RunDirectory(run.folder)):
        numbers = rows.iteration.tolist()
        due_s.update(zip(numbers, (rows.due / S).tolist(), strict=True))
        started_s.update(zip(numbers, (rows.started / S).tolist(), strict=True))
    found = sums(run)
    assert found["ok"] + found["not_started"] == found["planned"]
    assert len(due_s) == found["ok"]
    # those of an interrupted load may have a gap where arrivals were returned
    places = [due * rate for due in due_s.values()]
    assert places == pytest.approx([round(place) for place in places], abs=1e-3)
    assert len({round(place) for place in places}) == len(places)
    t0s = [at_s[number] - started for number, started in started_s.items()]
    # clocks drift apart with time
    assert max(t0s) - min(t0s) < 2 * DRIFT * max(started_s.values()) + 0.01


def test_a_killed_worker_costs_an_open_load_little() -> None:
    with staffed() as world:
        run = world.add(workers=2, runner=OPEN, args=SHORT)
        world.scheduler.after(5.0, world.workers[0].kill)

        assert not play_out(world)
        found = sums(run)
        assert code_and_ok(run)[0] == (3 if found["lost"] or found["dropped"] else 0)
        # what ran when it was killed, at 20 ms each about one, and what was not shipped for 0.2 s
        assert found["lost"] <= 30
        assert found["dropped"] <= RATE
        assert found["not_started"] == 0
        # the rate is back, with three seconds that are promised
        starts = [one.at_ns / S for one in run.known.starts]
        end = min(starts) + SECONDS
        late = [at for at in starts if 5.0 + 4 <= at <= end]
        assert len(late) >= 0.95 * RATE * (end - 5.0 - 4)


def test_progress_says_that_iterations_of_a_silent_worker_are_waited_for() -> None:
    with staffed() as world:
        run = world.add(workers=2, runner=closed(60), args=MEDIUM)
        victim, told = world.workers[0], set()

        def look() -> None:
            note = RunDirectory(run.folder).read("status.json") if run.known.starts else None
            told.add(note.get("awaited", "") if note else "")
            world.scheduler.after(0.5, look)

        look()
        when(world, lambda: len(run.known.starts) > 20, lambda: victim.kill(supervised=False))

        play_out(world)
        assert sums(run)["lost"]
        said = [
            re.sub(r"[0-9]+ iterations? of \S+,", "some of one,", text) for text in told if text
        ]
        assert set(said) == {"some of one, which is silent", "some of one, which is lost"}


def test_an_idempotent_open_load_loses_nothing() -> None:
    with staffed() as world:
        run = world.add(workers=2, runner=OPEN, args=SHORT, idempotent=True)
        world.scheduler.after(4.0, world.workers[0].kill)

        assert not play_out(world)
        assert code_and_ok(run) == (0, RATE * SECONDS)


def test_idempotent_arrivals_that_are_too_late_are_dropped_not_lost() -> None:
    with staffed() as world:
        world.conf.set_override("max_lag_s", 1.0, "benchmark")
        run = world.add(workers=2, runner=OPEN, args=SHORT, idempotent=True)
        world.scheduler.after(4.0, world.workers[0].kill)

        assert not play_out(world)
        found = sums(run)
        assert found["lost"] == found["not_started"] == 0
        assert found["ok"] + found["dropped"] == RATE * SECONDS


@pytest.mark.parametrize("others", [0, 1])
def test_a_worker_that_takes_no_batches_holds_nothing_up(others: int) -> None:
    with staffed(1 + others) as world:
        world.conf.set_override("wait_for_workers_s", 5.0, "coordinator")
        world.broker.deaf = world.workers[0].incarnation
        world.workers[0].hurt = True
        run = world.add(runner=closed(TIMES, 4), workers=1 + others, args=SHORT)

        assert not play_out(world)
        assert code_and_ok(run) == ((0, TIMES) if others else (3, 0))
        assert sums(run)["lost"] == 0
        if not others:
            # with another one, that has done it all before
            assert any("took none of its batches" in note for note in report(run)["notes"])


@pytest.mark.parametrize("after_s", [0.0, 0.9, 1.8])
@pytest.mark.parametrize("supervised", [True, False])
def test_an_idempotent_closed_load_loses_nothing(after_s: float, *, supervised: bool) -> None:
    with staffed() as world:
        run = world.add(workers=2, runner=closed(TIMES, 4), args=SHORT, idempotent=True)
        kill_after(world, run, after_s, supervised=supervised)

        assert not play_out(world)
        assert code_and_ok(run) == (0, TIMES)
        assert set(run.known.started.values()) <= {1, 2}


@pytest.mark.parametrize("after_s", [0.0, 0.9, 1.8])
@pytest.mark.parametrize("supervised", [True, False])
def test_arrivals_of_a_killed_worker_are_lost_dropped_or_done_by_the_other(
    after_s: float, *, supervised: bool
) -> None:
    with staffed() as world:
        run = world.add(workers=2, runner=open_load(100, 3), args=SHORT)
        kill_after(world, run, after_s, supervised=supervised)

        assert not play_out(world)
        found = sums(run)
        assert found["planned"] == 300
        assert set(run.known.started.values()) == {1}
        code = 3 if found["lost"] or found["drops"].get("worker_lost") else 0
        assert code_and_ok(run)[0] == code


def test_the_users_of_a_killed_worker_are_missing_since_it_fell_silent() -> None:
    users, duration_s = 8, 6
    runner = {"constant_for_duration": {"duration": duration_s, "concurrency": users}}
    with staffed() as world:
        run = world.add(workers=2, runner=runner, args=SHORT)
        victim = world.workers[0]
        when(world, lambda: run.known.starts, victim.kill)

        assert not play_out(world)
        found = workload(run)
        # half of the users for the two seconds at least that it takes to give a worker up
        held = 1 - (users / 2 * 2) / (users * duration_s)
        assert found["offered"]["concurrency_held"] <= held
        assert [one["lost"] for one in found["workers"] if one["host"] == "w0"] == [True]
        pattern = r"w0:1 fell silent \d+ s into the load and was declared lost \d+ s later"
        (note,) = [note for note in report(run)["notes"] if re.search(pattern, note)]
        assert note.startswith("Simulated.work: worker ")
        (lost,) = (mark for mark in marks(run) if mark["kind"] == "loss")
        assert 0 <= lost["from_s"] < lost["to_s"]
        assert "w0:1 fell silent" in lost["text"]


def test_a_worker_that_was_stopped_and_goes_on_starts_nothing_twice() -> None:
    with staffed() as world:
        run = world.add(workers=2, runner=closed(2 * TIMES, 8), args=MEDIUM)
        when(world, lambda: run.known.starts, lambda: world.workers[0].pause(5.0))

        assert not play_out(world)
        # whether it was declared lost or not, it has come back
        assert code_and_ok(run) == (0, 2 * TIMES)
        assert not any(one["lost"] for one in workload(run)["workers"])
        assert set(run.known.started.values()) == {1}


def test_a_worker_that_is_asked_to_leave_loses_nothing() -> None:
    with staffed() as world:
        run = world.add(workers=2, runner=closed(TIMES, 8), args=SHORT)
        leaving = world.workers[0]
        when(world, lambda: run.known.starts, leaving.drain)

        assert not play_out(world)
        assert code_and_ok(run) == (0, TIMES)
        assert set(run.known.started.values()) == {1}
        assert not leaving.is_up


def test_wall_clocks_of_workers_count_for_nothing() -> None:
    with staffed() as world:
        first, second = (one.process for one in world.workers)
        first.wall_ns, second.wall_ns = 180 * S, -420 * S
        run = world.add(workers=2, runner=open_load(RATE, 3), args=SHORT)

        def step() -> None:
            first.wall_ns -= 900 * S

        when(world, lambda: len(run.known.starts) >= 100, step)

        assert not play_out(world)
        assert code_and_ok(run) == (0, RATE * 3)
        is_right(run, RATE)
        offsets_s = [one["offset_s"] for one in workload(run)["workers"]]
        assert [round(offset / 60) for offset in offsets_s] == [12, 7]


def test_the_clock_of_redis_may_be_set_under_load() -> None:
    with staffed() as world:
        redis = world.redis
        redis.step_ns = 600 * S
        run = world.add(workers=2, runner=open_load(RATE, 600), args=SHORT)
        starts = run.known.starts

        def step() -> None:
            redis.step_ns -= 300 * S
            world.workers[0].drain()
            when(world, lambda: not world.workers[0].is_up, replace)

        def replace() -> None:
            # it is told t0 by another clock than those who were there
            new = world.hire()
            enough = lambda: sum(one.process == new.name for one in starts) >= 100  # noqa: E731
            when(world, enough, run.interrupt)

        when(world, lambda: len(starts) >= 100, step)

        assert not play_out(world)
        assert code_and_ok(run)[0] == 130
        is_right(run, RATE)

        # who is there has measured before the clock was set again
        redis.step_ns += 300 * S
        again = world.add(at_s=world.scheduler.now / S, workers=2, runner=open_load(RATE, 3))

        assert not play_out(world)
        assert code_and_ok(again) == (0, RATE * 3)
        is_right(again, RATE)
