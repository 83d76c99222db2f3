"""A disk without room for the run: a clear end, and what was read stays readable."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from chaos.faults import FILLER, fill
from helpers.arena import Arena, arena, wait_until

pytestmark = [pytest.mark.functional, pytest.mark.faults, pytest.mark.timeout(600)]


@pytest.fixture
def pair() -> Iterator[Arena]:
    """Two hosts, and a small file system for run directories."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system that is full")
    with arena() as found:
        runs = found.site.data / "runs"
        runs.mkdir(mode=0o700)
        mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(runs)]
        made = subprocess.run(mount, check=False, capture_output=True, text=True)
        if made.returncode:
            pytest.skip(f"no file system can be mounted here: {made.stderr}")
        try:
            # else they wait a minute for another coordinator
            found.configured(worker={"coordinator_lost_s": 10})
            found.start_hosts(2)
            yield found
        finally:
            subprocess.run(["umount", "--lazy", str(runs)], check=False)


def test_a_full_disk_ends_the_run_with_its_reason(pair: Arena) -> None:
    load = pair.start_load({"constant": {"times": 100_000, "concurrency": 8}})
    pair.await_started(load, 300)

    fill(pair.site.data / "runs")

    assert pair.finish(load) == 3, load.command.said()
    assert "no space left on device" in load.command.said().lower()
    status = pair.site.coord("status", load.run)
    assert "killed" not in status.out + status.err
    assert "no space left" in (status.out + status.err).lower()
    # workers are free though the disk is full
    assert wait_until(pair.are_free)
    shown = pair.site.coord("results", load.run)
    assert shown.code in (0, 3), shown.err
    (pair.site.data / "runs" / FILLER).unlink()
    sums = pair.exact(load)
    assert sums["ok"] > 0
