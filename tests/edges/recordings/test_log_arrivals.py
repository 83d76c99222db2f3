"""Arrivals of a log, sorted in parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.examples import examples
from osbench.edges.recordings import log_arrivals
from osbench.edges.recordings.arrival_file import ArrivalFile
from osbench.edges.recordings.log_arrivals import SortedArrivals, spread, write_arrivals

TIMES = st.lists(st.integers(0, 6_000_000), min_size=1, max_size=120)


@settings(max_examples=examples(80))
@given(times=TIMES, part=st.integers(1, 50), piece=st.integers(1, 9), size=st.integers(1, 30))
def test_pieces_are_sorted_and_have_whole_seconds(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], part: int, piece: int, size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_arrivals, "PART", part)
        patch.setattr(log_arrivals, "PIECE", piece)
        arrivals = SortedArrivals(tmp_path_factory.getbasetemp())
        for begin in range(0, len(times), size):
            codes = np.arange(begin, min(begin + size, len(times)))
            arrivals.add(np.array(times)[codes], codes)

        found = [(a.tolist(), b.tolist()) for a, b in arrivals.seconds()]
        again = [(a.tolist(), b.tolist()) for a, b in arrivals.seconds()]
        arrivals.close()

    wanted = sorted(zip(times, range(len(times)), strict=True))
    assert [pair for a, b in found for pair in zip(a, b, strict=True)] == wanted
    assert found == again
    seconds = [{at // 1_000_000 for at in a} for a, _ in found]
    assert sum(map(len, seconds)) == len(set[int]().union(*seconds))


def test_whole_seconds_are_spread_evenly() -> None:
    second = 1_000_000

    found = spread(np.array([3, 3, 4, 7, 7, 7, 7]) * second)

    assert found.tolist() == [
        *(3_250_000, 3_750_000, 4_500_000, 7_125_000, 7_375_000, 7_625_000, 7_875_000)
    ]


def test_chosen_arrivals_are_written_from_their_first_second_on(tmp_path: Path) -> None:
    arrivals = SortedArrivals(tmp_path)
    times = np.array([1_005_500_000, 1_001_000_000, 1_000_250_000, 1_002_750_000])
    arrivals.add(times, np.array([1, 1, 0, 2]))

    made = write_arrivals(tmp_path / "a", arrivals, ["x", "y"], np.array([-1, 1, 0]))
    arrivals.close()

    read = ArrivalFile(tmp_path / "a")
    assert read.instants(0, 3).tolist() == [0, 1_750_000, 4_500_000]
    assert read.positions(0, 3).tolist() == [1, 0, 1]
    assert (made.count, made.began_at, made.span_s, made.peak) == (3, 1001, 5, 1)
    assert read.span_us == 5_000_000
