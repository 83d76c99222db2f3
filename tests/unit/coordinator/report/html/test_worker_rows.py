"""Workers beside each other, and which of them differs."""

from __future__ import annotations

from typing import Any

import numpy as np

from osbench.coordinator.report.html.worker_rows import worker_rows
from osbench.coordinator.report.html.workload_facts import WorkloadFacts
from osbench.coordinator.statistics.latency_matrix import LatencyMatrix

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
    described = [
        {
            "incarnation": name,
            "host": name,
            "pid": 7,
            "label": name.upper(),
            "lost": name == lost,
            "cpu_mean": 0.5,
            "cpu_max": 0.9,
            "offset_s": 1e-5,
            "uncertainty_s": 1e-6,
        }
        for name in [*parts, *([lost] if lost else [])]
    ]
    return WorkloadFacts(0, "w", {"workers": described}, {"workers": parts}, {})


def test_the_one_that_sees_more_is_marked() -> None:
    rows = worker_rows(workload({"a": part(20), "b": part(20), "c": part(28)}))

    assert [row.label for row in rows] == ["A", "B", "C"]
    assert [row.is_odd for row in rows] == [False, False, True]
    assert 0.007 < rows[2].more_s < 0.009
    assert abs(sum(row.share for row in rows) - 1) < 1e-9


def test_few_iterations_do_not_make_one_differ() -> None:
    rows = worker_rows(workload({"a": part(20), "c": part(40, count=50)}))

    assert not any(row.is_odd for row in rows)


def test_a_lost_worker_is_there_and_an_idle_one_is_not() -> None:
    idle = {**part(1, count=1), "ok": 0}
    rows = worker_rows(workload({"a": part(20), "idle": idle}, lost="gone"))

    assert [(row.label, row.lost) for row in rows] == [("A", False), ("GONE", True)]
