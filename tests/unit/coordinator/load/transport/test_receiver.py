"""What workers send is on disk before it is counted, is counted once, and is deleted after that."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from helpers.result_rows import row_of
from osbench.common.errors import StorageError, StoreUnreachable
from osbench.common.ports import disk
from osbench.common.protocol.columns import encode_rows
from osbench.common.protocol.messages import Block, Will
from osbench.common.values.intervals import Intervals
from osbench.coordinator.load.transport import receiver
from osbench.coordinator.load.transport.receiver import Receiver
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.accounting.workload_results import WorkloadResults
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.worker.engine.will_page import WillPage

MIDS = {"w1": "1" * 32, "w2": "2" * 32}
MS = 10**6


class Bag:
    """What lies in Redis: read from its beginning, deleted by id."""

    def __init__(self) -> None:
        self.run_id = "r"
        self.refused = 0
        self.away = False
        self.entries: dict[str, Block | Will | None] = {}
        self._next = 0

    def put(self, message: Block | Will | None) -> None:
        self._next += 1
        self.entries[f"{self._next}-0"] = message

    def refuse(self, reason: str) -> None:
        self.refused += 1

    def read(self, wait_s: float) -> list[tuple[str, Block | Will | None]]:
        return list(self.entries.items())

    def delete(self, ids: Sequence[str]) -> None:
        if self.away:
            raise StoreUnreachable("no reply")
        for one in ids:
            self.entries.pop(one, None)


class Desk:
    """A receiver with two memberships that have five numbers each of a closed workload."""

    def __init__(self, directory: RunDirectory) -> None:
        self.bag = Bag()
        self.directory = directory
        self.accounts = Accounts()
        self.receiver = Receiver(self.bag, self.accounts, directory)
        self.results = WorkloadResults(idempotent=False, sla=SlaEvaluator((), None))
        self.ledger = self.results.ledger
        self.accounts.register(0, self.results)
        for name, mid in MIDS.items():
            self.decide(self.accounts.enrolment(mid, name))
            self.grant(mid, 1, self.ledger.allot(5, 10))

    def decide(self, record: dict[str, Any]) -> None:
        self.directory.decide([record])
        self.accounts.apply(record)

    def grant(self, mid: str, seq: int, numbers: Intervals, **fields: Any) -> None:
        record = {"do": "cut", "mid": mid, "seq": seq, "workload": 0, "intervals": list(numbers)}
        self.decide(record | fields)

    def send(self, worker: str, number: int, *rows: int, **fields: Any) -> None:
        packed = [row_of(row, 1, 0, 0, MS, 0, 0, (), None) for row in rows]
        given = {
            "run": "r",
            "incarnation": worker,
            "membership": MIDS.get(worker, "3" * 32),
            "number": number,
            "workload": 0,
            "columns": encode_rows(packed, (), 0) if packed else {},
        }
        self.bag.put(Block(**(given | fields)))

    def will(self, worker: str, **fields: Any) -> None:
        given = {"run": "r", "incarnation": worker, "membership": MIDS.get(worker, "3" * 32)}
        self.bag.put(Will(**(given | {"workload": 0} | fields)))

    def receive(self):
        return self.receiver.receive(0)

    @property
    def ok(self) -> int:
        return self.ledger.accounting().ok

    def done(self) -> list[str]:
        return [record["do"] for record in self.directory.decisions()][4:]


@pytest.fixture
def desk(tmp_path):
    directory = RunDirectory.create(str(tmp_path), "r")
    yield Desk(directory)
    directory.close()


def test_blocks_are_counted_once_and_kept_each_in_any_order(desk):
    desk.send("w1", 2, 3)
    desk.send("w2", 1, 6)
    desk.send("w1", 1, 1, 2)
    desk.send("w1", 2, 3)
    desk.receive()
    desk.send("w2", 1, 6)
    desk.send("w2", 3, 7)
    desk.receive()

    assert desk.ok == 5
    assert desk.results.duplicates == 2
    members = desk.accounts.memberships
    assert (members[MIDS["w1"]].acknowledged, members[MIDS["w1"]].have) == (2, set())
    assert (members[MIDS["w2"]].acknowledged, members[MIDS["w2"]].have) == (1, {3})
    assert [body["number"] for body in desk.directory.blocks()] == [1, 1, 2, 3]


def test_what_was_read_is_deleted_with_the_next_turn(desk):
    desk.send("w1", 1, 1)
    desk.receive()
    assert len(desk.bag.entries) == 1

    desk.bag.away = True
    with pytest.raises(StoreUnreachable):
        desk.receive()
    desk.bag.away = False
    desk.receive()

    assert not desk.bag.entries
    assert (desk.ok, desk.results.duplicates) == (1, 0)


def test_all_blocks_of_a_turn_are_one_write(desk, monkeypatch):
    synced = []
    sync = disk.fdatasync
    monkeypatch.setattr(disk, "fdatasync", lambda file: (synced.append(file), sync(file)))
    for number in range(1, 6):
        desk.send("w1", number, number)
        desk.send("w2", number, 5 + number)

    desk.receive()

    assert (desk.ok, len(synced)) == (10, 1)


def test_it_tells_what_each_membership_has_done(desk):
    desk.send("w1", 1, 1, 2)
    desk.send("w1", 2, 3)
    desk.send("w2", 1, returned=[[6, 8]])

    found = {one.mid: (one.workload, one.ran, one.busy_s) for one in desk.receive()}

    assert found == {MIDS["w1"]: (0, 3, pytest.approx(0.003)), MIDS["w2"]: (0, 0, 0.0)}


def test_results_that_cannot_be_read_are_told_and_the_others_count(desk, caplog):
    desk.send("w1", 1, 1)
    desk.send("w1", 2, columns={"rows": 1})
    desk.send("w1", 3, 3)
    desk.send("w2", 1, 6, 7, 8, 9, 10)

    arrivals = desk.receive()

    assert (desk.ok, desk.results.refused) == (7, 1)
    problems = [(one.mid, one.problem) for one in arrivals if one.problem]
    assert problems == [(MIDS["w1"], "malformed result block: 't0'")]
    assert "its results cannot be read, and it gets no more work: malformed" in caplog.text
    assert desk.accounts.memberships[MIDS["w1"]].acknowledged == 3


def test_a_block_of_a_membership_that_was_not_noted_notes_it(desk):
    desk.send("w1", 1, membership="4" * 32)

    desk.receive()

    assert desk.done() == ["member"]
    member = desk.accounts.memberships["4" * 32]
    assert (member.name, member.incarnation, member.acknowledged) == ("w1+2", "w1", 1)
    assert [body["incarnation"] for body in desk.directory.blocks()] == ["w1+2"]


@pytest.mark.parametrize(
    "fields",
    [
        {"run": "other"},
        {"incarnation": "w2"},
        {"number": 0},
        {"number": "1"},
        {"number": 1 << 80},
        {"membership": b"1"},
        {"workload": None},
        {"columns": []},
        {"returned": {}},
        {"voids": ["1"]},
        {"voids": 7},
        {"final": 1},
        {"want_ns": -1},
        {"started_late": "2"},
    ],
)
def test_what_cannot_be_of_this_run_is_refused(desk, fields):
    desk.send("w1", **({"number": 1} | fields))

    assert desk.receive() == []

    assert desk.bag.refused == 1
    assert list(desk.directory.blocks()) == []
    desk.receive()
    assert not desk.bag.entries


def test_blocks_of_a_workload_that_is_not_there_are_kept_and_refused(desk):
    desk.send("w1", 1, 1, workload=3)
    desk.send("w1", 2, workload=-1)

    desk.receive()

    assert (desk.ok, desk.accounts.refused, desk.bag.refused) == (0, 1, 0)
    assert desk.accounts.memberships[MIDS["w1"]].acknowledged == 2
    assert len(list(desk.directory.blocks())) == 2


def test_a_final_block_counts_once_all_before_it_are_there(desk):
    desk.send("w1", 3, workload=-1, final=True)
    desk.send("w1", 1, 1)
    desk.receive()
    assert desk.ledger.outstanding("w1") == 4

    desk.send("w1", 2, 2)
    desk.receive()

    assert desk.accounts.memberships[MIDS["w1"]].whole
    assert desk.ledger.pool == Intervals([(3, 6)])


def test_a_final_block_is_no_consent_where_a_block_could_not_be_read(desk):
    desk.send("w1", 1, columns={"rows": 1})
    desk.send("w1", 2, workload=-1, final=True)

    desk.receive()

    assert not desk.ledger.pool
    assert desk.ledger.outstanding("w1") == 5


def test_batches_that_were_refused_come_back(desk):
    desk.grant(MIDS["w1"], 2, desk.ledger.allot_new(3))

    desk.send("w1", 1, workload=-1, voids=[2])
    desk.receive()

    assert desk.ledger.pool == Intervals([(11, 14)])


def test_a_will_gives_back_what_was_not_started_once(desk):
    desk.send("w1", 1, 1)
    for _ in range(2):
        desk.will("w1", seq=1, number=2)
    desk.receive()
    desk.will("w1", seq=1, number=2)
    desk.receive()

    assert desk.ledger.pool == Intervals([(3, 6)])
    assert desk.ok == 1
    assert desk.done() == ["will"]


def test_a_will_of_an_open_load_goes_by_the_due_instant(desk):
    dues = np.array([10, 20, 30], "<i8")
    desk.grant(MIDS["w1"], 2, desk.ledger.allot_new(3), dues=dues.tobytes())

    desk.will("w1", due_ns=10)
    desk.receive()

    assert desk.ledger.pool == Intervals([(12, 14)])


@pytest.mark.parametrize(
    "fields",
    [{"run": "other"}, {"seq": "1"}, {"due_ns": 0.5}, {"workload": None}, {"membership": None}],
)
def test_a_will_of_another_shape_or_run_is_refused(desk, fields):
    desk.will("w1", **fields)

    desk.receive()

    assert (desk.bag.refused, desk.done()) == (1, [])


@pytest.mark.parametrize("workload", [-1, 7])
@pytest.mark.parametrize("due_ns", [None, 5])
def test_a_will_gives_back_workloads_that_the_process_had_not_begun_with(desk, workload, due_ns):
    desk.grant(MIDS["w1"], 2, desk.ledger.allot_new(3))

    # killed before the first workload, or under load of an earlier one
    desk.will("w1", workload=workload, seq=1, number=4, due_ns=due_ns)
    desk.receive()

    assert desk.ledger.pool == Intervals([(11, 14)])
    assert desk.ledger.held("w1") == Intervals([(1, 6)])


@pytest.mark.parametrize("is_open", [False, True])
def test_wills_are_taken_as_pages_tell_them(desk, is_open):
    page = WillPage.create()
    writer = WillPage(os.dup(page.fd), "w1")
    writer.join("r", MIDS["w1"])
    desk.bag.put(page.read())
    writer.serve(0, is_open)
    if is_open:
        writer.take(0, 1)
    else:
        writer.reach(1, 2)
        writer.serve(0, is_open)
    desk.bag.put(page.read())
    desk.receive()
    writer.close()
    page.close()

    assert desk.bag.refused == 0
    assert desk.bag.read(0)


@pytest.mark.parametrize("fields", [{"incarnation": "w2"}, {"workload": 9, "seq": 1}])
def test_a_will_that_gives_nothing_back_is_passed_over(desk, fields):
    desk.will("w1", **fields)
    desk.will("w3")

    desk.receive()

    assert desk.done() == []
    assert not desk.ledger.pool


def test_what_the_disk_does_not_take_is_neither_counted_nor_deleted(desk, monkeypatch):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    desk.send("w1", 1, 1)
    monkeypatch.setattr(disk, "fdatasync", full)
    with pytest.raises(StorageError, match="blocks: no space left on device"):
        desk.receive()
    monkeypatch.undo()
    assert (desk.ok, len(desk.bag.entries)) == (0, 1)

    desk.receive()

    assert (desk.ok, desk.results.duplicates) == (1, 0)
    assert len(list(desk.directory.blocks())) == 1


def test_blocks_lie_on_disk_as_they_are_counted(desk):
    """Number 6 is open at both: the first row of it counts, here and for who reads the disk."""
    desk.ledger.idempotent = True
    desk.decide({"do": "again", "mid": MIDS["w2"]})
    desk.grant(MIDS["w1"], 2, desk.ledger.allot(1, None, "w1"))
    desk.send("w1", 1, 1)
    desk.send("w2", 1, 6, 7)
    desk.send("w1", 2, 6)

    desk.receive()

    assert [body["incarnation"] for body in desk.directory.blocks()] == ["w1", "w1", "w2"]
    assert desk.results.statistics.part_of("w1").iterations == 2
    assert desk.results.statistics.part_of("w2").iterations == 1


def test_what_is_not_for_this_run_is_deleted_too(desk):
    desk.bag.put(None)

    desk.receive()
    desk.receive()

    assert not desk.bag.entries


def test_what_workers_write_is_kept_up_to_a_limit_and_the_rest_counted(desk, monkeypatch):
    monkeypatch.setattr(receiver, "LOG_CHARS", 30)
    entry = [1.0, "stdout", 0, 1, "text"]
    desk.send("w1", 1, workload=-1, log=[entry, entry])
    desk.receive()
    desk.send("w1", 2, workload=-1, log=[entry, entry], log_cut=1)
    desk.receive()
    desk.send("w1", 2, workload=-1, log=[entry, entry], log_cut=1)
    desk.send("w2", 1, workload=-1, log=[entry, entry], log_cut=5)
    desk.receive()

    kept = [len(body["log"]) for body in desk.directory.blocks()]
    again = Accounts()
    again.fold(desk.directory)
    assert kept == [2, 2, 0]
    for accounts in (desk.accounts, again):
        assert (accounts.log_chars, accounts.log_cut) == (4 * 10, 1 + 5 + 2)
