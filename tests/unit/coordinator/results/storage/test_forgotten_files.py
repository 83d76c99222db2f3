"""A run that is over for good keeps no file that only a resumption, or the collection, reads."""

from __future__ import annotations

from pathlib import Path

from osbench.coordinator.results.storage import resumable
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.collection.queried_traces import QUERIED
from osbench.edges.traces.collection.received import WORKERS
from osbench.edges.traces.receiving.otlp_receiver import SPOOL


def test_spools_of_spans_are_deleted_and_traces_stay(tmp_path: Path) -> None:
    directory = RunDirectory.create(str(tmp_path), "20260101-000000-0000")
    traces = directory.path / "traces"
    traces.mkdir(exist_ok=True)
    for name in (WORKERS, SPOOL, f"{SPOOL}.json", QUERIED, "kept"):
        (traces / name).touch()

    resumable.forget(directory)

    assert [one.name for one in traces.iterdir()] == ["kept"]
    directory.close()
