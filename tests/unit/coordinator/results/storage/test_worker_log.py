"""What workers printed and logged is read from the blocks of a run, also while it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.worker_log import WorkerLog


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    found = RunDirectory.create(str(tmp_path), "r")
    yield found
    found.close()


def block(*log: Any, **fields: Any) -> dict[str, Any]:
    return {"workload": -1, "incarnation": "h.7.ab", "columns": {}, "log": list(log), **fields}


def test_entries_come_once_in_the_order_in_which_they_came(directory: RunDirectory) -> None:
    log = WorkerLog(directory)
    assert list(log.fresh()) == []
    directory.keep(
        [block([1.5, "stdout", 0, 17, "one"]), {"workload": 0, "incarnation": "w", "columns": {}}]
    )
    first = list(log.fresh())
    directory.keep([block([2, "ERROR", -1, 0, "two\nlines"], log_cut=3)])

    (second,) = log.fresh()

    ((at, worker, source, workload, iteration, text),) = [
        (one.at, one.worker, one.source, one.workload, one.iteration, one.text) for one in first
    ]
    assert (at, worker, source, workload, iteration, text) == (
        1.5,
        "h.7.ab",
        "stdout",
        0,
        17,
        "one",
    )
    assert (second.source, second.iteration, second.text) == ("ERROR", 0, "two\nlines")
    assert log.cut == {"h.7.ab": 3}
    assert list(log.fresh()) == []


def test_a_block_that_is_being_written_is_read_when_it_is_whole(
    directory: RunDirectory, tmp_path: Path
) -> None:
    path = tmp_path / "runs" / "r" / "blocks"
    directory.keep([block([1.0, "stdout", 0, 1, "whole"])])
    whole = path.read_bytes()
    log = WorkerLog(directory)
    path.write_bytes(whole + whole[:20])
    first = [one.text for one in log.fresh()]
    path.write_bytes(whole + whole)

    assert first == ["whole"]
    assert [one.text for one in log.fresh()] == ["whole"]


def test_entries_of_another_shape_are_counted(directory: RunDirectory) -> None:
    directory.keep([block("text", [1.0, "stdout", 0, 1], [1.0, "a", 0, 1, 7]), block(log_cut="x")])
    log = WorkerLog(directory)

    assert list(log.fresh()) == []
    assert log.cut == {"h.7.ab": 3}
