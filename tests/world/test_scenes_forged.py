"""Someone without a key writes to Redis: runs end by themselves and do not lie.

A real Redis under several of these attacks is in `tests/functional/test_accounting_forged.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from osbench.common.protocol import redis_keys
from world.coordinators import SimulatedRun
from world.scenes import (
    MEDIUM,
    closed,
    code_and_ok,
    play_out,
    report,
    staffed,
    sums,
    until,
    when,
)
from world.simulated_redis import Stream
from world.world import World

TIMES = 400
#: How often, and how many seconds after each other, an attack is made.
ATTACKS, APART_S = 40, 0.05


def key_of(run: SimulatedRun, part: str) -> bytes:
    return redis_keys.run(run.plan.run_id, part).encode()


def results(run: SimulatedRun) -> Stream:
    """The result stream as it is now."""
    found = run.world.redis.redis.keys.get(key_of(run, "results"), Stream())
    assert isinstance(found, Stream)
    return found


def delete_an_entry(run: SimulatedRun) -> bool:
    found = results(run)
    return bool(found) and found.pop(next(iter(found))) is not None


def reorder_entries(run: SimulatedRun) -> bool:
    found = results(run)
    contents = list(found.values())
    Random(len(contents)).shuffle(contents)
    changed = contents != list(found.values())
    found.update(zip(found, contents, strict=True))
    return changed


def delete_part(part: str) -> Callable[[SimulatedRun], bool]:
    def delete(run: SimulatedRun) -> bool:
        return bool(run.world.redis.redis.delete(key_of(run, part)))

    delete.__name__ = f"delete_{part}"
    return delete


def flush(run: SimulatedRun) -> bool:
    run.world.redis.redis.restore(({}, {}))
    return True


def change_types(run: SimulatedRun) -> bool:
    server = run.world.redis.redis
    for key in list(server.keys):
        server.delete(key)
        server.rpush(key, b"junk")
    return True


@pytest.mark.parametrize(
    "attack",
    [
        delete_an_entry,
        reorder_entries,
        delete_part("results"),
        delete_part("specs"),
        delete_part("turns"),
        flush,
        change_types,
    ],
    ids=lambda one: one.__name__,
)
def test_a_run_under_attack_does_all_that_was_planned_once(
    attack: Callable[[SimulatedRun], bool],
) -> None:
    with staffed() as world:
        run = world.add(workers=2, runner=closed(TIMES, 6), args=MEDIUM)
        found: list[bool] = []

        def strike() -> None:
            world.redis.lost_keys_at = world.scheduler.now
            found.append(attack(run))
            if len(found) < ATTACKS:
                world.scheduler.after(APART_S, strike)

        # before a worker has read what to do
        specs = key_of(run, "specs")
        when(world, lambda: specs in world.redis.redis.keys, strike)

        assert not play_out(world)
        assert any(found)
        assert code_and_ok(run) == (0, TIMES)
        assert set(run.known.started.values()) == {1}


def test_what_may_have_started_is_not_told_as_not_started() -> None:
    with staffed() as world:
        run = world.add(workers=2, runner=closed(1000, 6), args=MEDIUM)

        def strike() -> None:
            world.redis.lost_keys_at = world.scheduler.now
            flush(run)
            world.scheduler.after(2.0, run.interrupt)

        when(world, lambda: len(run.known.starts) >= 50, strike)

        assert not play_out(world)
        told = sums(run)
        assert report(run)["exit_code"] == 130
        assert told["not_started"] > 0
        assert told["ok"] + told["not_started"] == 1000
        assert told["ok"] == len(run.known.started)


def swap(world: World, first: SimulatedRun, second: SimulatedRun) -> None:
    """Put the specification of a run into the place of another's for four seconds."""
    server, end = world.redis.redis, until(world, 4.0)
    foreign = dict(server.keys[key_of(first, "specs")])  # type: ignore[call-overload]

    def put() -> None:
        if key_of(second, "specs") in server.keys:
            server.hset(key_of(second, "specs"), mapping=foreign)
        if world.scheduler.now < end:
            world.scheduler.after(0.0005, put)

    put()


def test_specifications_of_another_run_are_refused_and_named() -> None:
    with staffed(2, trace=True) as world:
        first = world.add(workers=1, runner=closed(30, 4), args={"least_s": 0.9, "most_s": 0.9})
        second = world.add(at_s=1.0, workers=1, runner=closed(30, 4), args=MEDIUM)
        specs = key_of(first, "specs")
        when(world, lambda: specs in world.redis.redis.keys, lambda: swap(world, first, second))

        assert not play_out(world)
        assert code_and_ok(first) == code_and_ok(second) == (0, 30)
        assert world.trace is not None
        refused = [line for line in world.trace if "a specification was refused: " in line]
        assert refused[0].endswith("other specification")
        for run in (first, second):
            assert set(run.known.started.values()) == {1}
