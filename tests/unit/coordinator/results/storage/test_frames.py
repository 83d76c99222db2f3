"""Framed records on disk: what was whole before a crash is read after it, and nothing else."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from osbench.common.errors import DirectoryRemoved, OsbenchError, StorageError
from osbench.coordinator.results.storage import frames
from osbench.coordinator.results.storage.frames import (
    FrameFile,
    bundles,
    cut_torn_tail,
    placed_frames,
    read_frames,
)

RECORDS = [b"one", b"2", b"\x00" * 5000, b"last"]
HEAD = 8


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "journal"
    file = FrameFile(found)
    file.append(RECORDS[:2])
    file.append(RECORDS[2:])
    file.close()
    return found


def test_records_are_read_as_they_were_written(path):
    assert list(read_frames(path)) == RECORDS
    assert cut_torn_tail(path) == 0


def test_a_file_that_is_not_there_has_no_records(tmp_path):
    assert list(read_frames(tmp_path / "none")) == []
    assert cut_torn_tail(tmp_path / "none") == 0


def test_what_is_written_while_it_is_read_is_no_damage(tmp_path, monkeypatch):
    path = tmp_path / "journal"
    file = FrameFile(path)
    read = frames._next_record

    def and_then_written(*of):
        found = read(*of)
        if found is None:
            file.append(RECORDS[:2])
        return found

    monkeypatch.setattr(frames, "_next_record", and_then_written)
    assert list(read_frames(path)) == []
    assert list(read_frames(path)) == RECORDS[:2]
    monkeypatch.undo()
    assert list(read_frames(path)) == RECORDS[:2] * 2
    file.close()


def test_a_file_that_was_removed_takes_no_record(path):
    file = FrameFile(path)
    path.unlink()

    with pytest.raises(DirectoryRemoved, match="journal: the run directory was removed"):
        file.append(RECORDS)

    file.close()


def test_writing_nothing_leaves_the_file_as_it_is(path):
    file = FrameFile(path)
    file.append([])
    file.close()

    assert list(read_frames(path)) == RECORDS


def test_any_cut_leaves_the_whole_records_before_it(path):
    data = path.read_bytes()
    ends = []
    for record in RECORDS:
        ends.append((ends[-1] if ends else 0) + HEAD + len(record))

    for length in [*range(0, 40), *range(len(data) - 30, len(data))]:
        path.write_bytes(data[:length])
        whole = sum(end <= length for end in ends)

        excess = cut_torn_tail(path)

        assert list(read_frames(path)) == RECORDS[:whole]
        assert path.stat().st_size == length - excess == (ends[whole - 1] if whole else 0)


def flip(path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 0x10
    path.write_bytes(data)


@pytest.mark.parametrize("place", [HEAD * 3 + 4 + 5000 + at for at in (0, 1, 3, 4, 7, 8, 11)])
def test_a_last_record_that_is_damaged_counts_as_torn(path, place):
    flip(path, place)

    assert list(read_frames(path)) == RECORDS[:3]
    assert cut_torn_tail(path) == HEAD + 4


def test_what_is_behind_a_damaged_length_is_read_where_damage_is_accepted(path):
    flip(path, HEAD + 3)

    found = [record for _, record in placed_frames(path, tolerant=True)]

    assert found == [b"one", *RECORDS[2:]]


@pytest.mark.parametrize(
    ("place", "begins"),
    [
        *((at, 0) for at in (0, 1, 3, 4, 9)),
        *((HEAD + 3 + at, HEAD + 3) for at in (0, 1, 2, 3, 4)),
        *((HEAD * 2 + 4 + at, HEAD * 2 + 4) for at in (0, 2, 3, 100)),
    ],
)
def test_a_damaged_record_before_whole_ones_is_told_with_its_place(path, place, begins):
    flip(path, place)

    for read in (lambda: list(read_frames(path)), lambda: cut_torn_tail(path)):
        with pytest.raises(OsbenchError, match=rf"journal is damaged at byte {begins}\. "):
            read()


def test_zeros_behind_the_last_record_are_cut(path):
    path.write_bytes(path.read_bytes() + bytes(100))

    assert list(read_frames(path)) == RECORDS
    assert cut_torn_tail(path) == 100


def test_after_the_tail_was_cut_records_follow_without_a_gap(path):
    path.write_bytes(path.read_bytes() + b"\x05\x00\x00")
    cut_torn_tail(path)

    file = FrameFile(path)
    file.append([b"new"])
    file.close()

    assert list(read_frames(path)) == [*RECORDS, b"new"]


def test_a_disk_that_is_full_leaves_no_torn_record(path):
    size = path.stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    file = FrameFile(path)

    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, before[1]))
    try:
        for _ in range(2):
            with pytest.raises(StorageError, match=f"cannot write {path}: file too large"):
                file.append([b"x" * 1000])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    file.append([b"after"])
    file.close()

    assert list(read_frames(path)) == [*RECORDS, b"after"]


WRITER = """
import os, sys
from pathlib import Path
from osbench.coordinator.results.storage.frames import FrameFile
file = FrameFile(Path(sys.argv[1]))
for number in range(1000000):
    file.append([b"%d" % number])
    os.write(1, b"%d\\n" % number)
"""


def test_what_was_told_to_be_on_disk_is_there_after_a_kill(tmp_path):
    path = tmp_path / "journal"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(50)]
        writer.kill()
        told += [int(line) for line in writer.stdout if line.endswith(b"\n")]

    cut_torn_tail(path)
    found = [int(record) for record in read_frames(path)]

    assert found == list(range(len(found)))
    assert len(found) >= len(told)


def test_records_are_bundled_in_order_and_up_to_a_size():
    records = [b"12345", b"6789", b"a" * 20, b"", b"b", b"c" * 9]

    found = list(bundles(records, 10))

    assert found == [b"123456789", b"a" * 20, b"b" + b"c" * 9]
    assert list(bundles([], 10)) == []
