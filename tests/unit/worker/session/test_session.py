"""A session follows its control records: prepares, runs, gives back, and ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from helpers.engines import arrivals, batch, body, until
from osbench.common.clock import ClockOffset
from osbench.common.errors import PluginError
from osbench.common.intervals import Intervals
from osbench.common.outcomes import Outcome
from osbench.common.protocol.blocks import decode_rows
from osbench.common.protocol.envelope import Sealer, Vault
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Batch, Block, Control, Specification
from osbench.common.protocol.store import MemoryStore
from osbench.worker.session.preparation import Prepared
from osbench.worker.session.session import Session

RING = Keyring.generate()
SEALER, VAULT = Sealer(RING), Vault(RING)
#: Redis time is this process's monotonic clock.
CLOCK = ClockOffset(monotonic_ns=0, uncertainty_ns=0)


class Preparing:
    """Prepares scenarios made on the spot, by name."""

    def __init__(self, **works: Any) -> None:
        self.works = works
        self.gates: dict[str, threading.Event] = {}

    def prepare(self, specification: Specification) -> Prepared:
        gate = self.gates.get(specification.scenario)
        if gate is not None:
            gate.wait(20)
        work = self.works[specification.scenario]
        if isinstance(work, BaseException):
            raise work
        return Prepared(
            specification=specification,
            body=body(work, timeout_s=specification.timeout_s),
        )


class Desk:
    """What a coordinator does to one worker process."""

    def __init__(self, folder: Path, preparing: Preparing, capacity: int) -> None:
        self.store = MemoryStore()
        self.store.open({"epoch": "e", "boot": "b"})
        self.control = Control(run="r", epoch="e", incarnation="w", version=0)
        self.session = Session(
            run="r",
            epoch="e",
            incarnation="w",
            capacity=capacity,
            store=self.store,
            sealer=SEALER,
            vault=VAULT,
            preparation=preparing,
            spool=folder / "spool",
            spool_limit_bytes=1 << 20,
        )
        self.session.claimer.server_run_id = "b"

    def specify(self, workload: int, scenario: str, **more: Any) -> None:
        values = {
            "run": "r",
            "workload": workload,
            "scenario": scenario,
            "args": {},
            "timeout_s": 0.0,
            "open": False,
            "max_concurrency": 0,
            "max_lag_s": 1.0,
            "context": {},
            "deployment": {},
            "source_hash": "",
            "sample_rate": 0.0,
            "ship_interval_s": 0.05,
        }
        specification = Specification(**{**values, **more})
        vault = VAULT.encrypt(specification.body())
        self.store.put_specification(workload, SEALER.seal(Specification.KIND, {"vault": vault}))

    def tell(self, **changes: Any) -> str:
        self.control = replace(self.control, version=self.control.version + 1, **changes)
        return self.session.follow(SEALER.seal(Control.KIND, self.control.body()), CLOCK)

    def send(self, *batches: Batch) -> list[str]:
        return [self.session.offer(SEALER.seal(Batch.KIND, one.body())) for one in batches]

    def prepare(self, workload: int) -> None:
        self.tell(workload=workload, t0_at=None, share=0, generation=0, stop_s=None)
        until(lambda: self.session.prepared == workload)

    def start(self, share: int, **more: Any) -> None:
        t0_at = time.monotonic() + 0.03
        self.tell(t0_at=t0_at, share=share, generation=1, **more)

    def blocks(self) -> list[Block]:
        entries = self.store.read("0", 0, 1 << 30)
        return [Block.parse(SEALER.open(Block.KIND, entry)) for _, entry in entries]

    def numbers(self, workload: int = 0) -> list[int]:
        found = [
            decode_rows(block.columns).iteration.tolist()
            for block in self.blocks()
            if block.columns and block.workload == workload
        ]
        return sorted(chain.from_iterable(found))

    def returned(self) -> Intervals:
        found = Intervals()
        for block in self.blocks():
            found.update((low, high) for low, high in block.returned)
        return found

    def acknowledge(self) -> None:
        self.tell(acknowledged=max((block.number for block in self.blocks()), default=0))


@contextmanager
def desk(folder: Path, preparing: Preparing, capacity: int = 8) -> Iterator[Desk]:
    found = Desk(folder, preparing, capacity)
    try:
        yield found
    finally:
        found.session.close()


def quick(scenario):
    pass


def test_a_workload_from_preparing_to_its_last_block(tmp_path):
    with desk(tmp_path, Preparing(quick=quick)) as harness:
        harness.specify(0, "quick")
        assert harness.session.state == "idle"

        harness.prepare(0)
        assert harness.session.state == "ready"
        assert harness.session.problem == ""

        harness.send(batch((1, 101), number=1), batch((101, 151), number=2))
        harness.start(share=4)
        assert harness.session.state == "running"
        assert harness.session.generation == 1
        until(lambda: harness.numbers() == list(range(1, 151)))
        harness.tell(workload=-1, t0_at=None)

        assert harness.session.state == "idle"


def test_the_next_workload_is_prepared_and_its_early_batches_run(tmp_path):
    with desk(tmp_path, Preparing(one=quick, two=quick)) as harness:
        harness.specify(0, "one")
        harness.specify(1, "two")
        harness.prepare(0)
        harness.send(batch((1, 11)))
        harness.start(share=2)
        until(lambda: harness.numbers() == list(range(1, 11)))

        harness.tell(workload=1, t0_at=None, share=0, generation=0)
        harness.send(batch((1, 6), number=2, workload=1))
        until(lambda: harness.session.prepared == 1)
        harness.start(share=2)
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
        harness.specify(0, "broken")
        harness.prepare(0)

        assert harness.session.problem == problem
        assert harness.session.engine is None


def test_a_specification_that_is_missing_or_not_ours_is_reported(tmp_path):
    stranger = Vault(Keyring.generate()).encrypt({})
    with desk(tmp_path, Preparing()) as harness:
        harness.prepare(0)
        missing = harness.session.problem
        harness.store.put_specification(1, SEALER.seal(Specification.KIND, {"vault": stranger}))
        harness.prepare(1)

        assert missing == "the workload's specification is missing"
        assert "none of our keys" in harness.session.problem


def test_the_share_follows_its_generation_up_to_the_capacity(tmp_path):
    go = threading.Event()
    with desk(tmp_path, Preparing(slow=lambda scenario: go.wait(20)), capacity=3) as harness:
        harness.specify(0, "slow")
        harness.prepare(0)
        harness.send(batch((1, 101)))
        harness.start(share=2)
        until(lambda: harness.session.busy == 2)

        harness.tell(share=10, generation=2)
        until(lambda: harness.session.busy == 3)
        assert harness.session.generation == 2
        go.set()


def test_the_stop_instant_gives_the_rest_back(tmp_path):
    with desk(tmp_path, Preparing(nap=lambda scenario: time.sleep(0.002))) as harness:
        harness.specify(0, "nap")
        harness.prepare(0)
        harness.send(batch((1, 100_001)))
        harness.start(share=2, stop_s=0.05)
        until(lambda: len(harness.numbers()) + len(harness.returned()) == 100_000)

    ran = Intervals([(n, n + 1) for n in harness.numbers()])
    assert not harness.returned().intersection(ran)
    for block in harness.blocks():
        if block.columns:
            assert (decode_rows(block.columns).started < 50_000_000).all()


def test_draining_ends_what_runs_and_returns_what_does_not(tmp_path):
    go = threading.Event()
    with desk(tmp_path, Preparing(slow=lambda scenario: go.wait(20))) as harness:
        harness.specify(0, "slow")
        harness.prepare(0)
        harness.send(batch((1, 21)))
        harness.start(share=2)
        until(lambda: harness.session.busy == 2)

        harness.session.drain()
        assert harness.session.state == "draining"
        until(lambda: harness.returned() == Intervals([(3, 21)]))
        assert not harness.session.drained
        go.set()
        until(lambda: harness.numbers() == [1, 2])
        assert not harness.session.drained
        harness.acknowledge()

        assert harness.session.drained
        assert harness.send(batch((30, 31), number=9)) == [""]
        assert harness.session.queued == 0


def test_drained_says_so_only_when_every_number_is_settled(tmp_path):
    """Numbers that stand in a user's local variable for a moment count as well."""
    for _ in range(10):
        with desk(tmp_path, Preparing(quick=quick)) as harness:
            harness.specify(0, "quick")
            harness.prepare(0)
            harness.send(batch((1, 1_000_001)))
            harness.start(share=8)
            until(lambda harness=harness: harness.session.engine.rows)
            harness.session.drain()
            while not harness.session.drained:
                harness.acknowledge()
            settled = len(harness.numbers()) + len(harness.returned())

        assert settled == 1_000_000


def test_open_workloads_start_when_due_and_tell_whose_limit_it_was(tmp_path):
    go = threading.Event()
    outcomes = {}
    for limit in (2, 0):
        go.clear()
        preparing = Preparing(slow=lambda scenario: go.wait(20))
        with desk(tmp_path, preparing, capacity=2) as harness:
            harness.specify(0, "slow", open=True, max_lag_s=0.05, max_concurrency=limit)
            harness.prepare(0)
            harness.send(arrivals([0] * 5))
            harness.start(share=2)
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


@pytest.mark.parametrize("change", [{"run": "x"}, {"epoch": "x"}, {"incarnation": "x"}])
def test_control_records_of_others_are_refused(tmp_path, change):
    with desk(tmp_path, Preparing()) as harness:
        refusal = harness.tell(workload=0, **change)

        assert refusal == "control record of another run or worker process"
        assert harness.session.state == "idle"


def test_an_older_control_record_changes_nothing(tmp_path):
    with desk(tmp_path, Preparing(quick=quick)) as harness:
        harness.specify(0, "quick")
        harness.prepare(0)
        old = SEALER.seal(Control.KIND, replace(harness.control, version=1, workload=-1).body())
        harness.tell()
        same = SEALER.seal(Control.KIND, harness.control.body())

        assert harness.session.follow(old, CLOCK) == "control record seen before"
        assert harness.session.follow(same, CLOCK) == ""
        assert harness.session.follow(None, CLOCK) == ""
        assert harness.session.state == "ready"


def test_forged_records_and_batches_are_refused(tmp_path):
    stranger = Sealer(Keyring.generate())
    with desk(tmp_path, Preparing()) as harness:
        control = stranger.seal(Control.KIND, replace(harness.control, version=9).body())

        assert "unknown key" in harness.session.follow(control, CLOCK)
        assert "unknown key" in harness.session.offer(
            stranger.seal(Batch.KIND, batch((1, 2)).body())
        )
        assert "not msgpack" in harness.session.offer(b"\xc1")


def test_acknowledged_blocks_are_forgotten(tmp_path):
    with desk(tmp_path, Preparing(quick=quick)) as harness:
        harness.specify(0, "quick")
        harness.prepare(0)
        harness.send(batch((1, 11)))
        harness.start(share=1)
        until(lambda: harness.numbers() == list(range(1, 11)))
        kept = len(harness.session.outbox)
        harness.acknowledge()

        assert kept > 0
        until(lambda: len(harness.session.outbox) == 0)


def test_stuck_threads_are_counted_beyond_their_workload(tmp_path):
    go = threading.Event()
    with desk(tmp_path, Preparing(slow=lambda scenario: go.wait(20))) as harness:
        harness.specify(0, "slow", timeout_s=0.05)
        harness.prepare(0)
        harness.send(batch((1, 3)))
        harness.start(share=2)
        until(lambda: harness.numbers() == [1, 2])
        before = harness.session.stuck
        harness.tell(workload=-1, t0_at=None)
        after = harness.session.stuck
        go.set()

        assert before == after == 2
        until(lambda: harness.session.stuck == 0)


def test_a_slow_preparation_of_an_earlier_workload_changes_nothing(tmp_path):
    preparing = Preparing(slow=quick, quick=quick)
    preparing.gates["slow"] = threading.Event()
    with desk(tmp_path, preparing) as harness:
        harness.specify(0, "slow")
        harness.specify(1, "quick")
        harness.tell(workload=0)
        harness.prepare(1)
        preparing.gates["slow"].set()
        time.sleep(0.1)

        assert harness.session.prepared == 1
        assert harness.session._ready.specification.scenario == "quick"


def test_a_released_session_is_over(tmp_path):
    with desk(tmp_path, Preparing()) as harness:
        harness.tell(released=True)

        assert harness.session.over
