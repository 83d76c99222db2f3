"""Workers beside each other, and which of them differs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.report_facts import facts_of
from helpers.shown_page import page_of
from osbench.coordinator.report.html.worker_rows import failing_worker, worker_rows
from osbench.coordinator.report.html.workload_facts import WorkloadFacts
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix

MS = 1_000_000


def part(milliseconds: float, count: int = 500) -> dict[str, Any]:
    service, lag = LatencyMatrix(16), LatencyMatrix(16)
    due = np.arange(count, dtype=np.int64) * MS
    service.add(due, np.full(count, int(milliseconds * MS)))
    lag.add(due, np.full(count, MS))
    return {
        "service": service.to_dict(),
        "lag": lag.to_dict(),
        "ok": count,
        "failed": 0,
        "timed_out": 0,
    }


def workload(parts: dict[str, Any], lost: str = "") -> WorkloadFacts:
    described = tuple(
        WorkerFigures(
            incarnation=name,
            host=name.partition("/")[0],
            pid=7,
            label=name.upper(),
            lost=name == lost,
            cpu_mean=0.5,
            cpu_max=0.9,
            offset_s=1e-5,
            uncertainty_s=1e-6,
        )
        for name in [*parts, *([lost] if lost else [])]
    )
    report = WorkloadReport(name="w", workers=described)
    return WorkloadFacts(0, "w", report, {"workers": parts}, {})


def test_the_one_that_sees_more_is_marked() -> None:
    rows = worker_rows(workload({"a": part(20), "b": part(20), "c": part(28)}))

    assert [row.label for row in rows] == ["A", "B", "C"]
    assert [row.odd and row.odd.kind for row in rows] == [None, None, "worker"]
    assert 0.007 < rows[2].more_s < 0.009
    assert abs(sum(row.share for row in rows) - 1) < 1e-9


def kinds(parts: dict[str, float]) -> dict[str, str]:
    """How workers, named HOST/PROCESS, differ, by the milliseconds that each saw."""
    rows = worker_rows(workload({name: part(took) for name, took in parts.items()}))
    return {row.label.lower(): row.odd.kind for row in rows if row.odd}


def test_a_process_that_is_slower_than_others_of_its_host_is_not_its_network() -> None:
    assert kinds({"h/1": 20, "h/2": 28}) == {"h/2": "process"}
    assert kinds({"h/1": 20, "h/2": 28, "i/1": 20, "i/2": 20}) == {"h/2": "process"}
    # without the slow process its host is like the other one
    assert kinds({"h/1": 20, "h/2": 90, "h/3": 20, "i/1": 20}) == {"h/2": "process"}


def test_a_host_whose_processes_are_all_slower_differs_as_a_whole() -> None:
    assert kinds({"h/1": 28, "h/2": 28, "i/1": 20, "i/2": 20, "j/1": 20}) == {
        "h/1": "host",
        "h/2": "host",
    }
    assert kinds({"h/1": 28, "i/1": 20, "i/2": 20}) == {"h/1": "worker"}


def test_few_iterations_do_not_make_one_differ() -> None:
    rows = worker_rows(workload({"a": part(20), "c": part(40, count=50)}))

    assert not any(row.odd for row in rows)


def test_a_lost_worker_is_there_and_an_idle_one_is_not() -> None:
    idle = {**part(1, count=1), "ok": 0}
    rows = worker_rows(workload({"a": part(20), "idle": idle}, lost="gone"))

    assert [(row.label, row.lost) for row in rows] == [("A", False), ("GONE", True)]


@pytest.mark.parametrize(
    ("took", "said", "not_said"),
    [
        (
            {"a-1": 20, "a-2": 28, "b-1": 20},
            "is slower than the other processes of its host: its median service time is",
            "Look at the way from there",
        ),
        (
            {"a-1": 28, "a-2": 28, "b-1": 20},
            "The workers of node1 are the outliers: their median service time is",
            "is slower than the other processes",
        ),
        (
            {"a-1": 20, "a-2": 20, "b-1": 28},
            "node2 is the outlier: its median service time is",
            "is slower than the other processes",
        ),
    ],
)
def test_the_page_sends_nobody_to_a_network_that_is_the_same(
    tmp_path: Path, took: dict[str, float], said: str, not_said: str
) -> None:
    facts = facts_of(tmp_path)
    facts.timeline["workloads"][0]["workers"] = {name: part(ms) for name, ms in took.items()}

    text = " ".join(re.sub(r"<[^>]+>", "", page_of(facts)).split())

    assert said in text
    assert not_said not in text


def failing(*failed: int) -> dict[str, Any]:
    """Parts of workers that ran 500 iterations each."""
    return {
        f"w{number}": part(20) | {"ok": 500 - bad, "failed": bad}
        for number, bad in enumerate(failed)
    }


@pytest.mark.parametrize(
    ("failed", "label"),
    [
        ((1, 126), "W1"),
        ((0, 0, 12), "W2"),
        ((100, 120), None),
        ((0, 9), None),
        ((500, 500), None),
        ((200,), None),
    ],
)
def test_the_one_that_fails_more_is_found(failed: tuple[int, ...], label: str | None) -> None:
    found = failing_worker(worker_rows(workload(failing(*failed))))

    assert (found and found.row.label) == label


def test_the_page_names_the_worker_that_fails_more(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    facts.timeline["workloads"][0]["workers"] = failing(1, 126)

    text = " ".join(re.sub(r"<[^>]+>", "", page_of(facts)).split()).replace("\u202f", " ")

    assert "w1 failed 25.2 % of its iterations, the other 0.2 %." in text
    assert "All workers saw much the same." not in text
