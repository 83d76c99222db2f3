"""Rows of arrivals: iteration N gets the name of arrival N."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.arrivals import write_arrivals
from osbench.common.protocol import data_rows
from osbench.common.values.intervals import Intervals
from osbench.edges.recordings.arrival_file import ArrivalFile
from osbench.edges.recordings.arrival_rows import ArrivalRows

NAMES = ['GET /a,"b"', "GET /items/{id}", "HEAD /"]


@pytest.fixture
def file(tmp_path: Path) -> ArrivalFile:
    return ArrivalFile(write_arrivals(tmp_path / "a", [0, 1, 2, 3, 4, 5, 6], NAMES, 7))


def names(rows: ArrivalRows, numbers: Intervals) -> list[str]:
    """What a worker reads of a batch."""
    text = data_rows.decrypt(rows.encrypted(numbers, numbers.members().tolist()), rows.key)
    return [row["branch"] for row in data_rows.RowReader(rows.header).read(text)]


def test_a_batch_has_the_names_of_its_iterations(file: ArrivalFile) -> None:
    rows = ArrivalRows(file, 1, 5)

    found = names(rows, Intervals([(1, 3), (5, 6)]))

    assert found == [NAMES[1], NAMES[2], NAMES[2]]


def test_iterations_beyond_the_last_arrival_begin_again(file: ArrivalFile) -> None:
    rows = ArrivalRows(file, 0, 4)

    found = names(rows, Intervals([(3, 11)]))

    assert found == [NAMES[k % 4 % 3] for k in range(2, 10)]


def test_rows_to_check_are_the_names_that_occur(file: ArrivalFile) -> None:
    assert [row["branch"] for row in ArrivalRows(file, 0, 7).rows()] == NAMES
    assert [row["branch"] for row in ArrivalRows(file, 1, 2).rows()] == NAMES[1:]
