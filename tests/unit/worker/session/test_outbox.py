"""Result blocks are kept, in order, until they are acknowledged; those too many lie on disk."""

from __future__ import annotations

import resource
import threading

import pytest

from osbench.worker.session.outbox import Outbox

LIMIT = 1000


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
    assert numbers(outbox) == [1, 2, 3]


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
