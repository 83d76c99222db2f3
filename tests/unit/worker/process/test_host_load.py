"""The share of its host that a worker process gets."""

from __future__ import annotations

from pathlib import Path

from osbench.common.machine.cpu_quota import CpuQuota
from osbench.worker.process.host_load import HostLoad


def tasks(folder: Path, **waited_ns: int) -> Path:
    for thread, waited in waited_ns.items():
        (folder / thread).mkdir(exist_ok=True)
        (folder / thread / "schedstat").write_text(f"1000 {waited} 7\n")
    return folder


def test_threads_that_waited_for_a_core_are_counted_from_call_to_call(tmp_path):
    load = HostLoad(tasks(tmp_path, t1=0, t2=10))
    load.measure(100.0)

    tasks(tmp_path, t1=500_000_000, t2=1_000_000_010, t3=9_000_000_000)
    waiting = load.measure(101.0).waiting

    # a thread that is new stands for as much as the others
    assert waiting == 1.5 * 3 / 2


def test_a_system_that_does_not_tell_is_not_known(tmp_path):
    load = HostLoad(tmp_path / "none")
    load.measure(100.0)

    assert load.measure(101.0).waiting == 0.0


def test_cores_in_use_are_those_that_are_not_idle(tmp_path):
    load = HostLoad(tasks(tmp_path, t1=0))

    first, second = load.measure(100.0).cores_used, load.measure(101.0).cores_used

    assert first == -1.0
    assert second == -1.0 or 0 <= second <= load.cores


def test_throttled_periods_of_a_quota_are_counted_from_call_to_call(tmp_path):
    stat = tmp_path / "cpu.stat"
    stat.write_text("nr_periods 100\nnr_throttled 90\n")
    load = HostLoad(tasks(tmp_path, t1=0), CpuQuota(2.0, stat))
    load.measure(100.0)

    quiet = load.measure(101.0).throttled
    stat.write_text("nr_periods 110\nnr_throttled 93\n")

    assert (load.quota, quiet, load.measure(102.0).throttled) == (2.0, 0.0, 0.3)
