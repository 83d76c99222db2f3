"""The summary of a run: read as it is, or refused with what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.sample_reports import full_report
from helpers.summaries import to_json
from osbench.common.errors import OsbenchError, UsageError
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.storage.run_documents import SUMMARY, summary_of
from osbench.coordinator.storage.run_listing import described


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    found = RunDirectory.create(str(tmp_path), "run")
    yield found
    found.close()


def damaged() -> dict[str, Any]:
    whole = to_json(full_report())
    (first, *rest) = whole["workloads"]
    return {
        "no exit code": {key: whole[key] for key in whole if key != "exit_code"},
        "no list of workloads": whole | {"workloads": 5},
        "a workload without sums": whole | {"workloads": [{"name": "x"}]},
        "a workload that is none": whole | {"workloads": [first, *rest, "x"]},
    }


def test_a_whole_summary(directory: RunDirectory) -> None:
    assert summary_of(directory) is None
    directory.write(SUMMARY, to_json(full_report()))
    found = summary_of(directory)
    assert found is not None
    assert found["exit_code"] == full_report().exit_code


@pytest.mark.parametrize("what", damaged())
def test_a_damaged_summary_is_named_and_does_not_hide_other_runs(
    directory: RunDirectory, what: str
) -> None:
    directory.write(SUMMARY, damaged()[what])
    with pytest.raises(OsbenchError, match=r"summary\.json is damaged"):
        summary_of(directory)
    directory.close()
    assert "is damaged" in described(directory)["why"]


def test_a_summary_of_another_version(directory: RunDirectory) -> None:
    directory.write(SUMMARY, to_json(full_report()) | {"format": 7})
    with pytest.raises(UsageError, match="has format 7; this version of osbench reads 1"):
        summary_of(directory)
