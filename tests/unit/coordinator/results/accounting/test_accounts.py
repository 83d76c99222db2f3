"""The accounts of a run: names of memberships, records of other shapes, damaged directories."""

from __future__ import annotations

import math

import msgpack
import pytest
import zstandard

from osbench.common.errors import OsbenchError
from osbench.common.protocol.messages import Block
from osbench.coordinator.load.fleet.membership import Membership
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.accounting.workload_results import WorkloadResults
from osbench.coordinator.results.storage.frames import FrameFile
from osbench.coordinator.results.storage.run_directory import RunDirectory


@pytest.fixture
def directory(tmp_path):
    found = RunDirectory.create(str(tmp_path), "r")
    yield found
    found.close()


def results(*, idempotent: bool = False) -> WorkloadResults:
    return WorkloadResults(idempotent=idempotent, sla=SlaEvaluator((), None))


def member(mid: str, incarnation: str = "w", name: str = "w") -> dict:
    return {"do": "member", "mid": mid, "incarnation": incarnation, "name": name}


def cut(mid: str, workload: int, *intervals: tuple[int, int], seq: int = 1) -> dict:
    record = {"do": "cut", "mid": mid, "seq": seq, "workload": workload}
    return record | {"intervals": intervals}


def test_later_memberships_of_a_worker_have_names_of_their_own():
    accounts = Accounts()
    for mid in ("a", "b", "c"):
        accounts.apply(accounts.enrolment(mid, "w"))
    accounts.apply(accounts.enrolment("d", "v"))

    names = {mid: one.name for mid, one in accounts.memberships.items()}

    assert names == {"a": "w", "b": "w+2", "c": "w+3", "d": "v"}


def test_acknowledgements_end_before_the_first_gap():
    one = Membership(mid="m", incarnation="w", name="w")

    for number in (1, 4, 2, 4, 6):
        one.note(number)

    assert (one.acknowledged, one.have) == (2, {4, 6})
    assert [number for number in range(1, 8) if one.has(number)] == [1, 2, 4, 6]


def test_what_is_run_again_is_that_of_idempotent_workloads():
    accounts = Accounts()
    accounts.register(0, results(idempotent=True))
    accounts.register(1, results())
    for record in (member("m"), cut("m", 0, (1, 3)), cut("m", 1, (1, 3), seq=2)):
        accounts.apply(record)

    accounts.apply({"do": "again", "mid": "m"})

    pools = [list(one.ledger.pool) for one in accounts.results.values()]
    assert pools == [[(1, 3)], []]


def test_a_workload_that_begins_later_knows_who_is_lost():
    accounts = Accounts()
    for record in (member("m"), {"do": "lost", "mid": "m"}, {"do": "open", "epoch": 3}):
        accounts.apply(record)
    accounts.apply({"do": "start", "workload": 0, "t0_at": 12.5})
    accounts.register(0, results())
    accounts.apply(cut("m", 0, (1, 3)))

    assert accounts.results[0].ledger.decided == 2
    assert accounts.results[0].t0_at == 12.5
    assert accounts.epoch == 3


def test_kinds_of_a_later_version_are_passed_over(directory):
    directory.decide([{"do": "open", "epoch": 2}, {"do": "sing", "song": 1}])
    accounts = Accounts()

    accounts.fold(directory)

    assert accounts.epoch == 2


def test_results_follow_their_decisions(directory):
    """A block that came before a cut is taken before it: its rows are stale."""
    block = Block(run="r", incarnation="w", membership="m", number=1, workload=0)
    back = Block(run="r", incarnation="w", membership="m", number=2, workload=0, returned=[(1, 2)])
    directory.decide([member("m")])
    directory.keep([block.body()])
    directory.decide([cut("m", 0, (1, 4))])
    directory.keep([back.body()])
    directory.decide([cut("m", 0, (1, 2), seq=2)])
    accounts = Accounts()
    accounts.register(0, results())

    accounts.fold(directory)

    ledger = accounts.results[0].ledger
    assert ledger.open_batches("w") == [2, 1]
    assert list(ledger.batch("w", 2)) == [(1, 2)]
    assert not ledger.pool


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"do": "open"}, "KeyError: 'epoch'"),
        ({"do": "cut", "mid": "nobody"}, "KeyError: 'nobody'"),
        (cut("m", 0, (5, 2)), "ValueError: expected a range of numbers from 1, got 5 to 2"),
        (
            {**cut("m", 0, (1, 3)), "dues": bytes(8)},
            "ValueError: expected a due time for each of 2 arrivals, got 1",
        ),
        ({"do": "drop", "workload": 0, "numbers": [1]}, "TypeError: "),
        ({"do": "drop", "workload": 0, "numbers": [], "why": "rain"}, "KeyError: 'rain'"),
        ({"do": "close", "workload": "x"}, "ValueError: "),
        ({"do": "close", "workload": math.inf}, "OverflowError: "),
        ({"do": "open", "epoch": 1, "blocks": "all"}, "does not say how many blocks"),
        ("open", "journal is damaged at byte 0"),
        ({"epoch": 1}, "journal is damaged at byte 0"),
    ],
)
def test_a_record_of_another_shape_is_told_with_its_place(tmp_path, record, reason):
    file = FrameFile(tmp_path / "journal")
    file.append([msgpack.packb(record if record == "open" or "do" not in record else member("m"))])
    file.append([msgpack.packb(record)])
    file.close()
    accounts = Accounts()
    accounts.register(0, results())

    with pytest.raises(OsbenchError) as caught:
        accounts.fold(RunDirectory(tmp_path))

    assert reason in str(caught.value)
    assert str(tmp_path / "journal") in str(caught.value)
    assert " at byte " in str(caught.value)


@pytest.mark.parametrize(
    "record",
    [
        b"no zstd",
        zstandard.compress(b"\xc1"),
        zstandard.compress(msgpack.packb({"a": 1}) + b"\x93\x01"),
        zstandard.compress(msgpack.packb(7)),
        zstandard.compress(bytes(1 << 29)),
        zstandard.compress(msgpack.packb({"number": 1})),
        zstandard.compress(msgpack.packb({1: 1})),
    ],
    ids=["compression", "format", "torn", "a number", "too large", "fields", "a key"],
)
def test_a_damaged_body_is_told_with_its_place(tmp_path, record):
    file = FrameFile(tmp_path / "blocks")
    file.append([record])
    file.close()

    with pytest.raises(OsbenchError, match=f"{tmp_path}/blocks .*at byte 0"):
        Accounts().fold(RunDirectory(tmp_path))


def test_a_block_is_taken_once():
    accounts = Accounts()
    accounts.register(0, results())
    for record in (member("m"), cut("m", 0, (1, 4))):
        accounts.apply(record)
    block = Block(run="r", incarnation="w", membership="m", number=1, workload=0, want_ns=5)

    accounts.take([block, block])
    accounts.take([block])

    assert accounts.results[0].want_ns == 5


def test_blocks_that_a_disk_has_lost_are_not_waited_for() -> None:
    accounts, found = Accounts(), results()
    accounts.register(0, found)
    for record in (member("m"), cut("m", 0, (1, 4))):
        accounts.apply(record)
    accounts.memberships["m"].have = {3}

    accounts.apply({"do": "missing", "mid": "m", "numbers": [1, 2]})

    assert (accounts.memberships["m"].acknowledged, accounts.memberships["m"].damaged) == (3, True)
    assert found.ledger.decided == 3
