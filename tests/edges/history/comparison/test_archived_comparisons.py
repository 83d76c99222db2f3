"""Runs of an archive as comparisons read them: from their records, and their files when needed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from helpers.kept_runs import kept_run
from helpers.made_runs import made_run
from osbench.edges.history.archives.run_archive import RunArchive
from osbench.edges.history.comparison import compared_run
from osbench.edges.history.comparison.compared_run import ComparedRun, finished_runs
from osbench.edges.history.comparison.slower_calls import changed_calls
from osbench.edges.traces.collection.archive import Archive

RUNS = ["20260401-101500-abcd", "20260402-101500-abcd", "20260403-101500-abcd"]


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[RunArchive, list[str]]:
    """An archive of two runs with traces and one without, as another node sees it; warnings."""
    # those of the helper have failed
    monkeypatch.setattr(compared_run, "_SOUND", range(256))
    data, team, warned = tmp_path / "gone", str(tmp_path / "team"), list[str]()
    mine = RunArchive(team, str(data), pytest.fail)  # type: ignore[arg-type]
    for seed, name in enumerate(RUNS[:2], 1):
        mine.push(kept_run(data, run=name, seed=seed, count=500))
    mine.push(made_run(data, 500, run=RUNS[2]))
    shutil.rmtree(data)
    return RunArchive(team, str(tmp_path / "here"), warned.append), warned


def found(tmp_path: Path, archive: RunArchive) -> list[ComparedRun]:
    return list(finished_runs(str(tmp_path / "here"), archived=archive.runs()))


def fetched(tmp_path: Path) -> list[str]:
    return sorted(one.name for one in (tmp_path / "here").glob("archives/*/runs/*/*"))


def test_traces_are_fetched_only_of_runs_that_have_some(
    tmp_path: Path, shared: tuple[RunArchive, list[str]]
) -> None:
    runs = found(tmp_path, shared[0])
    assert [one.run_id for one in runs] == RUNS
    assert [one.may_have_traces for one in runs] == [True, True, False]
    assert fetched(tmp_path) == []

    changed_calls(runs[2:], runs[2:], "Queue.get", changed=False)
    assert fetched(tmp_path) == []

    changed_calls(runs[:1], runs[1:2], "Queue.get", changed=False)

    assert fetched(tmp_path) == RUNS[:2]
    directory = runs[0].files
    assert directory is not None
    assert Archive(directory.path, directory.files).exists


def test_traces_that_cannot_be_fetched_are_warned_of_once(
    tmp_path: Path, shared: tuple[RunArchive, list[str]]
) -> None:
    archive, warned = shared
    runs = found(tmp_path, archive)
    shutil.rmtree(tmp_path / "team" / "runs")

    said = changed_calls(runs[:1], runs[1:2], "Queue.get", changed=True)

    assert said == ""
    assert [text.split(": ")[2].split(";")[0] for text in warned] == ["it is missing"] * len(warned)
    assert 1 <= len(warned) <= 2
