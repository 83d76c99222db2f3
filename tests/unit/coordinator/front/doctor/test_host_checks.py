"""What `doctor` says of the disk of the data directory, and of the cores of this host."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from osbench.common.machine import python_build
from osbench.common.machine.cpu_quota import CpuQuota
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.front.doctor import host_checks
from osbench.coordinator.front.doctor.diagnosis import Diagnosis


def configured(home: Path, processes: int = 0) -> Any:
    return SimpleNamespace(
        data_dir=str(home / "not" / "yet"),
        messaging=SimpleNamespace(redis_url=""),
        worker=SimpleNamespace(virtual_users=1, processes=processes),
    )


def on_disk(monkeypatch: pytest.MonkeyPatch, home: Path, free: int, inodes: int = 9) -> Diagnosis:
    """What is said of a data directory on a disk with so much room."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_files=99, f_favail=inodes))
    found = host_checks.look_at_host(configured(home), Plugins())
    return next(one for one in found if one.about == "data directory")


@pytest.mark.parametrize(
    ("free", "state"), [(9 << 30, "ok"), (900 << 20, "warning"), (63 << 20, "error"), (0, "error")]
)
def test_a_disk_without_room_for_a_run_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free: int, state: str
) -> None:
    found = on_disk(monkeypatch, tmp_path, free)

    assert found.state == state
    assert ("runs prune" in found.remedy) == (state != "ok")
    assert found.detail.endswith(" free")


def test_a_disk_that_takes_no_more_files_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = on_disk(monkeypatch, tmp_path, 9 << 30, inodes=0)

    assert found.state == "error"
    assert "no inode left" in found.detail


@pytest.mark.parametrize(
    ("switches", "prefix", "state", "said"),
    [
        ("'--enable-shared'", "/opt/py", "warning", ", not optimised"),
        ("'--enable-optimizations' '--with-lto'", "/opt/py", "ok", ""),
        # a distribution's, optimised by its own means
        ("'--enable-shared'", "/usr", "ok", ""),
        (None, "/opt/py", "ok", ""),
    ],
)
def test_a_python_that_was_built_without_optimisation_is_told(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    switches: str | None,
    prefix: str,
    state: str,
    said: str,
) -> None:
    monkeypatch.setattr(sysconfig, "get_config_var", lambda _: switches)
    monkeypatch.setattr(sys, "base_prefix", prefix)
    python_build.is_unoptimised.cache_clear()

    found = next(host_checks.look_at_host(configured(tmp_path), Plugins()))
    python_build.is_unoptimised.cache_clear()

    assert (found.about, found.state) == ("version", state)
    assert found.detail.endswith(f"Python {platform.python_version()}{said}")
    assert ("--enable-optimizations" in found.remedy) == bool(said)


@pytest.mark.parametrize(
    ("quota", "throttled", "processes", "state", "said", "remedy"),
    [
        (None, 0, 0, "ok", "worker processes by default: 2", ""),
        (2.0, 1, 0, "ok", "quota is 2, which throttled it in 1 % of its periods", ""),
        (2.0, 40, 0, "warning", "in 40 % of its periods", "keep other programs out"),
        (2.0, 1, 8, "warning", "worker processes by default: 2", "set [worker] processes to 2"),
    ],
)
def test_a_quota_of_the_container_is_told(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    quota: float | None,
    throttled: int,
    processes: int,
    state: str,
    said: str,
    remedy: str,
) -> None:
    (tmp_path / "stat").write_text(f"nr_periods 100\nnr_throttled {throttled}\n")
    found = None if quota is None else CpuQuota(quota, tmp_path / "stat")
    monkeypatch.setattr(host_checks, "cpu_quota", lambda: found)
    monkeypatch.setattr(host_checks, "usable_cores", lambda: 2)

    findings = host_checks.look_at_host(configured(tmp_path, processes), Plugins())
    cpu = next(one for one in findings if one.about == "CPU")

    assert cpu.state == state
    assert said in cpu.detail
    assert remedy in cpu.remedy


@pytest.mark.parametrize(
    ("hard", "state"), [(resource.RLIM_INFINITY, "ok"), (65, "ok"), (64, "warning")]
)
def test_a_limit_of_open_files_below_those_of_the_users_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hard: int, state: str
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, hard))

    found = host_checks.look_at_host(configured(tmp_path), Plugins())

    assert next(one.state for one in found if one.about == "open files") == state
