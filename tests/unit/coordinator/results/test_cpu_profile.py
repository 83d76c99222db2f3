"""CPU usage over time: means by bin, widening bins."""

from __future__ import annotations

from osbench.coordinator.results.cpu_profile import BINS, CpuProfile


def test_means_by_second() -> None:
    profile = CpuProfile()
    for elapsed_s, cpu in ((-1.0, 9.0), (0.2, 0.5), (0.7, 1.0), (2.1, 0.25)):
        profile.add("a", elapsed_s, cpu)
    assert profile.points() == {"a": [[0.5, 0.75], [2.5, 0.25]]}
    assert profile.mean("a") == (0.5 + 1.0 + 0.25) / 3
    assert profile.greatest("a") == 1.0


def test_a_worker_without_samples_has_no_numbers() -> None:
    profile = CpuProfile()
    assert profile.mean("a") is None
    assert profile.greatest("a") is None


def test_bins_widen_for_long_runs() -> None:
    profile = CpuProfile()
    for second in range(3 * BINS):
        profile.add("a", float(second), 1.0 if second % 2 else 0.0)
    points = profile.points()["a"]
    assert len(points) == 3 * BINS / 4
    assert points[0] == [2.0, 0.5]
