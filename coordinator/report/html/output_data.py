"""The data of complete charts: of each title the one of the first iteration that had it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from osbench.common.rally.adapters.records import outputs
from osbench.coordinator.report.html.workload_facts import WorkloadFacts
from osbench.coordinator.report.run_facts import RunFacts


def first_outputs(facts: RunFacts, workloads: Sequence[WorkloadFacts]) -> dict[int, dict[str, Any]]:
    """By number of the workload and title of the chart; reads blocks only where it must."""
    wanted: dict[int, set[int]] = {}
    for workload in workloads:
        charts = (workload.summary.get("outputs") or {}).get("complete") or ()
        numbers = {int(chart["first_iteration"]) for chart in charts if "first_iteration" in chart}
        if numbers:
            wanted[workload.number] = numbers
    found: dict[int, dict[str, Any]] = {}
    if not wanted:
        return found
    for number, columns in facts.directory.rows():
        left = wanted.get(number)
        if not left:
            continue
        for iteration, packed in columns.outputs:
            if iteration not in left:
                continue
            left.discard(iteration)
            titles = found.setdefault(number, {})
            for chart in outputs(packed)["complete"]:
                titles.setdefault(str(chart.get("title")), chart.get("data"))
        if not any(wanted.values()):
            break
    return found
