"""A session follows its control records: prepares, runs, gives back, and ends."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from time import monotonic_ns
from typing import Any

import pytest

from helpers.engines import S, arrivals, batch, until
from helpers.local_redis import LocalStore
from helpers.preparing import Preparing, specified
from osbench.common.errors import PluginError, StoreUnreachable
from osbench.common.machine.redis_clock import ClockOffset
from osbench.common.protocol import redis_keys, timers
from osbench.common.protocol.columns import decode_rows
from osbench.common.protocol.envelope import Signer, Vault
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Batch, Block, Control, Offer, Specification
from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import Outcome
from osbench.worker.engine.precise_sleep import PreciseSleep
from osbench.worker.engine.users.possible_users import UserLimits
from osbench.worker.session import workloads
from osbench.worker.session.beat_log import BeatLog
from osbench.worker.session.equipment import Equipment
from osbench.worker.session.refusals import Refusals
from osbench.worker.session.session import Session
from osbench.worker.session.shipper import Shipper
from servers.child import PATIENCE_S

RING = Keyring.generate()
SIGNER, VAULT = Signer(RING), Vault(RING)
#: Redis time is this process's monotonic clock.
CLOCK = ClockOffset(monotonic_ns=0, uncertainty_ns=0)
#: What tests leave out, and one does not.
EXEMPT = workloads._exempt_from_garbage_collection
#: A lease that does not end within a test, nanoseconds.
LONG_NS = 1000 * S


class Desk:
    """What a coordinator does to one worker process."""

    def __init__(self, folder: Path, preparing: Preparing, capacity: int) -> None:
        self.store = LocalStore()
        self.store.tend()
        self.control = Control(
            run="r", epoch=1, incarnation="w", session="s", membership="s", version=0, answers=1
        )
        self.beats = BeatLog()
        self.refusals = Refusals()
        self.folder = folder
        equipment = Equipment(
            incarnation="w",
            user_limits=UserLimits(threads=capacity, coroutines=10 * capacity),
            signer=SIGNER,
            vault=VAULT,
            preparation=preparing,
            refusals=self.refusals,
            sleep=PreciseSleep(0.0),
            spool_dir=folder / "spool",
            spool_limit_bytes=1 << 20,
        )
        self.beats.note(1, monotonic_ns() + LONG_NS)
        offer = Offer(
            run="r",
            epoch=1,
            incarnation="w",
            challenge="c",
            session="s",
            membership="s",
        )
        self.session = Session(
            offer, equipment=equipment, store=self.store, beats=self.beats, news=lambda: None
        )
        self.workloads = self.session.workloads

    def specify(self, workload: int, scenario: str, **more: Any) -> bytes:
        """Write a specification; the next control records name it."""
        specification = specified(workload, scenario, **more)
        vault = VAULT.encrypt(specification.body())
        data = SIGNER.sign(Specification.KIND, {"vault": vault})
        self.store.put_specifications({workload: data})
        return hashlib.sha256(data).digest()

    def tell(self, **changes: Any) -> None:
        self.control = replace(self.control, version=self.control.version + 1, **changes)
        self.put(self.control)

    def put(self, control: Control) -> None:
        self.session.follow(SIGNER.sign(Control.KIND, control.body()), CLOCK, 0)

    def send(self, *batches: Batch) -> list[str]:
        return [self.session.offer(one) for one in batches]

    def prepare(self, workload: int, digest: bytes) -> None:
        self.tell(
            workload=workload,
            specification=digest,
            t0_at=None,
            user_limit=0,
            generation=0,
            stop_s=None,
        )
        self.await_prepared(workload)

    def await_prepared(self, workload: int) -> None:
        def prepared() -> bool:
            self.session.fetch()
            return self.workloads.prepared == workload

        until(prepared)

    def start(self, user_limit: int, **more: Any) -> None:
        now = time.monotonic()
        self.tell(t0_at=now + 0.03, told_at=now, user_limit=user_limit, generation=1, **more)

    def blocks(self) -> list[Block]:
        entries = self.store.read(0, 1 << 30)
        found = [Block.parse(SIGNER.verify(Block.KIND, entry)) for _, entry in entries]
        return list({block.number: block for block in found}.values())

    def numbers(self, workload: int = 0) -> list[int]:
        found = [
            decode_rows(block.columns).iteration.tolist()
            for block in self.blocks()
            if block.columns and block.workload == workload
        ]
        return sorted(chain.from_iterable(found))

    def returned(self, workload: int = 0) -> Intervals:
        found = Intervals()
        for block in self.blocks():
            if block.workload == workload:
                found.update((low, high) for low, high in block.returned)
        return found

    def voids(self) -> list[int]:
        return sorted(seq for block in self.blocks() for seq in block.voids)

    def acknowledge(self) -> None:
        self.tell(acknowledged=max((block.number for block in self.blocks()), default=0))


@contextmanager
def desk(folder: Path, preparing: Preparing, capacity: int = 8) -> Iterator[Desk]:
    found = Desk(folder, preparing, capacity)
    try:
        yield found
    finally:
        found.session.close()
        found.session.outbox.close()


@contextmanager
def running(folder: Path, work: Callable[[Any], Any], user_limit: int = 2) -> Iterator[Desk]:
    """A session with a workload under load, and no batch yet."""
    with desk(folder, Preparing(work=work)) as harness:
        harness.prepare(0, harness.specify(0, "work"))
        harness.start(user_limit=user_limit)
        yield harness


def takeover(harness: Desk, session: str = "t", epoch: int = 2) -> None:
    harness.session.takeover(
        Offer(
            run="r",
            epoch=epoch,
            incarnation="w",
            challenge="c",
            session=session,
            membership="s",
        )
    )
    harness.control = replace(harness.control, session=session, epoch=epoch, version=0)


def quick(scenario):
    pass


def nap(scenario):
    time.sleep(0.002)


def test_what_a_shipper_asks_as_soon_as_it_is_there_can_be_answered(tmp_path, monkeypatch):
    """Its thread may run before the constructor of the session goes on."""
    asked = []

    class Hasty(Shipper):
        def __init__(self, *, patience_s, **more):
            asked.append(patience_s())
            super().__init__(patience_s=patience_s, **more)

    monkeypatch.setattr("osbench.worker.session.session.Shipper", Hasty)

    with desk(tmp_path, Preparing()):
        pass

    assert asked == [timers.RESEND_S]


def test_a_workload_from_preparing_to_its_last_block(tmp_path):
    with desk(tmp_path, Preparing(quick=quick)) as harness:
        digest = harness.specify(0, "quick")
        assert harness.session.state == "idle"

        harness.prepare(0, digest)
        assert harness.session.state == "ready"
        assert harness.workloads.problem == ""

        harness.send(batch((1, 101), number=1), batch((101, 151), number=2))
        harness.start(user_limit=4)
        assert harness.session.state == "running"
        assert harness.workloads.generation == 1
        until(lambda: harness.numbers() == list(range(1, 151)))
        harness.tell(workload=-1, t0_at=None)

        assert harness.session.state == "idle"
        assert harness.session.facts()["got"] == 2
        assert harness.session.facts()["made"] == len(harness.blocks())


def test_the_next_workload_is_prepared_and_its_early_batches_run(tmp_path):
    with desk(tmp_path, Preparing(one=quick, two=quick)) as harness:
        first, second = harness.specify(0, "one"), harness.specify(1, "two")
        harness.prepare(0, first)
        harness.send(batch((1, 11)))
        harness.start(user_limit=2)
        until(lambda: harness.numbers() == list(range(1, 11)))

        harness.tell(workload=1, specification=second, t0_at=None, user_limit=0, generation=0)
        harness.send(batch((1, 6), number=2, workload=1))
        harness.await_prepared(1)
        assert harness.session.facts()["queued"] == 5
        harness.start(user_limit=2)
        until(lambda: harness.numbers(1) == list(range(1, 6)))

    assert harness.numbers(0) == list(range(1, 11))


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (PluginError("not installed here"), "not installed here"),
        (ValueError("no network"), "preparing failed: ValueError: no network"),
        (SystemExit(1), "preparing failed: SystemExit: 1"),
    ],
)
def test_what_preparing_raises_is_reported(tmp_path, error, problem):
    with desk(tmp_path, Preparing(broken=error)) as harness:
        harness.prepare(0, harness.specify(0, "broken"))

        assert harness.workloads.problem == problem
        assert harness.workloads.engine is None


# specifications


def test_a_specification_is_waited_for(tmp_path):
    with desk(tmp_path, Preparing(quick=quick)) as harness:
        digest = harness.specify(0, "quick")
        data = harness.store.specification(0)
        harness.store.server.delete(redis_keys.run("r", "specs"))
        harness.tell(workload=0, specification=digest)
        for _ in range(3):
            harness.session.fetch()
        waiting = harness.session.state
        harness.store.put_specifications({0: data})
        harness.await_prepared(0)

        assert waiting == "preparing"
        assert harness.session.state == "ready"
        assert harness.refusals.counts() == {}


def test_only_the_specification_that_is_named_is_followed(tmp_path, monkeypatch):
    monkeypatch.setattr("osbench.worker.session.workloads.ASK_S", 0.0)
    preparing = Preparing(ours=quick, theirs=ValueError("the wrong one was prepared"))
    with desk(tmp_path, preparing) as harness:
        digest = harness.specify(0, "ours")
        data = harness.store.specification(0)
        harness.specify(0, "theirs")
        harness.tell(workload=0, specification=digest)
        for _ in range(3):
            harness.session.fetch()
        refused = harness.refusals.counts()
        harness.store.put_specifications({0: data})
        harness.await_prepared(0)

        assert refused == {"other specification": 1}
        assert harness.workloads.problem == ""


def test_a_specification_of_another_run_is_no_specification(tmp_path):
    with desk(tmp_path, Preparing(quick=quick)) as harness:
        harness.prepare(0, harness.specify(0, "quick", run="x"))

        assert harness.workloads.problem == "the specification is of another workload"


def test_a_specification_that_we_cannot_decrypt_is_reported(tmp_path):
    stranger = Vault(Keyring.generate()).encrypt({})
    data = SIGNER.sign(Specification.KIND, {"vault": stranger})
    with desk(tmp_path, Preparing()) as harness:
        harness.store.put_specifications({1: data})
        harness.prepare(1, hashlib.sha256(data).digest())

        assert "none of our keys" in harness.workloads.problem


def test_a_slow_preparation_of_an_earlier_workload_changes_nothing(tmp_path):
    preparing = Preparing(slow=quick, quick=quick)
    preparing.gates["slow"] = threading.Event()
    with desk(tmp_path, preparing) as harness:
        slow, fast = harness.specify(0, "slow"), harness.specify(1, "quick")
        harness.tell(workload=0, specification=slow)
        harness.session.fetch()
        harness.prepare(1, fast)
        preparing.gates["slow"].set()
        time.sleep(0.1)

        assert harness.workloads.prepared == 1
        assert harness.workloads._ready.specification.scenario == "quick"


# load


@pytest.mark.parametrize(("kind", "most"), [("threads", 3), ("coroutines", 30)])
def test_the_share_follows_its_generation_up_to_the_capacity(tmp_path, kind, most):
    go = threading.Event()

    async def wait(scenario):
        while not go.is_set():
            await asyncio.sleep(0.01)

    works = {"threads": lambda scenario: go.wait(PATIENCE_S), "coroutines": wait}
    with desk(tmp_path, Preparing(**works), capacity=3) as harness:
        harness.prepare(0, harness.specify(0, kind))
        harness.send(batch((1, 101)))
        harness.start(user_limit=2)
        until(lambda: harness.workloads.busy == 2)

        harness.tell(user_limit=50, generation=2)
        until(lambda: harness.workloads.busy == most)
        assert (harness.workloads.generation, harness.workloads.user_limit) == (2, most)
        go.set()


@pytest.mark.parametrize("kind", ["threads", "coroutines"])
def test_iterations_of_users_beyond_a_lowered_share_are_told_until_they_end(tmp_path, kind):
    go = threading.Event()

    async def wait(scenario):
        while not go.is_set():
            await asyncio.sleep(0.01)

    works = {"threads": lambda scenario: go.wait(PATIENCE_S), "coroutines": wait}
    with desk(tmp_path, Preparing(**works), capacity=3) as harness:
        harness.prepare(0, harness.specify(0, kind))
        harness.send(batch((1, 4)))
        harness.start(user_limit=3)
        until(lambda: harness.workloads.busy == 3)
        before = harness.workloads.surplus

        harness.tell(user_limit=1, generation=2)
        until(lambda: harness.workloads.generation == 2)
        lowered = harness.workloads.surplus
        go.set()

        assert (before, lowered) == (0, 2)
        until(lambda: harness.workloads.surplus == 0)


def test_a_greatest_rate_holds_from_the_first_iteration_on(tmp_path):
    with desk(tmp_path, Preparing(quick=lambda scenario: None)) as harness:
        harness.prepare(0, harness.specify(0, "quick"))
        harness.send(batch((1, 10_001)))
        harness.start(user_limit=8, pace=0.001)
        until(harness.numbers)
        time.sleep(0.05)

        assert harness.numbers() == [1]


def test_the_stop_instant_gives_the_rest_back(tmp_path):
    with desk(tmp_path, Preparing(nap=nap)) as harness:
        harness.prepare(0, harness.specify(0, "nap"))
        harness.send(batch((1, 100_001)))
        harness.start(user_limit=2, stop_s=0.05)
        until(lambda: len(harness.numbers()) + len(harness.returned()) == 100_000)

    ran = Intervals([(n, n + 1) for n in harness.numbers()])
    assert not harness.returned().intersection(ran)
    for block in harness.blocks():
        if block.columns:
            assert (decode_rows(block.columns).started < 50_000_000).all()


def test_a_load_that_was_stopped_goes_on_under_the_next_coordinator(tmp_path):
    with desk(tmp_path, Preparing(nap=nap)) as harness:
        harness.prepare(0, harness.specify(0, "nap"))
        harness.start(user_limit=2, stop_s=0.0)
        harness.send(batch((1, 6)))
        until(lambda: len(harness.returned()) == 5)

        takeover(harness)
        harness.tell(stop_s=None, generation=2)
        harness.send(replace(batch((6, 11), number=2), session="t"))
        until(lambda: harness.numbers() == [6, 7, 8, 9, 10])


def test_open_workloads_start_when_due_and_tell_whose_limit_it_was(tmp_path):
    go = threading.Event()
    outcomes = {}
    for limit in (2, 0):
        go.clear()
        preparing = Preparing(slow=lambda scenario: go.wait(PATIENCE_S))
        with desk(tmp_path, preparing, capacity=2) as harness:
            # so long that a busy machine starts the first two in time
            digest = harness.specify(0, "slow", open=True, max_lag_s=1.0, max_concurrency=limit)
            harness.prepare(0, digest)
            harness.send(arrivals([0] * 5))
            harness.start(user_limit=2)
            until(lambda harness=harness: len(harness.numbers()) == 3)
            go.set()
            until(lambda harness=harness: len(harness.numbers()) == 5)
            found = [
                decode_rows(block.columns).outcome.tolist()
                for block in harness.blocks()
                if block.columns
            ]
            outcomes[limit] = sorted(chain.from_iterable(found))

    assert outcomes[2] == [Outcome.OK] * 2 + [Outcome.DROPPED_MAX_CONCURRENCY] * 3
    assert outcomes[0] == [Outcome.OK] * 2 + [Outcome.DROPPED_CAPACITY] * 3


def test_what_runs_when_the_next_workload_comes_is_reported_under_its_own(tmp_path):
    go = threading.Event()
    works = Preparing(slow=lambda scenario: go.wait(PATIENCE_S), quick=quick)
    with desk(tmp_path, works) as harness:
        slow, fast = harness.specify(0, "slow"), harness.specify(1, "quick")
        harness.prepare(0, slow)
        harness.send(batch((1, 11)))
        harness.start(user_limit=2)
        until(lambda: harness.workloads.busy == 2)
        harness.prepare(1, fast)
        harness.start(user_limit=1)
        harness.send(batch((1, 4), number=2, workload=1))
        until(lambda: harness.numbers(1) == [1, 2, 3])
        go.set()
        until(lambda: harness.numbers(0) == [1, 2])

    assert harness.returned(0) == Intervals([(3, 11)])


def test_stuck_threads_are_counted_beyond_their_workload(tmp_path):
    go = threading.Event()
    with desk(tmp_path, Preparing(slow=lambda scenario: go.wait(PATIENCE_S))) as harness:
        harness.prepare(0, harness.specify(0, "slow", timeout_s=0.5))
        harness.send(batch((1, 3)))
        harness.start(user_limit=2)
        until(lambda: harness.numbers() == [1, 2])
        # what has timed out is recorded before its user is replaced
        until(lambda: len(harness.workloads.stuck()) == 2)
        harness.tell(workload=-1, t0_at=None)
        after = len(harness.workloads.stuck())
        go.set()

        assert after == 2
        until(lambda: not harness.workloads.stuck())


def test_what_is_there_before_a_load_is_exempt_from_garbage_collection(tmp_path, monkeypatch):
    monkeypatch.setattr(workloads, "_exempt_from_garbage_collection", EXEMPT)
    gc.unfreeze()
    with desk(tmp_path, Preparing(quick=quick)) as harness:
        harness.prepare(0, harness.specify(0, "quick"))
        exempt = gc.get_freeze_count()
        gc.unfreeze()

    assert exempt > 10_000


def test_shared_objects_are_traversed_only_after_growth(tmp_path, monkeypatch):
    traversed, resident = [], [0]
    monkeypatch.setattr(
        workloads,
        "_exempt_from_garbage_collection",
        lambda *, everything: traversed.append(everything),
    )
    monkeypatch.setattr(workloads, "resident_bytes", lambda: resident[0])
    with desk(tmp_path, Preparing(quick=quick)) as harness:
        resident[0] = harness.workloads._traversed_bytes
        for number, grown in enumerate((0, workloads.TRAVERSE_BYTES, 1, workloads.TRAVERSE_BYTES)):
            resident[0] += grown
            harness.prepare(number, harness.specify(number, "quick"))

    # once, as the second growth is not more than allowed
    assert traversed == [False, False, True, False]


def test_batches_of_another_workload_go_back(tmp_path):
    with running(tmp_path, quick) as harness:
        harness.send(batch((1, 6), workload=3), batch((1, 4), number=2))
        until(lambda: harness.numbers() == [1, 2, 3])
        until(lambda: harness.returned(3) == Intervals([(1, 6)]))

        assert harness.session.facts()["got"] == 2


def test_what_waits_for_a_workload_that_does_not_come_goes_back(tmp_path):
    with desk(tmp_path, Preparing()) as harness:
        harness.send(batch((1, 6), workload=3))
        harness.tell(workload=5)

        until(lambda: harness.returned(3) == Intervals([(1, 6)]))


# lease


def test_nothing_starts_after_the_lease_and_all_goes_on_when_it_is_renewed(tmp_path):
    with running(tmp_path, nap) as harness:
        # renewed by an answer to a heartbeat that was sent long ago: not at all
        harness.session._lease_ns = 0
        sent_ns = monotonic_ns() - int(timers.LEASE_S * 1e9)
        harness.beats.note(2, sent_ns)
        harness.tell(answers=2)
        harness.send(batch((1, 101)))
        time.sleep(0.1)
        before = harness.numbers()
        harness.beats.note(3, monotonic_ns() + LONG_NS)
        harness.tell(answers=3)
        until(lambda: len(harness.numbers()) == 100)

    assert before == []
    assert not harness.returned()


def test_the_lease_counts_from_when_the_heartbeat_was_sent(tmp_path):
    with running(tmp_path, quick) as harness:
        harness.session._lease_ns = 0
        harness.beats.note(7, 1000)
        harness.beats.note(8, 3000)
        harness.tell(answers=7)
        first = harness.workloads.engine.lease_ns
        harness.tell(answers=8)
        second = harness.workloads.engine.lease_ns
        harness.tell(answers=7)
        harness.tell(answers=99)

        lease_ns = int(timers.LEASE_S * 1e9)
        assert (first, second) == (1000 + lease_ns, 3000 + lease_ns)
        assert harness.workloads.engine.lease_ns == second


def test_a_lease_that_ended_before_the_load_begins_holds_for_its_engine(tmp_path):
    with desk(tmp_path, Preparing(quick=quick)) as harness:
        harness.prepare(0, harness.specify(0, "quick"))
        harness.session._lease_ns = 0
        harness.beats.note(2, 1000)
        harness.tell(answers=2)
        harness.start(user_limit=1)

        assert harness.workloads.engine.lease_ns == 1000 + int(timers.LEASE_S * 1e9)


def test_instants_of_old_heartbeats_are_forgotten():
    log = BeatLog()
    for beat in range(1, 500):
        log.note(beat, beat)

    assert log.sent_ns(1) is None
    assert log.sent_ns(499) == 499
    assert log.sent_ns(400) == 400


# recall


def test_a_recalled_batch_goes_back_as_far_as_it_is_not_started(tmp_path):
    go = threading.Event()
    with running(tmp_path, lambda scenario: go.wait(PATIENCE_S)) as harness:
        harness.send(batch((1, 6)), batch((6, 11), number=2))
        until(lambda: harness.workloads.busy == 2)
        harness.tell(recall=[1])
        until(lambda: harness.returned() == Intervals([(3, 6)]))
        go.set()
        until(lambda: harness.numbers() == [1, 2, *range(6, 11)])


def test_a_recalled_batch_that_waits_for_its_workload_goes_back(tmp_path):
    with desk(tmp_path, Preparing(quick=quick)) as harness:
        harness.prepare(0, harness.specify(0, "quick"))
        harness.send(batch((1, 6)), batch((6, 11), number=2))
        harness.tell(recall=[1])
        until(lambda: harness.returned() == Intervals([(1, 6)]))
        harness.start(user_limit=1)
        until(lambda: harness.numbers() == list(range(6, 11)))


def test_a_batch_that_is_recalled_before_it_comes_is_void_and_never_runs(tmp_path):
    with running(tmp_path, quick) as harness:
        harness.tell(recall=[1, 3])
        harness.tell(recall=[1, 3, 2])
        harness.send(batch((1, 6)), batch((6, 11), number=2), batch((11, 16), number=3))
        harness.send(batch((16, 21), number=4))
        until(lambda: harness.numbers() == list(range(16, 21)))
        until(lambda: harness.voids() == [1, 2, 3])

    assert harness.returned() == Intervals()


def test_a_recall_lets_those_run_that_waited_for_it(tmp_path):
    with running(tmp_path, quick) as harness:
        harness.send(batch((6, 11), number=2))
        waiting = harness.session.facts()["got"]
        harness.tell(recall=[1])
        until(lambda: harness.numbers() == list(range(6, 11)))

    assert waiting == 0


# control records


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"run": "x"}, "other run"),
        ({"incarnation": "x"}, "other worker"),
        ({"membership": "x"}, "other session"),
        ({"session": "x"}, "other session"),
    ],
)
def test_control_records_of_others_are_refused(tmp_path, change, reason):
    with desk(tmp_path, Preparing()) as harness:
        other = replace(harness.control, version=1, workload=0, **change)
        harness.put(other)
        harness.put(other)

        assert harness.refusals.counts() == {reason: 1}
        assert harness.session.state == "idle"


def test_an_older_control_record_changes_nothing(tmp_path):
    with desk(tmp_path, Preparing(quick=quick)) as harness:
        harness.prepare(0, harness.specify(0, "quick"))
        harness.put(replace(harness.control, version=1, workload=-1))
        harness.session.follow(None, CLOCK, 0)

        assert harness.refusals.counts() == {"seen before": 1}
        assert harness.session.state == "ready"


@pytest.mark.parametrize("junk", [b"\xc1", b"", b"\xff" * 100, "stranger"])
def test_forged_records_are_refused(tmp_path, junk):
    with desk(tmp_path, Preparing()) as harness:
        if junk == "stranger":
            junk = Signer(Keyring.generate()).sign(Control.KIND, {"run": "r"})
        harness.session.follow(junk, CLOCK, 0)

        assert harness.refusals.counts() == ({"bad signature": 1} if junk else {})


def test_acknowledged_blocks_are_forgotten(tmp_path):
    with running(tmp_path, quick) as harness:
        harness.send(batch((1, 11)))
        until(lambda: harness.numbers() == list(range(1, 11)))
        kept = len(harness.session.outbox)
        harness.acknowledge()

        assert kept > 0
        until(lambda: len(harness.session.outbox) == 0)


def test_what_is_on_disk_is_so_for_every_session_of_the_membership(tmp_path):
    with running(tmp_path, quick) as harness:
        harness.send(batch((1, 11)))
        until(lambda: harness.numbers() == list(range(1, 11)))
        made = harness.session.facts()["made"]
        harness.put(replace(harness.control, session="t", acknowledged=made))

        until(lambda: len(harness.session.outbox) == 0)


# takeover


def test_a_new_coordinator_finds_all_as_it_was(tmp_path):
    go = threading.Event()
    with running(tmp_path, lambda scenario: go.wait(PATIENCE_S)) as harness:
        harness.send(batch((1, 4)), batch((9, 12), number=3))
        until(lambda: harness.workloads.busy == 2)
        takeover(harness)
        old = harness.send(batch((4, 9), number=2))
        new = [replace(one, session="t") for one in (batch((4, 9), number=2),)]
        accepted = harness.send(*new)
        got = harness.session.facts()["got"]
        harness.tell(recall=[1])
        until(lambda: harness.returned() == Intervals([(3, 4)]))
        go.set()
        until(lambda: harness.numbers() == [1, 2, *range(4, 9)])

    assert (old, accepted, got) == (["other session"], [""], 2)
    assert {block.membership for block in harness.blocks()} == {"s"}


def test_records_of_the_old_coordinator_are_not_followed(tmp_path):
    with running(tmp_path, quick) as harness:
        old = replace(harness.control, version=99, workload=-1)
        takeover(harness)
        harness.put(old)

        assert harness.session.state == "running"
        assert harness.refusals.counts() == {"other session": 1}


def test_a_workload_that_was_dropped_under_a_new_coordinator_is_taken_up_again(tmp_path):
    with running(tmp_path, quick) as harness:
        digest = harness.control.specification
        takeover(harness)
        # the first record is written before it is known what the worker serves
        harness.tell(workload=-1, specification=b"")
        harness.tell(workload=0, specification=digest, user_limit=2, generation=2)
        harness.send(replace(batch((1, 4)), session="t"))
        harness.await_prepared(0)
        harness.tell()

        until(lambda: harness.numbers() == [1, 2, 3])
        assert harness.session.state == "running"


# leaving


def test_leaving_ends_what_runs_and_returns_what_does_not(tmp_path):
    go = threading.Event()
    with running(tmp_path, lambda scenario: go.wait(PATIENCE_S)) as harness:
        harness.send(batch((1, 21)))
        until(lambda: harness.workloads.busy == 2)

        harness.session.leave()
        assert harness.session.state == "draining"
        until(lambda: harness.returned() == Intervals([(3, 21)]))
        assert not harness.session.finish()
        harness.send(batch((30, 31), number=2))
        go.set()
        until(harness.session.finish)
        harness.session.shipper.flush()

        assert harness.numbers() == [1, 2]
        assert harness.returned() == Intervals([(3, 21), (30, 31)])
        assert [block.final for block in harness.blocks()][-1]


def test_after_the_last_block_nothing_of_the_membership_is_taken(tmp_path):
    with running(tmp_path, quick) as harness:
        harness.session.leave()
        until(harness.session.finish)
        blocks = harness.session.facts()["made"]

        assert harness.send(batch((1, 11))) == ["no run"]
        harness.tell(recall=[1, 2])
        harness.session.shipper.flush()
        assert harness.session.facts()["made"] == blocks
        assert harness.session.facts()["got"] == 0


def test_a_last_block_that_cannot_be_sent_has_been_made_all_the_same(tmp_path):
    with running(tmp_path, quick) as harness:

        def away(entry, *, instead_of=""):
            raise StoreUnreachable("no answer")

        append, harness.store.append = harness.store.append, away
        harness.session.leave()
        until(harness.session.finish)

        assert harness.send(batch((1, 11))) == ["no run"]
        harness.store.append = append
        harness.session.shipper.flush()
        assert [block.final for block in harness.blocks()] == [True]


def test_a_membership_that_leaves_goes_on_leaving_under_a_new_coordinator(tmp_path):
    go = threading.Event()
    with running(tmp_path, lambda scenario: go.wait(PATIENCE_S)) as harness:
        harness.send(batch((1, 21)))
        until(lambda: harness.workloads.busy == 2)
        harness.session.leave()
        takeover(harness)
        harness.tell()
        go.set()
        until(harness.session.finish)
        harness.session.shipper.flush()

        assert harness.numbers() == [1, 2]
        assert harness.session.facts()["epoch"] == 2


def test_each_number_is_settled_when_the_last_block_is_made(tmp_path):
    """Numbers that stand in a user's local variable for a moment count as well."""
    for _ in range(10):
        with desk(tmp_path, Preparing(quick=quick)) as harness:
            harness.prepare(0, harness.specify(0, "quick"))
            harness.send(batch((1, 1_000_001)))
            harness.start(user_limit=8)
            until(lambda harness=harness: harness.workloads.engine.rows)
            harness.session.leave()
            until(harness.session.finish)
            harness.session.shipper.flush()
            settled = len(harness.numbers()) + len(harness.returned())

        assert settled == 1_000_000


def test_a_run_that_is_over_says_so_whatever_the_session(tmp_path):
    with running(tmp_path, quick) as harness:
        harness.put(replace(harness.control, session="x", version=0, over=True))

        assert harness.session.over


def test_what_was_not_started_when_the_run_is_over_is_dropped(tmp_path):
    go = threading.Event()
    with running(tmp_path, lambda scenario: go.wait(PATIENCE_S)) as harness:
        harness.send(batch((1, 21)))
        until(lambda: harness.workloads.busy == 2)
        harness.tell(over=True)
        harness.session.drop()
        harness.session.close()
        made = harness.session.facts()["made"]
        refused = harness.send(batch((21, 22), number=2))
        go.set()
        until(lambda: harness.workloads.busy == 0)

        assert refused == ["no run"]
        assert harness.session.facts()["made"] == made
        assert len(harness.workloads.engine.rows) == 2


def test_the_time_since_the_coordinator_was_heard_is_counted(tmp_path):
    with desk(tmp_path, Preparing()) as harness:
        harness.session._heard -= 1000
        before = harness.session.unheard_s()
        harness.put(replace(harness.control, session="x", version=9))
        other = harness.session.unheard_s()
        harness.tell()

        assert harness.session.unheard_s() < 1000 <= before <= other
