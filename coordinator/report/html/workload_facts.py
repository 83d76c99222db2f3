"""Facts of one workload of a run, from which its section of the page is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.formatting import titles
from osbench.coordinator.report.error_kinds import Kind
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.page_facts import PageFacts
from osbench.coordinator.report.page_part import PagePart
from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix

#: Limit for a run without a timeline, of an older release.
_LAG_LIMIT_S = 0.1


@dataclass(frozen=True)
class WorkloadFacts:
    """A workload as input of the page: its part of the report, of the timeline and of run.json."""

    number: int
    title: str
    report: WorkloadReport
    #: Empty if the run has none.
    timeline: Mapping[str, Any]
    asked: Mapping[str, Any]
    #: When iterations failed by kind of error, seconds after t0; empty of a live page.
    failed_s: Mapping[Kind, NDArray[np.float64]] = field(default_factory=dict)
    #: Parts that optional packages add, by name.
    parts: Mapping[str, PagePart] = field(default_factory=dict)
    #: Messages on a live page if they are not up to date, by name.
    troubles: Mapping[str, str] = field(default_factory=dict)

    @property
    def anchor(self) -> str:
        """Id of the workload's element in the page: w1 for the first workload."""
        return f"w{self.number + 1}"

    @property
    def elapsed_s(self) -> float:
        """Seconds of load so far, from the timeline or else from the report."""
        return float(self.timeline.get("elapsed_s") or self.report.offered.duration_s)

    @property
    def lag_limit_s(self) -> float:
        """Start lag in seconds above which the generator counts as late; 0.1 if not known."""
        return float(self.timeline.get("lag_limit_s") or _LAG_LIMIT_S)

    @cached_property
    def service(self) -> LatencyMatrix:
        """Service times over time, cached; empty without a timeline."""
        return self.matrix("service")

    @cached_property
    def response(self) -> LatencyMatrix:
        """Response times over time, cached; empty without a timeline."""
        return self.matrix("response")

    @property
    def main_matrix(self) -> LatencyMatrix:
        """Response times over time if the load is open, else service times."""
        return self.response if self.report.is_open else self.service

    def matrix(self, name: str) -> LatencyMatrix:
        """Return the timeline's latency matrix under the key `name`; an empty one without it."""
        found = self.timeline.get(name)
        return LatencyMatrix.from_dict(found) if found else LatencyMatrix(1)

    def list_of(self, name: str) -> list[Any]:
        """Return a copy of the list under the key `name` of the timeline; [] if it has none."""
        return list(self.timeline.get(name) or ())


def _names(workload: WorkloadReport) -> tuple[str, str, str]:
    own = workload.name if workload.scenario != workload.name else ""
    return own, workload.subtask, workload.name


def workloads_of(facts: PageFacts) -> list[WorkloadFacts]:
    """Return the facts of each workload of a run, in the order of the task; titles are distinct."""
    found = facts.report.workloads
    timelines = list((facts.timeline or {}).get("workloads") or ())
    troubles = dict((facts.timeline or {}).get("troubles") or {}) if facts.live else {}
    asked = list(facts.manifest.get("workloads") or ())
    named = titles(map(_names, found))
    return [
        WorkloadFacts(
            number=number,
            title=named[number],
            report=report,
            timeline=timelines[number] if number < len(timelines) else {},
            asked=asked[number] if number < len(asked) else {},
            failed_s={kind: at for (of, kind), at in facts.failed_s.items() if of == number},
            parts=facts.parts,
            troubles=troubles,
        )
        for number, report in enumerate(found)
    ]
