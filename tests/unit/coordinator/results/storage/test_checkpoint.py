"""Checkpoints: written now and then; one that fails does not disturb the run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from helpers.sample_reports import run_report
from helpers.summaries import to_json
from helpers.virtual_time import VirtualTime
from osbench.coordinator.results.storage import checkpoint
from osbench.coordinator.results.storage.checkpoint import Checkpoints
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import read_timeline

SUMMARY = to_json(run_report())


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    found = RunDirectory.create(str(tmp_path), "run")
    yield found
    found.close()


def test_one_interval_one_checkpoint(directory: RunDirectory, virtual_time: VirtualTime) -> None:
    built: list[float] = []

    def build() -> dict[str, Any]:
        built.append(virtual_time.now_s)
        virtual_time.sleep(0.3)
        return {"workloads": [], "summary": SUMMARY}

    checkpoints = Checkpoints(directory, build)
    for _ in range(300):
        checkpoints.perhaps()
        virtual_time.sleep(0.1)
    # 0.3 s of work may be 3 % of the time: every 10 s, but for the first, which imports
    assert [round(after - before) for before, after in pairwise(built)] == [1, 10, 10]
    found = read_timeline(directory)
    assert found is not None
    assert (found["complete"], found["summary"]) == (False, SUMMARY)


def test_a_checkpoint_that_fails_is_told_once(
    directory: RunDirectory, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "INTERVAL_S", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 1e9)

    def build() -> dict[str, Any]:
        raise ValueError("a criterion raised")

    checkpoints = Checkpoints(directory, build)
    checkpoints.perhaps()
    checkpoints.perhaps()
    assert len(caplog.records) == 1
    assert read_timeline(directory) is None
