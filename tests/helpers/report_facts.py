"""What is known of runs for the page, from reports with known numbers; nothing has run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgpack

from helpers.sample_reports import full_report
from helpers.summaries import to_json
from osbench.coordinator.report.model.model import FINISHED
from osbench.coordinator.report.run_facts import RunFacts
from osbench.coordinator.report.run_outcome import RunOutcome
from osbench.coordinator.report.timeline import to_timeline
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.counters.counter_file import write_counters

#: Criteria of the sample reports, by workload.
SLA: tuple[Mapping[str, Any], ...] = ({"failure_rate": {"max": 0}}, {"failure_rate": {"max": 0}})


def facts_of(
    data: Path,
    report: RunOutcome | None = None,
    *,
    sla: tuple[Mapping[str, Any], ...] = SLA,
    state: str = FINISHED,
    reason: str = "",
    changes: Mapping[str, Any] | None = None,
) -> RunFacts:
    """A run in an empty directory; `changes` replace values of the summary."""
    report = report or full_report()
    summary = {**to_json(report), **(changes or {})}
    summary = json.loads(json.dumps(summary))
    timeline = msgpack.unpackb(msgpack.packb(to_timeline(report, summary, 0.1)))
    names = [workload.name for workload in report.workloads]
    manifest = {
        "run_id": report.run_id,
        "osbench": "0.1.0",
        "started_at": report.started_at,
        "task": report.title,
        "description": "",
        "source": "/somewhere/task.yaml",
        "tags": list(report.tags),
        "deployment": "lab",
        "workloads": [
            {"scenario": name, "args": {}, "sla": dict(criteria)}
            for name, criteria in zip(names, sla, strict=False)
        ],
    }
    path = data / report.run_id
    path.mkdir(parents=True, exist_ok=True)
    directory = RunDirectory(path)
    counters = {at: one.counters for at, one in enumerate(report.workloads) if one.counters}
    if counters:
        write_counters(directory, counters)
    return RunFacts(
        directory=directory,
        manifest=manifest,
        summary=summary,
        timeline=timeline,
        state=state,
        reason=reason,
    )
