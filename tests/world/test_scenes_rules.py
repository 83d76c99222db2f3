"""Scenes of rules that chance needs seldom: each fails where its rule is left out."""

from __future__ import annotations

from typing import Any

import pytest

from osbench.common.protocol import redis_keys
from osbench.common.protocol.messages import Control
from osbench.coordinator.load.transport.channel import Channel
from osbench.coordinator.results.storage.run_directory import RunDirectory
from world.coordinators import SimulatedRun
from world.fibers import S
from world.scenes import (
    MEDIUM,
    SHORT,
    closed,
    code_and_ok,
    play_out,
    report,
    staffed,
    sums,
    until,
    when,
)
from world.world import World

TIMES = 400


class Recorded:
    """What somebody who listens has kept, to put it back later."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._values: dict[bytes, Any] = {}
        self._batches: list[tuple[str, bytes]] = []
        deliver = world.broker.deliver

        def keep(queue: str, data: bytes) -> None:
            self._batches.append((queue, data))
            deliver(queue, data)

        world.broker.deliver = keep  # type: ignore[method-assign]

    def take(self, key: str) -> None:
        """Keep the value of a key as it is now."""
        name = key.encode()
        self._values[name] = self._world.redis.redis.keys[name]

    def put_back(self) -> None:
        """Have Redis hold what it held, for as long as it lasts."""
        redis = self._world.redis.redis
        redis.keys.update(self._values)
        for name in self._values:
            redis.expiry.pop(name, None)

    def send_again(self) -> None:
        """Send all batches once more."""
        for queue, data in list(self._batches):
            self._world.broker._put(queue, data)


def mid_of(run: SimulatedRun, host: str) -> str:
    """The membership of a worker."""
    assert run.services is not None
    found = run.services.accounts.memberships.values()
    (mid,) = (one.mid for one in found if one.incarnation.startswith(f"{host}."))
    return mid


def test_an_offer_that_is_put_back_is_not_followed() -> None:
    with staffed() as world:
        world.coordinator_lost_s = 3.0
        run = world.add(workers=2, runner=closed(TIMES, 4), args=MEDIUM)
        first, recorded = world.workers[0], Recorded(world)
        offer = redis_keys.offer(first.incarnation)
        is_offered = lambda: offer.encode() in world.redis.redis.keys  # noqa: E731
        when(world, is_offered, lambda: recorded.take(offer))

        def take() -> None:
            recorded.take(redis_keys.control(run.plan.run_id, mid_of(run, "w0")))
            # the worker knows the offer that it has followed last
            run.kill_coordinator(0.5)
            when(world, lambda: len(run.known.starts) >= 200, sleep)

        def sleep() -> None:
            assert run.coordinator is not None
            run.coordinator.process.paused_until = until(world, 10.0)
            when(world, lambda: not first.serves(), put_back)

        def put_back() -> None:
            recorded.put_back()
            world.scheduler.after(1.0, recorded.send_again)

        when(world, lambda: len(run.known.starts) >= 50, take)

        assert not play_out(world)
        assert code_and_ok(run) == (0, TIMES)
        assert set(run.known.started.values()) == {1}


def test_a_control_record_that_is_put_back_changes_no_share() -> None:
    with staffed() as world:
        run = world.add(workers=2, runner=closed(3 * TIMES, 8), args=MEDIUM)
        recorded = Recorded(world)

        def alone() -> None:
            recorded.take(redis_keys.control(run.plan.run_id, mid_of(run, "w1")))
            world.hire()
            when(world, lambda: has_started(run, "w2"), recorded.put_back)

        def kill() -> None:
            world.workers[0].kill(supervised=False)
            world.scheduler.after(5.0, alone)

        when(world, lambda: len(run.known.starts) >= 50, kill)

        assert not play_out(world)
        assert code_and_ok(run)[1] + sums(run)["lost"] == 3 * TIMES
        assert run.known.most_at_once <= 8


def has_started(run: SimulatedRun, process: str) -> bool:
    """Whether a worker has started something."""
    return any(one.process == process for one in run.known.starts)


def test_a_worker_is_not_granted_what_it_may_have_begun() -> None:
    with staffed(1) as world:
        args = {"least_s": 15.0, "most_s": 15.0}
        run = world.add(runner=closed(4, 4), args=args, idempotent=True)
        (only,) = world.workers

        def cut_off() -> None:
            only.hurt = True
            only.process.cut_off_until = until(world, 6.0)
            # it is heard again, and has what it was granted for the second time
            world.scheduler.after(8.0, run.interrupt)
            world.scheduler.after(9.0, lambda: only.kill(supervised=False))

        when(world, lambda: len(run.known.starts) == 4, lambda: world.scheduler.after(1.0, cut_off))

        assert not play_out(world)
        assert sums(run)["lost"] == 4


def test_no_worker_is_lost_because_redis_hangs() -> None:
    with staffed() as world:
        run = world.add(workers=2, runner=closed(TIMES, 4), args=MEDIUM)

        def hang() -> None:
            world.redis.hung_until = until(world, 10.0)

        when(world, lambda: len(run.known.starts) >= 50, hang)

        assert not play_out(world)
        assert code_and_ok(run) == (0, TIMES)
        assert not [one for one in RunDirectory(run.folder).decisions() if one["do"] == "lost"]


def test_a_run_is_resumed_twice() -> None:
    with staffed() as world:
        run = world.add(workers=2, runner=closed(TIMES, 4), args=MEDIUM)
        for many in (50, 200):
            when(
                world,
                lambda many=many: len(run.known.starts) >= many,
                lambda: run.kill_coordinator(0.5),
            )

        assert not play_out(world)
        assert code_and_ok(run) == (0, TIMES)
        assert (
            "the run was resumed 2 times, after its coordinator had ended" in report(run)["notes"]
        )


def test_a_dead_worker_that_redis_keeps_is_not_invited() -> None:
    with staffed(2) as world:
        dead, _ = world.workers

        def kill() -> None:
            # what it has said of itself does not expire for an hour
            world.redis.step_ns -= 3600 * S
            dead.kill(supervised=False)

        world.scheduler.after(2.0, kill)
        run = world.add(at_s=2.5, workers=1, runner=closed(TIMES, 4), args=SHORT)

        assert not play_out(world)
        assert code_and_ok(run) == (0, TIMES)


def test_a_worker_forgets_what_it_had_left_of_a_run_that_is_over() -> None:
    with staffed() as world:
        world.coordinator_lost_s = 4.0
        run = world.add(workers=2, runner=closed(TIMES, 4), args=MEDIUM)
        away = world.workers[0]

        def cut_off() -> None:
            away.hurt = True
            away.process.cut_off_until = until(world, 60.0)

        when(world, lambda: len(run.known.starts) >= 100, cut_off)

        assert not play_out(world)
        assert sums(run)["lost"] > 0


def test_a_batch_that_was_granted_to_others_meanwhile_is_not_taken() -> None:
    with staffed() as world:
        run = world.add(workers=2, runner=closed(3 * TIMES, 4), args=MEDIUM)
        queue, deliver = redis_keys.queue(world.workers[0].incarnation), world.broker.deliver

        def hold_back(name: str, data: bytes) -> None:
            if name != queue or len(run.known.starts) < 50:
                deliver(name, data)
                return
            world.broker.deliver = deliver  # type: ignore[method-assign]
            run.kill_coordinator(0.5)
            world.scheduler.after(8.0, lambda: deliver(name, data))

        world.broker.deliver = hold_back  # type: ignore[method-assign]

        assert not play_out(world)
        assert code_and_ok(run) == (0, 3 * TIMES)
        assert set(run.known.started.values()) == {1}


def test_a_worker_that_follows_late_goes_on_with_what_it_served() -> None:
    with staffed() as world, pytest.MonkeyPatch.context() as patch:
        run = world.add(workers=2, runner=closed(2 * TIMES, 8), args=MEDIUM)
        late, written = world.workers[0], Channel.control

        def kill() -> None:
            run.kill_coordinator(0.5)
            late.process.cut_off_until = until(world, 2.5)
            patch.setattr(Channel, "control", write)

        def write(one: Channel, records: dict[str, Control]) -> None:
            written(one, records)
            told = records.get(mid_of(run, late.name))
            if told is not None and told.epoch == 2:
                # that is all that it hears for a while
                patch.setattr(Channel, "control", written)
                assert run.coordinator is not None
                run.coordinator.process.cut_off_until = until(world, 1.5)

        when(world, lambda: len(run.known.starts) >= 50, kill)

        assert not play_out(world)
        assert code_and_ok(run) == (0, 2 * TIMES)


def test_users_of_a_worker_that_follows_late_are_not_given_to_others() -> None:
    with staffed() as world:
        args = {"least_s": 0.5, "most_s": 1.5}
        run = world.add(workers=2, runner=closed(200, 8), args=args)

        def kill() -> None:
            run.kill_coordinator(0.2)
            world.workers[0].process.cut_off_until = until(world, 2.2)
            world.hire()

        when(world, lambda: len(run.known.starts) >= 20, kill)

        assert not play_out(world)
        assert code_and_ok(run) == (0, 200)
        assert run.known.most_at_once == 8
