"""The timeline of a run: on disk and back, stretches that the generator spoilt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgpack
import pytest
import zstandard

from helpers.result_rows import block, row
from helpers.sample_reports import full_report, rps_workload, run_report
from helpers.summaries import to_json
from osbench.common.errors import UsageError
from osbench.coordinator.report.model.model import CRASHED, FINISHED, RUNNING
from osbench.coordinator.report.run_facts import read_facts
from osbench.coordinator.report.timeline import to_timeline
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics
from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import (
    TIMELINE,
    read_timeline,
    write_timeline,
)

LIMIT_S = 0.1


def late_between(first_s: int, last_s: int) -> WorkloadStatistics:
    """Twenty seconds of ten starts each; those due in some seconds start half a second late."""
    statistics = WorkloadStatistics()
    rows = []
    for number in range(200):
        due = number * 100
        lag = 500 if first_s <= due / 1000 < last_s else 1
        rows.append(row(number, due=due, started=due + lag, ended=due + lag + 20))
    statistics.add(block(*rows), worker="a")
    return statistics


def workload_document(statistics: WorkloadStatistics) -> dict:
    report = run_report(replace(rps_workload(), statistics=statistics))
    return to_timeline(report, {}, LIMIT_S)["workloads"][0]


def test_stretches_in_which_the_generator_was_late() -> None:
    found = workload_document(late_between(5, 7))
    [(from_s, to_s, late, worst_s)] = found["spoilt"]
    assert (from_s, to_s, late) == (5.0, 7.0, 20)
    assert worst_s == pytest.approx(0.5, rel=0.02)
    assert found["without_spoilt"]["p99_s"] == pytest.approx(0.021, rel=0.02)


def test_a_generator_that_kept_up_spoils_nothing() -> None:
    found = workload_document(late_between(0, 0))
    assert found["spoilt"] == []
    assert found["without_spoilt"] is None


def test_the_sums_are_those_of_the_summary() -> None:
    report = full_report()
    summary = to_json(report)
    for one, whole in zip(
        to_timeline(report, summary, LIMIT_S)["workloads"], summary["workloads"], strict=True
    ):
        service = LatencyMatrix.from_dict(one["service"])
        assert service.total == whole["latency"]["service"]["ok"]["count"]
        assert LatencyMatrix.from_dict(one["start_lag"]).total == whole["start_lag"]["count"]
        ran = sum(whole["latency"]["service"][state]["count"] for state in ("failed", "timed_out"))
        assert len(one["failed"]) == ran
        assert sum(one["load"]["starts"]) == sum(one["load"]["due"])


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    found = RunDirectory.create(str(tmp_path), "20260401-101500-abcd")
    found.write("run.json", {"task": "t", "description": "", "tags": [], "workloads": []})
    yield found
    found.close()


def test_a_running_then_crashed_run_shows_its_last_checkpoint(directory: RunDirectory) -> None:
    report = full_report()
    document = to_timeline(report, to_json(report), LIMIT_S)
    write_timeline(directory, {"complete": False, **document}, sync=False)
    running = read_facts(directory)
    assert (running.state, running.reason) == (RUNNING, "")
    assert running.summary == json.loads(json.dumps(to_json(report)))
    directory.close()
    crashed = read_facts(directory)
    assert crashed.state == CRASHED
    assert "killed" in crashed.reason


def test_a_run_without_numbers_can_be_shown(directory: RunDirectory) -> None:
    directory.close()
    found = read_facts(directory)
    assert found.state == CRASHED
    assert found.timeline is None
    assert found.summary["workloads"] == []
    assert found.summary["notes"] == [found.reason]


def test_a_finished_run(directory: RunDirectory) -> None:
    directory.write("summary.json", to_json(full_report()))
    directory.close()
    assert read_facts(directory).state == FINISHED


def test_a_summary_of_another_format_is_refused(directory: RunDirectory) -> None:
    directory.write("summary.json", {"format": 99})
    with pytest.raises(UsageError, match="has format 99"):
        read_facts(directory)


def packed(document: object) -> bytes:
    return zstandard.ZstdCompressor().compress(msgpack.packb(document))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"rubbish",
        b"\x28\xb5\x2f\xfd rubbish",
        packed(5),
        packed({"format": 1}),
        packed({"format": 1, "summary": {}, "workloads": []}),
        packed({"format": 1, "summary": to_json(full_report()), "workloads": [{}]}),
    ],
)
def test_a_damaged_timeline_is_none(directory: RunDirectory, content: bytes) -> None:
    (directory.path / TIMELINE).write_bytes(content)
    assert read_timeline(directory) is None
