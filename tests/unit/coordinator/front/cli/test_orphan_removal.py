"""Tasks of Rally in osbench's own runs are not orphans while these runs go on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from osbench.common.plugin.cloud_platform import FoundOrphans, Orphan
from osbench.coordinator.front.cli import orphan_removal
from osbench.coordinator.plugins.contexts.state_store import ContextStateStore, Entry
from osbench.coordinator.results.storage import resumable
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.rally.context_object import codec

OWNER = "1f2e3d4c-5b6a-4000-8000-000000000000"


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    """A run of a coordinator that is gone, with a context of Rally that is not undone."""
    made = RunDirectory.create(str(tmp_path), "20260101-000000-ab12")
    store = ContextStateStore(made.path, tmp_path, made.path.name, None)
    packed = codec.pack({"owner_id": OWNER})
    store.add(Entry(workload=0, name="dummy_context@default", config={}, made={"rally": packed}))
    store.add(Entry(workload=0, name="images", config={}))
    made.close()
    return made


def removable(tmp_path: Path) -> dict[str, list[Orphan]]:
    settings: Any = SimpleNamespace(data_dir=tmp_path)
    orphan = Orphan(service="zaqar", kind="queues", name="q", identity="q", run="", created_at=None)
    found = FoundOrphans(by_run={"1f2e3d4c": [orphan], "00000000": [orphan]})
    return orphan_removal._without_kept(settings, found, rally=True)


def test_the_task_of_a_run_that_can_be_resumed_is_left_out(
    directory: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(removable(tmp_path)) == ["00000000"]
    assert f"left out: run {directory.path.name} runs or can be resumed" in capsys.readouterr().err


def test_what_the_clean_up_of_an_ended_run_could_not_remove_is_taken(
    directory: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumable, "is_ended", lambda _: True)

    assert list(removable(tmp_path)) == ["1f2e3d4c", "00000000"]
