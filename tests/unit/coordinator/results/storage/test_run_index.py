"""The index of runs: read once, right after every change, and made again when it is lost."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from helpers.made_runs import made_run
from osbench.coordinator.results.storage import run_index
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_index import INDEX, rows_of


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the runs that were described."""
    real, found = run_index.run_row, []

    def described(run: RunDirectory) -> dict[str, Any]:
        found.append(run.path.name)
        return real(run)

    monkeypatch.setattr(run_index, "run_row", described)
    return found


def rows(data: Path) -> list[dict[str, Any]]:
    return rows_of(str(data), RunDirectory.all(str(data)))


def test_what_has_finished_is_read_once(tmp_path: Path, reads: list[str]) -> None:
    name = made_run(tmp_path, 20).path.name

    first, second = rows(tmp_path), rows(tmp_path)

    assert reads == [name]
    assert first == second
    assert [one["state"] for one in first] == ["finished"]
    assert first[0]["size_bytes"] > 0
    assert stat.S_IMODE((tmp_path / INDEX).stat().st_mode) == 0o600


def test_a_run_whose_files_changed_is_read_again(tmp_path: Path, reads: list[str]) -> None:
    run = made_run(tmp_path, 20)
    rows(tmp_path)

    with (run.path / "blocks").open("ab") as file:
        file.write(b"more")

    (found,) = rows(tmp_path)
    assert len(reads) == 2
    assert found["state"] == "damaged"


def test_a_run_that_has_not_finished_is_read_each_time(tmp_path: Path, reads: list[str]) -> None:
    RunDirectory.create(str(tmp_path), "20260101-120000-aaaa").close()

    rows(tmp_path)
    rows(tmp_path)

    assert len(reads) == 2


@pytest.mark.parametrize("damage", [b"", b"no database", b"SQLite format 3\x00" + b"\xff" * 200])
def test_an_index_that_cannot_be_read_is_made_again(
    tmp_path: Path, reads: list[str], damage: bytes
) -> None:
    made_run(tmp_path, 20)
    before = rows(tmp_path)

    (tmp_path / INDEX).write_bytes(damage)

    assert rows(tmp_path) == rows(tmp_path) == before
    # once more for the list that found it so, and perhaps for the one that made it again
    assert 2 <= len(reads) <= 3
    assert rows(tmp_path) == before
    assert len(reads) <= 3


def test_rows_of_another_format_and_of_runs_that_are_gone_are_left_out(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made_run(tmp_path, 20)
    rows(tmp_path)
    monkeypatch.setattr(run_index, "_FORMAT", 2)
    again = rows(tmp_path)
    run.delete(force=True)

    assert len(reads) == 2
    assert len(again) == 1
    assert rows(tmp_path) == []


def test_without_a_place_for_it_runs_are_listed_all_the_same(
    tmp_path: Path, reads: list[str]
) -> None:
    made_run(tmp_path, 20)
    (tmp_path / INDEX).mkdir()

    assert len(rows(tmp_path)) == len(rows(tmp_path)) == 1
    assert len(reads) == 2


def test_figures_are_those_of_the_summary(tmp_path: Path) -> None:
    run = made_run(tmp_path, 20)
    summary = json.loads((run.path / "summary.json").read_text())
    (workload,) = summary["workloads"]

    (found,) = rows(tmp_path)

    kind = "service" if workload["offered"]["concurrency"] else "response"
    assert found["p95_s"] == workload["latency"][kind]["ok"]["p95"]
    assert found["rate"] == workload["throughput"]["ok_per_s"]
    sums = workload["accounting"]
    assert found["failed"] == sums["failed"] + sums["timed_out"]
    assert found["verdict"] in ("met", "done")
    assert found["duration_s"] > 0


@pytest.mark.parametrize(
    "change",
    [
        {"latency": 5},
        {"throughput": [1]},
        {"accounting": {"planned": "x"}},
        {"throughput": {"ok_per_s": {}}},
        {"offered": 1},
    ],
)
def test_a_summary_of_another_shape_is_a_damaged_run(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    run = made_run(tmp_path, 20)
    summary = json.loads((run.path / "summary.json").read_text())
    summary["workloads"][0] |= change
    (run.path / "digests.json").unlink(missing_ok=True)
    (run.path / "summary.json").write_text(json.dumps(summary))

    (found,) = rows(tmp_path)

    assert found["p95_s"] is None
    assert found["state"] in ("damaged", "finished")
    assert found["why"]
