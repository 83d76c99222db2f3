"""Result blocks are kept, in order, until they are acknowledged; those too many lie on disk."""

from __future__ import annotations

import resource
import threading
import time

import pytest

from helpers.local_redis import LocalStore
from osbench.common.errors import StoreUnreachable
from osbench.common.protocol import timers
from osbench.worker.session.outbox import Outbox

LIMIT = 1000
#: Time to the next attempt that never comes within a test, seconds.
LATER_S = 1000.0


@pytest.fixture
def spool(tmp_path):
    return tmp_path / "spool" / "w.blocks"


@pytest.fixture
def outbox(spool):
    found = Outbox(spool, LIMIT)
    yield found
    found.close()


def block(number: int, size: int = 300) -> bytes:
    return b"%04d" % number + b"." * (size - 4)


def fill(outbox: Outbox, count: int) -> None:
    for _ in range(count):
        outbox.put(block(outbox.number()))


def numbers(outbox: Outbox) -> list[int]:
    return [int(data[:4]) for data in outbox.unacknowledged()]


class Wire(LocalStore):
    """A store of a run, whose next commands may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.tend()
        self.fails = 0

    def append(self, entry, *, instead_of=""):
        if self.fails:
            self.fails -= 1
            raise StoreUnreachable("no answer")
        return super().append(entry, instead_of=instead_of)

    def numbers(self) -> list[int]:
        return [int(entry[:4]) for _, entry in self.read(0, 1000)]


def test_blocks_are_numbered_without_gap(outbox):
    assert outbox.number() == 1

    fill(outbox, 3)

    assert outbox.number() == 4
    assert len(outbox) == 3


def test_all_that_is_not_acknowledged_is_sent_again_in_order(outbox):
    fill(outbox, 12)

    outbox.acknowledge(2)

    assert numbers(outbox) == list(range(3, 13))
    assert list(outbox.unacknowledged()) == [block(number) for number in range(3, 13)]


def test_memory_is_bounded_and_the_rest_lies_on_disk_for_our_eyes_only(outbox, spool):
    fill(outbox, 3)
    assert not spool.exists()

    fill(outbox, 7)

    assert spool.stat().st_size == 7 * 300
    assert spool.stat().st_mode & 0o777 == 0o600
    assert spool.parent.stat().st_mode & 0o777 == 0o700


def test_blocks_go_to_memory_again_once_there_is_room(outbox, spool):
    fill(outbox, 6)

    outbox.acknowledge(3)
    fill(outbox, 2)

    assert spool.stat().st_size == 3 * 300
    assert numbers(outbox) == [4, 5, 6, 7, 8]


def test_a_block_larger_than_the_limit_is_kept(outbox):
    outbox.put(block(1, 5 * LIMIT))
    outbox.put(block(2))

    assert [len(data) for data in outbox.unacknowledged()] == [5 * LIMIT, 300]


def test_the_spool_is_emptied_with_the_last_acknowledgement_and_used_again(outbox, spool):
    fill(outbox, 6)
    outbox.acknowledge(6)
    assert spool.stat().st_size == 0

    fill(outbox, 6)

    assert numbers(outbox) == [7, 8, 9, 10, 11, 12]


def test_blocks_behind_a_gap_that_are_on_disk_are_forgotten_too(outbox):
    fill(outbox, 6)

    outbox.acknowledge(2, [4, 6, 1, 99])

    assert numbers(outbox) == [3, 5]
    assert len(outbox) == 2


def test_each_block_is_sent_once_until_it_is_due_again(outbox):
    wire = Wire()
    fill(outbox, 3)
    outbox.send(wire, LATER_S)
    fill(outbox, 1)

    outbox.send(wire, LATER_S)

    assert wire.numbers() == [1, 2, 3, 4]
    assert outbox.unsent == 0


def test_what_was_not_confirmed_is_sent_again_in_place_of_its_copy(outbox, monkeypatch):
    monkeypatch.setattr(timers, "RESEND_S", 0.0)
    wire = Wire()
    fill(outbox, 3)
    for _ in range(5):
        outbox.send(wire, 0.0)
    outbox.acknowledge(1, [3])

    (lost, _), *_ = wire.read(0, 1)
    wire.delete([lost])
    outbox.send(wire, 0.0)

    assert wire.numbers() == [3, 2]


def test_the_time_to_the_next_attempt_grows_to_a_bound(outbox):
    wire = Wire()
    fill(outbox, 1)
    kept = outbox._kept[1]
    waits = []
    for _ in range(5):
        kept.due = 0.0
        before = time.monotonic()
        outbox.send(wire, 3.0)
        waits.append((kept.due - time.monotonic(), kept.due - before))
    outbox.rush()
    soon = kept.due - time.monotonic()

    assert all(
        least <= wait_s <= most
        for (least, most), wait_s in zip(waits, (1.0, 2.0, 3.0, 3.0, 3.0), strict=True)
    )
    assert soon <= timers.RESEND_S


def test_what_could_not_be_sent_stays_due(outbox):
    wire = Wire()
    wire.fails = 1
    fill(outbox, 2)

    with pytest.raises(StoreUnreachable):
        outbox.send(wire, LATER_S)

    assert outbox.unsent == 2
    outbox.send(wire, LATER_S)
    assert wire.numbers() == [1, 2]


def test_what_is_in_memory_can_go_to_disk(outbox, spool):
    fill(outbox, 4)

    outbox.unload()
    outbox.unload()
    fill(outbox, 1)

    assert spool.stat().st_size == 4 * 300
    assert numbers(outbox) == [1, 2, 3, 4, 5]


def test_what_nobody_wants_is_forgotten(outbox):
    fill(outbox, 6)

    outbox.clear()

    assert numbers(outbox) == []


def test_acknowledgements_that_come_twice_or_late_change_nothing(outbox):
    fill(outbox, 5)

    outbox.acknowledge(3)
    outbox.acknowledge(1)
    outbox.acknowledge(3)

    assert numbers(outbox) == [4, 5]


def test_what_is_acknowledged_while_it_is_sent_again_is_left_out(outbox):
    fill(outbox, 8)
    sending = outbox.unacknowledged()
    first = int(next(sending)[:4])

    outbox.acknowledge(6)
    middle = int(next(sending)[:4])
    outbox.acknowledge(8)
    fill(outbox, 5)

    assert (first, middle) == (1, 7)
    assert list(sending) == []


def test_the_spool_is_removed_at_the_end(outbox, spool):
    fill(outbox, 8)

    outbox.close()

    assert not spool.exists()


def test_without_disk_blocks_stay_in_memory(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    outbox = Outbox(tmp_path / "file" / "w.blocks", LIMIT)

    fill(outbox, 8)

    assert numbers(outbox) == list(range(1, 9))
    assert "results stay in memory" in caplog.text


def test_a_block_that_was_written_in_part_stays_in_memory(outbox, spool):
    fill(outbox, 4)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (450, before[1]))
    try:
        fill(outbox, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    fill(outbox, 2)

    assert list(outbox.unacknowledged()) == [block(number) for number in range(1, 9)]


def test_one_thread_ships_while_another_acknowledges(outbox):
    shipped = threading.Event()

    def acknowledge() -> None:
        while not shipped.is_set():
            outbox.acknowledge(outbox.number() - 3)

    other = threading.Thread(target=acknowledge, daemon=True)
    other.start()
    sent = []
    for _ in range(300):
        fill(outbox, 1)
        sent.append(list(outbox.unacknowledged()))
    shipped.set()
    other.join()

    outbox.acknowledge(299)
    assert numbers(outbox) == [300]
    for last, found in enumerate(sent, start=1):
        assert found[-1] == block(last)
        assert found == sorted(set(found))
        assert all(data == block(int(data[:4])) for data in found)
