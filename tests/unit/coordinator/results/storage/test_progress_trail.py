"""The trail of a run's figures: bounded, evenly spread, and kept with the latest state."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from helpers.web import snapshot
from osbench.coordinator.results.storage.progress import (
    STATUS_S,
    TRAIL,
    ProgressRecorder,
    ProgressTrail,
    RecentProgress,
)
from osbench.coordinator.results.storage.run_directory import RunDirectory


def recent(rate: float = 8.0) -> RecentProgress:
    return RecentProgress(
        span_s=5.0, rate=rate, p50_s=0.0123456, p95_s=None, failed=0, failed_share=0.0, error=""
    )


def test_points_are_rounded_and_a_moment_without_figures_is_none() -> None:
    trail = ProgressTrail()

    trail.add(snapshot(elapsed_s=1.0))
    trail.add(snapshot(elapsed_s=2.0, recent=recent()))

    assert trail.points == [[2.0, 8.0, 0.01235, None]]


@pytest.mark.parametrize("seconds", [TRAIL, 1000, 20_000])
def test_a_long_load_has_few_points_from_begin_to_end(seconds: int) -> None:
    trail = ProgressTrail()

    for elapsed_s in range(1, seconds + 1):
        trail.add(snapshot(elapsed_s=float(elapsed_s), recent=recent(elapsed_s)))

    times = [point[0] or 0.0 for point in trail.points]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert TRAIL // 3 <= len(times) <= TRAIL
    assert times[0] == 1.0
    assert times[-1] >= seconds - max(gaps)
    assert max(gaps) <= 4 * min(gaps)


def test_each_workload_under_load_keeps_its_trail(tmp_path: Path, monkeypatch) -> None:
    now = 100.0
    monkeypatch.setattr("osbench.coordinator.results.storage.progress.time.monotonic", lambda: now)
    run = RunDirectory.create(str(tmp_path), "run")
    recorder = ProgressRecorder(lambda snapshot: None, run)

    for second in range(4):
        now = 100.0 + second * STATUS_S
        recorder(snapshot(workload=1, elapsed_s=second + 0.5, recent=recent(second)))
        now += STATUS_S / 2
        recorder(snapshot(workload=0, elapsed_s=second + 0.7, recent=recent(10 + second)))

    status = run.read("status.json")
    run.close()
    assert status is not None
    (beside,) = status["beside"]
    trails = {one["workload"]: [point[1] for point in one["trail"]] for one in (status, beside)}
    assert trails == {1: [0.0, 1.0, 2.0, 3.0], 0: [10.0, 11.0, 12.0]}


def test_a_workload_that_is_not_under_load_has_no_points(tmp_path: Path, monkeypatch) -> None:
    now = 100.0
    monkeypatch.setattr("osbench.coordinator.results.storage.progress.time.monotonic", lambda: now)
    run = RunDirectory.create(str(tmp_path), "run")
    recorder = ProgressRecorder(lambda snapshot: None, run)

    for second, workload in enumerate((0, 1, 1, 1, 0)):
        now = 100.0 + second * STATUS_S
        recorder(snapshot(workload=workload, elapsed_s=second + 0.5, recent=recent(second)))

    status = run.read("status.json")
    run.close()
    assert status is not None
    assert [point[1] for point in status["trail"]] == [0.0, 4.0]
