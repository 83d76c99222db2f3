"""Kept traces come from an optional package; without it there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.result_rows import row
from helpers.stored_runs import stored_run
from osbench.common.plugin import entry_points
from osbench.coordinator.report.kept_traces import kept_traces
from osbench.edges.traces.stored_traces import StoredTraces


def test_the_installed_package_has_them() -> None:
    assert isinstance(kept_traces(), StoredTraces)


def test_a_run_has_none_without_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_points, "names", lambda _: [])
    rows = [row(1, due=1, started=1, ended=2)]

    assert kept_traces() is None
    assert list(stored_run(tmp_path, rows, rows).trace_requests()) == []
