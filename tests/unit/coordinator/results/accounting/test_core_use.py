"""Use of cores during a load, by worker and by host."""

from __future__ import annotations

import pytest

from helpers.heartbeats import heartbeat
from osbench.coordinator.results.accounting.core_use import BINS, CoreUse, CpuProfile, host_uses
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures


def worker(host="gen1", **facts):
    figures = {"cpu_mean": 0.5, "cores": 4, "cores_used": 2.0, **facts}
    return WorkerFigures(host=host, **figures)


def test_means_are_over_heartbeats_and_each_counts_once():
    use = CoreUse()

    for number, waiting, used in ((1, 0.2, -1.0), (2, 0.4, 3.0), (2, 0.4, 3.0)):
        beat = heartbeat(beat=number, waiting=waiting, cores_used=used, throttled=waiting)
        use.add("w", beat)

    assert use.waiting("w") == pytest.approx(0.3)
    assert use.cores_used("w") == 3.0
    assert use.throttled("w") == pytest.approx(0.3)
    assert use.waiting("other") is use.cores_used("other") is use.throttled("other") is None


def test_workers_of_a_host_share_its_cores():
    (full, idle) = host_uses(
        [worker(cpu_mean=1.0), worker("gen2", cores_used=3.9), worker(cores_used=3.0)]
    )

    assert (full.host, full.is_full, full.others) == ("gen2", True, pytest.approx(3.4))
    assert (idle.host, idle.used, idle.ours, idle.is_full) == ("gen1", 2.5, 1.5, False)


def test_hosts_that_do_not_tell_are_left_out():
    assert host_uses([worker(cores=0), worker(cores_used=None), WorkerFigures(host="old")]) == []


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
