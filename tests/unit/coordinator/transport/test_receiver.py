"""The receiver: what a worker sends is counted once, and what is unreadable ends the worker."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.heartbeats import heartbeat
from osbench.common.protocol.blocks import encode_rows
from osbench.common.protocol.envelope import Sealer, Vault
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Block
from osbench.common.protocol.store import MemoryStore
from osbench.coordinator.fleet.worker import LossReason, WorkerHandle
from osbench.coordinator.results.workload_results import WorkloadResults
from osbench.coordinator.sla.evaluator import SlaEvaluator
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.transport.channel import Channel
from osbench.coordinator.transport.receiver import Receiver


class Desk:
    """A receiver with two workers, each of which has five numbers of one workload."""

    def __init__(self, directory: RunDirectory) -> None:
        ring = Keyring.generate()
        self.sealer = Sealer(ring)
        self.store = MemoryStore()
        self.store.open({"epoch": "e"})
        nothing: Any = None
        channel = Channel(
            store=self.store,
            sealer=self.sealer,
            vault=Vault(ring),
            app=nothing,
            run_id="r",
            epoch="e",
        )
        self.directory = directory
        self.workers = {
            name: WorkerHandle(heartbeat(name), workload=0, share=1) for name in ("w1", "w2")
        }
        self.channel = channel
        self.receiver = Receiver(channel, self.workers, directory)
        self.results = WorkloadResults(idempotent=False, sla=SlaEvaluator((), None))
        self.receiver.register(0, self.results)
        self.fences: list[tuple[str, int]] = []
        for number, worker in enumerate(self.workers, 1):
            self.results.ledger.cut(number, worker, self.results.ledger.allot(5, 10))

    def send(self, worker: str, number: int, *rows: int, **fields: Any) -> None:
        packed = [(row, 1, 0, 0, 10**6, 0, 0, (), None) for row in rows]
        fields.setdefault("columns", encode_rows(packed, (), 0) if packed else {})
        block = Block(run="r", epoch="e", incarnation=worker, number=number, workload=0, **fields)
        self.store.append(self.sealer.seal(Block.KIND, block.body()))

    def receive(self) -> None:
        """Read what is there; note each fence with the iterations counted before it."""
        self.receiver.receive(0, lambda nonce: self.fences.append((nonce, self.ok)))

    @property
    def ok(self) -> int:
        return self.results.ledger.accounting().ok


@pytest.fixture
def desk(tmp_path):
    directory = RunDirectory.create(str(tmp_path), "r")
    yield Desk(directory)
    directory.close()


def test_blocks_that_came_together_are_counted_once_and_kept_each(desk):
    desk.send("w1", 1, 1, 2)
    desk.send("w2", 1, 6)
    desk.send("w1", 2, 3)
    desk.send("w1", 2, 3)
    desk.receive()
    desk.send("w2", 1, 6)
    desk.send("w2", 2, 7)
    desk.receive()

    assert desk.ok == 5
    assert desk.results.duplicates == 2
    assert {name: worker.blocks for name, worker in desk.workers.items()} == {"w1": 2, "w2": 2}
    assert [body["number"] for body in desk.directory.blocks()] == [1, 1, 2, 2]


def test_results_that_cannot_be_read_are_a_protocol_error_and_the_others_count(desk):
    desk.send("w1", 1, 1)
    desk.send("w1", 2, columns={"rows": 1})
    desk.send("w1", 3, 3)
    desk.send("w2", 1, 6, 7, 8, 9, 10)

    desk.receive()

    assert (desk.ok, desk.results.refused) == (7, 1)
    assert desk.workers["w1"].due_loss(99.0) is LossReason.PROTOCOL_ERROR
    assert desk.workers["w2"].due_loss(99.0) is None


def test_a_fence_is_reported_between_the_blocks_before_it_and_those_behind(desk):
    desk.send("w1", 1, 1, 2)
    nonce = desk.channel.fence("w1")
    desk.send("w1", 2, 3)

    desk.receive()

    assert desk.fences == [(nonce, 2)]
    assert desk.ok == 3


def test_results_behind_the_fence_of_their_worker_are_late(desk):
    desk.receiver.fence("w1")
    desk.send("w1", 1, 1)
    desk.send("w2", 1, 6)

    desk.receive()

    assert (desk.ok, desk.results.ledger.late) == (2, 1)


def test_blocks_of_a_worker_or_workload_that_the_run_does_not_know_are_refused(desk):
    desk.send("w3", 1, 1)

    desk.receive()

    assert (desk.ok, desk.channel.refused) == (0, 1)
