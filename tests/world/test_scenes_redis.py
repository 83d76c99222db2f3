"""A Redis or a broker that fails: the run goes on, or ends with a report of what it had."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from world.coordinators import SimulatedRun
from world.scenes import (
    MEDIUM,
    closed,
    code_and_ok,
    play_out,
    report,
    staffed,
    until,
    when,
)
from world.world import World

TIMES = 800


def loaded(world: World) -> SimulatedRun:
    """A closed load of about eight seconds on two workers."""
    return world.add(workers=2, runner=closed(TIMES), args=MEDIUM)


def is_told(run: SimulatedRun) -> bool:
    """Whether a note of the report says that Redis has gone back to an older state."""
    return any("Redis had lost" in note for note in report(run)["notes"])


def back_to(world: World, *, down_s: float, lag_s: float) -> None:
    """Redis comes back after a while with what it had a while before."""
    redis = world.redis
    copy = redis.redis.snapshot()

    def come_back() -> None:
        redis.lost_keys_at = world.scheduler.now
        redis.redis.restore(copy)
        redis.down_until = until(world, down_s)

    world.scheduler.after(lag_s, come_back)


def test_redis_that_was_killed_and_has_its_file_costs_nothing() -> None:
    with staffed() as world:
        run = loaded(world)

        def kill() -> None:
            world.redis.down_until = until(world, 3.0)

        world.scheduler.after(2.0, kill)

        assert not play_out(world)
        assert code_and_ok(run) == (0, TIMES)


@pytest.mark.parametrize("after_s", [0.5, 2.5])
@pytest.mark.parametrize(("down_s", "lag_s"), [(0.3, 1.0), (0.0, 1.5)], ids=["file", "replica"])
def test_redis_that_goes_back_to_an_older_state_is_noticed(
    after_s: float, down_s: float, lag_s: float
) -> None:
    with staffed() as world:
        run = loaded(world)
        world.scheduler.after(1.0 + after_s, lambda: back_to(world, down_s=down_s, lag_s=lag_s))

        assert not play_out(world)
        assert code_and_ok(run) == (0, TIMES)
        assert is_told(run)


def test_redis_that_dies_at_the_end_of_a_run_and_comes_back_empty_frees_the_workers() -> None:
    with staffed(trace=True) as world:
        run = world.add(workers=2, runner=closed(60), args=MEDIUM)
        journal = run.folder / "journal"

        def die() -> None:
            world.redis.redis.restore(({}, {}))
            world.redis.down_until = until(world, 3.0)

        when(world, lambda: journal.exists() and b"close" in journal.read_bytes(), die)

        assert not play_out(world)
        assert world.redis.down_until
        assert code_and_ok(run) == (0, 60)
        for one in world.workers:
            # they were told of the end, and delivered all
            assert not one.awaited()
            one.drain()
        world.scheduler.run(until(world, 60.0))
        assert not any(one.is_up for one in world.workers)
        assert not [line for line in world.trace or () if "was not heard" in line]
        assert not [line for line in world.trace or () if "did not confirm" in line]


def full(world: World) -> None:
    world.redis.full_until = until(world, 4.0)


def stands_still(world: World) -> None:
    world.redis.hung_until = until(world, 8.0)


@pytest.mark.parametrize("fault", [full, stands_still])
def test_redis_that_does_not_serve_for_a_while_costs_nothing(
    fault: Callable[[World], None],
) -> None:
    with staffed() as world:
        run = loaded(world)
        world.scheduler.after(2.0, lambda: fault(world))

        assert not play_out(world)
        assert code_and_ok(run) == (0, TIMES)


def test_a_heartbeat_and_claims_that_are_deleted_start_nothing_twice() -> None:
    with staffed() as world:
        run = loaded(world)
        beat = f"osbench:worker:{world.workers[0].incarnation}".encode()
        deleted: list[bytes] = []

        def delete() -> None:
            keys = world.redis.redis.keys
            claims = [name for name in keys if name.endswith(b":claims")]
            deleted.extend(name for name in (beat, *claims) if world.redis.redis.delete(name))
            if world.scheduler.now < 5.5e9:
                world.scheduler.after(0.005, delete)

        world.scheduler.after(1.0, delete)

        assert not play_out(world)
        assert beat in deleted
        assert code_and_ok(run) == (0, TIMES)


@pytest.mark.parametrize("apart", [True, False], ids=["broker", "redis"])
def test_a_server_that_stays_away_ends_the_run_until_it_is_resumed(*, apart: bool) -> None:
    with staffed(1, apart=apart) as world:
        world.conf.set_override("patience_s", 2.0, "messaging")
        runner = {"constant_for_duration": {"duration": 20, "concurrency": 4}}
        run = world.add(runner=runner, args=MEDIUM)
        server = world.broker.server if apart else world.redis

        def come_back() -> None:
            server.down_until = 0

        def die() -> None:
            server.down_until = until(world, 100_000.0)
            when(world, lambda: run.coordinators[0].ended, come_back)

        world.scheduler.after(3.0, die)

        assert not play_out(world)
        first = run.coordinators[0].summary
        assert first is not None
        assert first["exit_code"] == 3
        (note,) = [note for note in first["notes"] if "could not continue" in note]
        server_is = "the broker at amqp://memory does not take messages" if apart else "Redis at "
        assert server_is in note
        assert "for 2 s ([messaging] patience_s)" in note
        assert first["workloads"][0]["accounting"]["ok"] > 0
        assert len(run.coordinators) > 1
