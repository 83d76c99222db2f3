"""The coordinator's reader: what a worker sends is counted once, and what is unreadable ends it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from helpers.heartbeats import heartbeat
from osbench.common.protocol.blocks import encode_rows
from osbench.common.protocol.envelope import Sealer, Vault
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Block
from osbench.common.protocol.store import MemoryStore
from osbench.coordinator.fleet.worker import Member
from osbench.coordinator.results.workload_results import Book
from osbench.coordinator.sla.evaluator import Criteria
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.transport.channel import Channel
from osbench.coordinator.transport.receiver import Reader


class Desk:
    """A reader with two workers, each of which has five numbers of one workload."""

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
        self.members = {name: Member(heartbeat(name), workload=0, share=1) for name in ("w1", "w2")}
        fleet: Any = SimpleNamespace(members=self.members)
        self.reader = Reader(channel, fleet, directory)
        self.book = self.reader.books[0] = Book(idempotent=False, criteria=Criteria((), None))
        for number, worker in enumerate(self.members, 1):
            self.book.ledger.cut(number, worker, self.book.ledger.allot(5, 10))

    def send(self, worker: str, number: int, *rows: int, **fields: Any) -> None:
        packed = [(row, 1, 0, 0, 10**6, 0, 0, (), None) for row in rows]
        fields.setdefault("columns", encode_rows(packed, (), 0) if packed else {})
        block = Block(run="r", epoch="e", incarnation=worker, number=number, workload=0, **fields)
        self.store.append(self.sealer.seal(Block.KIND, block.body()))

    @property
    def ok(self) -> int:
        return self.book.ledger.accounting().ok


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
    desk.reader.take_in(0)
    desk.send("w2", 1, 6)
    desk.send("w2", 2, 7)
    desk.reader.take_in(0)

    assert desk.ok == 5
    assert desk.book.duplicates == 2
    assert {name: member.blocks for name, member in desk.members.items()} == {"w1": 2, "w2": 2}
    assert [body["number"] for body in desk.directory.blocks()] == [1, 1, 2, 2]


def test_a_worker_whose_results_cannot_be_read_is_given_up_and_the_others_count(desk):
    desk.send("w1", 1, 1)
    desk.send("w1", 2, columns={"rows": 1})
    desk.send("w1", 3, 3)
    desk.send("w2", 1, 6, 7, 8, 9, 10)
    desk.reader.take_in(0)
    garbled = desk.members["w1"]

    assert (desk.ok, desk.book.refused) == (7, 1)
    assert garbled.garbled
    assert not desk.members["w2"].garbled

    desk.reader.give_up(garbled)
    desk.reader.take_in(0)
    desk.book.ledger.claimed(1)

    assert garbled.fenced
    assert not desk.book.ledger.open
    desk.book.ledger.close(10)
    assert desk.book.ledger.accounting().lost == 3
