"""What a dead worker process cannot have started is told until its run is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Control, Will
from osbench.common.protocol.store import Store
from osbench.common.protocol.timers import RESEND_S
from osbench.worker.process.will_sender import WillSender
from world import ports, present
from world.fibers import Process, S
from world.judges import judge
from world.judges.needless import IN_HAND
from world.resumed_scenes import played, sums
from world.scenes import when
from world.wire import Client
from world.world import KEYRING, World

MID = "b" * 32
WILL = Will(run="run-1", incarnation="host.1.aa", membership=MID, workload=0, seq=2, number=9)
STRANGER = Keyring([b"s" * 32])


@pytest.fixture
def world() -> Iterator[World]:
    """Keys in a file, which may be rotated."""
    with World(1, key_file=True) as found:
        yield found


class Desk:
    """The results of one run in Redis, and a sender of wills. Used by a fiber."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.store = Store(Client(world.redis, 5.0), "run-1")  # type: ignore[arg-type]
        self.store.tend()
        self.sender = WillSender(world.conf)

    def entries(self) -> list[bytes]:
        return [data for _, data in self.store.read(0, 1000)]

    def wills(self) -> list[Will]:
        """Those that stand in Redis now."""
        signer = Signer(self._world.keyring())
        return [Will.parse(signer.verify(Will.KIND, data)) for data in self.entries()]

    def forget(self) -> None:
        """Delete what stands in Redis."""
        self.store.delete([place for place, _ in self.store.read(0, 1000)])

    def answer(self, *, ring: Keyring = KEYRING, **changes: Any) -> None:
        """Write a control record of the membership."""
        names = {"run": "run-1", "incarnation": WILL.incarnation, "membership": MID}
        control = Control(**{"epoch": 1, "session": MID, "version": 9, **names, **changes})
        self.store.put_controls({MID: Signer(ring).sign(Control.KIND, control.body())})


def act(world: World, scene: Callable[[Desk], None]) -> None:
    """Play a scene in a process of its own."""
    process = Process("supervisor", 1)
    world.scheduler.spawn(process, lambda: scene(Desk(world)), "main")
    world.play(1000.0)
    assert list(judge(world, is_over=True, is_released=True)) == []


def test_a_worker_is_replaced_while_redis_is_away_and_its_will_comes_later(world: World) -> None:
    for _ in range(2):
        world.hire()
    runner = {"constant": {"times": 400, "concurrency": 4}}
    run = world.add(workers=2, runner=runner, args={"least_s": 0.05, "most_s": 0.2})

    def strike() -> None:
        world.redis.hung_until = world.scheduler.now + 4 * S
        world.workers[0].kill()
        world.hire()

    when(world, lambda: len(run.known.starts) > 20, strike)
    played(world)

    found = sums(run)
    assert found["ok"] + found["lost"] == 400
    assert found["lost"] <= IN_HAND


def test_a_will_does_not_keep_its_supervisor_and_is_sent_when_redis_is_back(world: World) -> None:
    def scene(desk: Desk) -> None:
        world.redis.hung_until = world.scheduler.now + 20 * S
        before = world.scheduler.now
        desk.sender.send(WILL)

        assert world.scheduler.now == before

        ports.sleep(20 + 3 * RESEND_S)

        assert WILL in desk.wills()

    act(world, scene)


def test_a_supervisor_sends_a_will_before_it_ends(world: World) -> None:
    def scene(desk: Desk) -> None:
        desk.sender.send(WILL)
        desk.sender.flush(5.0)

        assert desk.wills() == [WILL]

    act(world, scene)


def test_a_supervisor_does_not_wait_for_a_redis_that_stays_away(world: World) -> None:
    def scene(desk: Desk) -> None:
        world.redis.hung_until = world.scheduler.now + 100 * S
        before = world.scheduler.now
        desk.sender.send(WILL)
        desk.sender.flush(5.0)

        assert (world.scheduler.now - before) / S == pytest.approx(5)

    act(world, scene)


def test_a_will_is_sent_again_until_the_run_is_over(world: World) -> None:
    def scene(desk: Desk) -> None:
        desk.sender.send(WILL)
        for _ in range(3):
            ports.sleep(2 * RESEND_S)
            assert WILL in desk.wills()
            desk.forget()
        desk.answer(over=True)
        ports.sleep(2 * RESEND_S)
        assert desk.sender._pending == []
        desk.forget()
        ports.sleep(300)

        assert desk.wills() == []

    act(world, scene)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"over": True, "run": "run-2"},
        {"over": True, "membership": "c" * 32},
        {"over": True, "incarnation": "host.2.aa"},
        {"over": True, "ring": STRANGER},
    ],
    ids=["not-over", "another-run", "another-membership", "another-process", "another-key"],
)
def test_a_record_that_does_not_end_the_run_for_it_changes_nothing(
    world: World, record: dict[str, Any]
) -> None:
    def scene(desk: Desk) -> None:
        desk.answer(**record)
        desk.sender.send(WILL)
        ports.sleep(5 * RESEND_S)

        assert len(desk.wills()) >= 4
        assert all(will == WILL for will in desk.wills())

    act(world, scene)


def test_a_will_is_signed_with_the_key_of_the_moment(world: World) -> None:
    def scene(desk: Desk) -> None:
        desk.sender.send(WILL)
        ports.sleep(2 * RESEND_S)
        old = KEYRING.keys[0].id
        assert all(old in data for data in desk.entries())
        desk.forget()
        world.rotate_keys(b"n" * 32)
        new = world.keyring().keys[0].id
        # a key is used once all hosts have had it for a while
        ports.sleep(20 * RESEND_S)

        assert new in desk.entries()[-1]

    act(world, scene)


def test_a_will_waits_for_the_results_of_its_run(world: World) -> None:
    def scene(desk: Desk) -> None:
        desk.store.close()
        desk.sender.send(WILL)
        ports.sleep(3 * RESEND_S)
        assert desk.entries() == []
        desk.store.tend()
        ports.sleep(2 * RESEND_S)

        assert desk.wills()[0] == WILL

    act(world, scene)


def test_a_will_that_found_no_results_is_not_sent_yet(world: World) -> None:
    def scene(desk: Desk) -> None:
        desk.store.close()
        desk.sender.send(WILL)
        ports.sleep(RESEND_S)
        before = present.scheduler().now
        desk.sender.flush(4 * RESEND_S)

        assert present.scheduler().now - before >= 4 * RESEND_S * S

    act(world, scene)
