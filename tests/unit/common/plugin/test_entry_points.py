"""Edges are found by entry point: read once, loaded when asked for, and missed in a sentence."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

import pytest

from osbench.common.errors import PluginError
from osbench.common.plugin import entry_points


def install(folder: Path, name: str, *lines: str) -> None:
    """Make metadata of a package with entry points `osbench.recording`."""
    told = folder / f"{name}-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text("\n".join(["[osbench.recording]", *lines]))


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_an_entry_point_may_name_anything(packages: Path) -> None:
    install(packages, "theirs", "postman = os.path:join", "curl = os:path.join")

    found = [entry_points.load_object("recording", name) for name in ("postman", "curl")]

    assert found == [os.path.join, os.path.join]


def test_metadata_is_read_once_for_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "theirs", "postman = os.path:join")
    reads = []
    read = importlib.metadata.entry_points
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda: reads.append(1) or read())
    monkeypatch.syspath_prepend(tmp_path / "nothing")
    before = entry_points.names("recording")
    entry_points.installed_points(["runner", "sla"])

    monkeypatch.syspath_prepend(tmp_path)
    after = entry_points.names("recording")

    assert len(reads) == 2
    assert after - before == {"postman"}


def test_an_edge_that_is_missing_or_broken_is_said(packages: Path) -> None:
    install(packages, "theirs", "broken = their_nothing:read", "lacking = os.path:nothing")

    with pytest.raises(PluginError, match=r"no .* entry point 'tape' of the group osbench\.rec"):
        entry_points.load_object("recording", "tape")
    with pytest.raises(PluginError, match=r"broken \(entry point their_.* ModuleNotFoundError"):
        entry_points.load_object("recording", "broken")
    with pytest.raises(PluginError, match=r"lacking \(.*\) cannot be loaded: AttributeError"):
        entry_points.load_object("recording", "lacking")
