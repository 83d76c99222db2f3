"""CPU quotas of containers: both versions of control groups, with and without a namespace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from osbench.common.machine import cpu_quota as module
from osbench.common.machine.cpu_quota import CpuQuota, cpu_quota, usable_cores


def made(tmp_path: Path, groups: str, **files: str) -> CpuQuota | None:
    """The quota in a tree of files; `__` in a name stands for a slash."""
    (tmp_path / "groups").write_text(groups)
    for name, text in files.items():
        path = tmp_path / "fs" / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return cpu_quota(tmp_path / "groups", tmp_path / "fs")


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        ("0::/\n", {"cpu_DOT_max": "200000 100000\n"}, 2.0),
        ("0::/\n", {"cpu_DOT_max": "max 100000\n"}, None),
        ("0::/\n", {}, None),
        ("", {}, None),
        ("nonsense\n", {"cpu_DOT_max": "x y\n"}, None),
        # the lowest of the groups around it
        (
            "0::/pod/box\n",
            {"pod__cpu_DOT_max": "150000 100000", "pod__box__cpu_DOT_max": "400000 100000"},
            1.5,
        ),
        # the host's path, which the container does not see
        ("0::/kubepods/pod1/x\n", {"cpu_DOT_max": "50000 100000"}, 0.5),
        (
            "5:memory:/m\n4:cpuacct,cpu:/docker/1\n",
            {
                "cpu__docker__1__cpu_DOT_cfs_quota_us": "300000",
                "cpu__docker__1__cpu_DOT_cfs_period_us": "100000",
                "memory__m__cpu_DOT_cfs_quota_us": "1",
                "memory__m__cpu_DOT_cfs_period_us": "100000",
            },
            3.0,
        ),
        (
            "1:cpu:/\n",
            {"cpu__cpu_DOT_cfs_quota_us": "-1", "cpu__cpu_DOT_cfs_period_us": "100000"},
            None,
        ),
    ],
)
def test_the_lowest_quota_is_found(
    tmp_path: Path, groups: str, files: dict[str, str], cores: float | None
) -> None:
    found = made(tmp_path, groups, **files)

    assert (found and found.cores) == cores


def test_periods_are_those_of_the_group_with_the_quota(tmp_path: Path) -> None:
    found = made(
        tmp_path,
        "0::/\n",
        cpu_DOT_max="100000 100000",
        cpu_DOT_stat="usage_usec 9\nnr_periods 200\nnr_throttled 50\nthrottled_usec 7\n",
    )

    assert found is not None
    assert found.periods() == (200, 50)


@pytest.mark.parametrize(("quota", "cores"), [(None, 64), (2.0, 2), (2.9, 2), (0.5, 1), (99.0, 64)])
def test_usable_cores(monkeypatch: pytest.MonkeyPatch, quota: float | None, cores: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)))
    found = None if quota is None else CpuQuota(quota, Path("none"))
    monkeypatch.setattr(module, "cpu_quota", lambda: found)

    assert usable_cores() == cores
