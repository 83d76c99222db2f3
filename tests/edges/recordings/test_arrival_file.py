"""Files of arrivals: what was written is read, and what is damaged is refused."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.arrivals import write_arrivals
from helpers.examples import examples
from osbench.edges.recordings import arrival_file
from osbench.edges.recordings.arrival_file import ArrivalFile, ArrivalFileError, ArrivalWriter

GAPS = st.lists(st.integers(0, 10**13), min_size=1, max_size=60)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(gaps=GAPS, block=st.integers(1, 9), part=st.integers(1, 20), data=st.data())
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    gaps: list[int],
    block: int,
    part: int,
    data: st.DataObject,
) -> None:
    monkeypatch.setattr(arrival_file, "BLOCK", block)
    path = tmp_path_factory.mktemp("made") / "a.arrivals"
    instants, positions = np.cumsum(gaps), np.arange(len(gaps)) % 3
    with path.open("wb") as file:
        writer = ArrivalWriter(file, ["a", "b", "c"], int(instants[-1]) + 1)
        for start in range(0, len(gaps), part):
            writer.add(instants[start : start + part], positions[start : start + part])
        writer.close()

    read = ArrivalFile(path)

    low = data.draw(st.integers(0, len(gaps)))
    high = data.draw(st.integers(low, len(gaps)))
    at = data.draw(st.integers(0, int(instants[-1]) + 2))
    assert read.count == len(gaps) == sum(read.shares) == sum(read.bins)
    assert read.instants(low, high).tolist() == instants[low:high].tolist()
    assert read.positions(low, high).tolist() == positions[low:high].tolist()
    assert read.before(at) == int((instants < at).sum())
    read.verify()


def test_each_byte_that_changes_or_is_missing_is_told(tmp_path: Path) -> None:
    path = write_arrivals(tmp_path / "a.arrivals", [0.1, 0.2, 5], ["GET /", "GET /b"], 6)
    content = path.read_bytes()

    for at in range(len(content)):
        for damaged in (content[:at], content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]):
            path.write_bytes(damaged)

            with pytest.raises(ArrivalFileError, match=r"a\.arrivals (is|has) .*[:;] (make|copy) "):
                ArrivalFile(path).verify()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty: make it again"),
        (b"version: 2\n", "is not a file of arrivals: make one with"),
        (b"osbench arrivals 7\nabc", "has version 7 .* and this osbench reads 1; make it again"),
        (b"osbench arrivals 1\n", r"is damaged \(the end is missing\)"),
    ],
)
def test_other_files_are_refused_with_what_to_do(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x.arrivals"
    path.write_bytes(content)

    with pytest.raises(ArrivalFileError, match=said):
        ArrivalFile(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(ArrivalFileError, match=r"^cannot read "):
            ArrivalFile(path)


def test_a_file_that_is_removed_is_read_to_its_end(tmp_path: Path) -> None:
    read = ArrivalFile(write_arrivals(tmp_path / "a", [1, 2, 3], ["GET /"], 4))

    (tmp_path / "a").unlink()

    assert read.instants(0, 3).tolist() == [1_000_000, 2_000_000, 3_000_000]


def test_a_file_without_arrivals_is_not_written() -> None:
    writer = ArrivalWriter(io.BytesIO(), ["GET /"], 1)

    with pytest.raises(ValueError, match="no arrival"):
        writer.close()


def test_arrivals_are_compact(tmp_path: Path) -> None:
    gaps = np.random.default_rng(1).exponential(0.001, 200_000)
    path = write_arrivals(tmp_path / "a", np.cumsum(gaps).tolist(), ["a", "b", "c"], 1000)

    assert path.stat().st_size < 3 * len(gaps)
