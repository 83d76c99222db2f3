"""A coordinator that is killed, or sleeps: every iteration is accounted for all the same."""

from __future__ import annotations

import pytest

from osbench.common.errors import UsageError
from osbench.common.protocol import redis_keys
from world.coordinators import SimulatedRun
from world.fibers import S
from world.scenes import (
    MEDIUM,
    SHORT,
    closed,
    code_and_ok,
    open_load,
    play_out,
    report,
    staffed,
    sums,
    until,
    when,
)
from world.world import World

TIMES = 600
#: Instants from before the first iteration to behind the last, seconds.
MOMENTS = (0.2, 0.9, 1.6, 2.4, 3.5, 4.5, 5.2, 5.6)


def under_way(world: World) -> SimulatedRun:
    """A closed load of about five seconds on two workers."""
    return world.add(workers=2, runner=closed(TIMES, 8), args=MEDIUM)


def impatient(world: World) -> None:
    """Have workers wait for a coordinator for five seconds."""
    world.coordinator_lost_s = 5.0


def are_idle(world: World) -> bool:
    """Whether all workers serve nobody."""
    return all(one.agent is not None and one.agent._session is None for one in world.workers)


@pytest.mark.parametrize("host", [False, True], ids=["process", "host"])
@pytest.mark.parametrize("moment_s", MOMENTS)
def test_a_run_is_resumed_from_any_moment(moment_s: float, *, host: bool) -> None:
    with staffed() as world:
        run = under_way(world)

        def kill() -> None:
            if run.is_coordinated:
                run.kill_coordinator(0.5, host=host)

        world.scheduler.after(moment_s, kill)

        assert not play_out(world)
        assert code_and_ok(run) == (0, TIMES)


def test_workers_of_a_killed_coordinator_are_free_after_the_time_that_is_set() -> None:
    with staffed() as world:
        impatient(world)
        run = under_way(world)
        others: list[SimulatedRun] = []

        def serve_another() -> None:
            at_s = world.scheduler.now / S
            others.append(world.add(at_s=at_s, workers=2, runner=closed(50, 4), args=SHORT))
            when(world, lambda: others[0].over, run.begin)

        def kill() -> None:
            assert run.coordinator is not None
            run.coordinator.kill()
            when(world, lambda: are_idle(world), serve_another)

        when(world, lambda: len(run.known.starts) >= 100, kill)

        assert not play_out(world)
        # what they had still to deliver has waited
        assert code_and_ok(others[0]) == (0, 50)
        assert code_and_ok(run) == (0, TIMES)


def test_ctrl_c_right_after_resume_waits_for_what_workers_keep_that_have_left() -> None:
    with staffed() as world:
        impatient(world)
        run = under_way(world)

        def go_on() -> None:
            # they send it again, some seconds later
            world.redis.redis.delete(redis_keys.run(run.plan.run_id, "results"))
            run.begin()
            world.scheduler.after(0.7, run.interrupt)

        def kill() -> None:
            assert run.coordinator is not None
            run.coordinator.kill()
            when(world, lambda: are_idle(world), go_on)

        when(world, lambda: len(run.known.starts) >= 100, kill)

        assert not play_out(world)
        found = sums(run)
        assert (run.interrupts, found["lost"]) == (1, 0)
        assert found["ok"] == len(run.known.starts)


def test_of_two_that_resume_a_run_one_wins() -> None:
    with staffed() as world:
        run = under_way(world)
        both: list[object] = []

        def resume_twice() -> None:
            run.begin_second()
            run.begin_second()
            both.extend(run.seconds)

        def kill() -> None:
            assert run.coordinator is not None
            run.coordinator.kill()
            world.scheduler.after(0.5, resume_twice)

        when(world, lambda: len(run.known.starts) >= 100, kill)

        assert not play_out(world)
        assert code_and_ok(run) == (0, TIMES)
        assert run.coordinator in both
        (loser,) = [one for one in both if one is not run.coordinator]
        assert isinstance(loser.error, UsageError)  # type: ignore[attr-defined]


def test_a_gap_in_an_open_load_is_dropped_and_never_made_up() -> None:
    with staffed() as world:
        run = world.add(workers=2, runner=open_load(60, 15), args=SHORT)
        when(world, lambda: len(run.known.starts) >= 100, lambda: run.kill_coordinator(6.0))

        assert not play_out(world)
        assert report(run)["exit_code"] in (0, 3)
        found = sums(run)
        assert found["lost"] == found["not_started"] == 0
        # six seconds of arrivals, less those that the workers had been given
        assert found["dropped"] >= 60 * 3
        assert not set(found["drops"]) & {"late", "capacity", "max_concurrency"}


def test_a_coordinator_that_slept_finds_that_it_has_lost_its_workers() -> None:
    with staffed() as world:
        impatient(world)
        world.conf.set_override("wait_for_workers_s", 120.0, "coordinator")
        sleeper = world.add(workers=2, runner=closed(2 * TIMES, 8), args=MEDIUM)
        others: list[SimulatedRun] = []
        wakes_at: list[int] = []

        def sleep() -> None:
            assert sleeper.coordinator is not None
            process = sleeper.coordinator.process
            process.paused_until = until(world, 10.0)
            wakes_at.append(process.paused_until)
            at_s = world.scheduler.now / S
            others.append(world.add(at_s=at_s, workers=2, runner=closed(TIMES, 8), args=MEDIUM))

        when(world, lambda: len(sleeper.known.starts) >= 50, sleep)

        assert not play_out(world)
        assert code_and_ok(others[0]) == (0, TIMES)
        assert 20 < sum(one.at_ns < wakes_at[0] for one in others[0].known.starts) < TIMES
        assert report(sleeper)["exit_code"] in (0, 3)
        assert sums(sleeper)["lost"] == 0
