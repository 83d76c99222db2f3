"""Resources of a drill are journalled with their iterations, and with what is not known."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from helpers.result_rows import row
from helpers.stored_runs import RUN, block
from osbench.common.plugin.context import ErrorSearchResult, ResourceInError
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.load.run.workload import left_resources
from osbench.coordinator.load.run.workload.left_resources import note_left
from osbench.coordinator.plugins.contexts import context_stack
from osbench.coordinator.results.accounting.drill_statistics import DrillStatistics
from osbench.coordinator.results.storage.run_directory import RunDirectory

#: Longest wait for a poll, seconds.
PATIENCE_S = 30


@pytest.fixture
def run(tmp_path) -> Any:
    """A drill with ten iterations; the servers of iterations 3 and 4, and one of none, are left."""
    directory = RunDirectory.create(str(tmp_path), RUN)
    directory.write("run.json", {"run_id": RUN, "workloads": [{}]})
    for first in (1, 6):
        rows = [row(number, outcome=Outcome.FAILED) for number in range(first, first + 5)]
        directory.keep([block(rows)])
    server = {"kind": "servers", "state": "ERROR", "in_error": True}
    found = [ResourceInError(**server, iteration=number) for number in (3, 4, 0)]
    result = ErrorSearchResult(found={"servers": found})
    noted: list[dict[str, Any]] = []
    yield SimpleNamespace(
        name="A.b",
        number=0,
        begun=True,
        closed=True,
        results=SimpleNamespace(drill=DrillStatistics({}), warmup_ns=0),
        status=SimpleNamespace(interruption=SimpleNamespace(drains=False)),
        services=SimpleNamespace(
            directory=directory,
            contexts=SimpleNamespace(in_error=lambda *_, **__: result),
            port=SimpleNamespace(decide=noted.extend),
        ),
        noted=noted,
    )
    directory.close()


def noted(run, poll=lambda _: None):
    note_left(run, poll)
    (record,) = run.noted
    (servers,) = record["kinds"]
    assert servers["in_error"] == 3
    return [each[3] for each in record["rows"]], record["unplaced"]


def test_resources_are_noted_with_their_iterations(run):
    assert noted(run) == ([3, 4], "")


def test_blocks_that_are_damaged_are_said_to_be(run):
    blocks = run.services.directory.path / "blocks"
    packed = bytearray(blocks.read_bytes())
    packed[20] ^= 255
    blocks.write_bytes(packed)

    iterations, unplaced = noted(run)

    assert iterations == []
    assert "is damaged" in unplaced


def test_a_request_of_the_run_that_cannot_be_read_is_said(run):
    request = run.services.directory.path / "run.json"
    request.unlink()
    request.mkdir()

    iterations, unplaced = noted(run)

    assert iterations == []
    assert "run.json" in unplaced


def test_iterations_that_are_too_many_are_said_to_be(run, monkeypatch):
    monkeypatch.setattr(left_resources, "MOST_PLACED", 1)

    iterations, unplaced = noted(run)

    assert iterations == [3]
    assert unplaced == "only 1 of 3 pairs of iteration and kind are noted"


def test_the_run_is_polled_while_iterations_are_read(run, monkeypatch):
    monkeypatch.setattr(context_stack, "POLL_S", 0.01)
    polled, real, first = [], left_resources.counted_blocks, threading.Event()

    def counted(directory):
        assert first.wait(PATIENCE_S)
        return real(directory)

    def poll(undoing):
        polled.append(undoing)
        first.set()

    monkeypatch.setattr(left_resources, "counted_blocks", counted)

    assert noted(run, poll) == ([3, 4], "")
    assert polled[0] is False


def test_ctrl_c_ends_the_search_for_iterations(run, monkeypatch):
    monkeypatch.setattr(context_stack, "POLL_S", 0.01)
    polled = threading.Event()

    def counted(_):
        assert polled.wait(PATIENCE_S)
        return ()

    def poll(_):
        polled.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(left_resources, "counted_blocks", counted)

    assert noted(run, poll) == ([], "Ctrl-C ended the search for their iterations")
