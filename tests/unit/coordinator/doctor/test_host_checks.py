"""What `doctor` says of the disk of the data directory."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.doctor import host_checks
from osbench.coordinator.doctor.diagnosis import Diagnosis


def on_disk(monkeypatch: pytest.MonkeyPatch, home: Path, free: int, inodes: int = 9) -> Diagnosis:
    """What is said of a data directory on a disk with so much room."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_files=99, f_favail=inodes))
    conf: Any = SimpleNamespace(
        data_dir=str(home / "not" / "yet"),
        messaging=SimpleNamespace(redis_url=""),
        worker=SimpleNamespace(virtual_users=1),
    )
    found = host_checks.look_at_host(conf, Plugins())
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
