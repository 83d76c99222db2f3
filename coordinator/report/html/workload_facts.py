"""All that is known of one workload of a run, and the few things that follow from it at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from osbench.coordinator.formatting import distinct
from osbench.coordinator.report.run_facts import RunFacts
from osbench.coordinator.results.totals import is_open_load
from osbench.coordinator.statistics.latency_matrix import LatencyMatrix

#: What a run without a timeline, of an older release, is judged by.
_LAG_LIMIT_S = 0.1
_NO_TIMES: Mapping[str, Any] = {
    "count": 0,
    **dict.fromkeys(("min", "mean", "max", "p50", "p90", "p95", "p99", "p999")),
    "ci": {},
}


@dataclass(frozen=True)
class WorkloadFacts:
    """One workload: its part of the summary, of the timeline and of run.json."""

    number: int
    title: str
    summary: Mapping[str, Any]
    #: Empty where the run has none.
    timeline: Mapping[str, Any]
    asked: Mapping[str, Any]

    @property
    def anchor(self) -> str:
        """Its name in the page."""
        return f"w{self.number + 1}"

    @property
    def scenario(self) -> str:
        """The name of its scenario."""
        return str(self.summary.get("scenario") or self.summary.get("name") or "")

    @property
    def is_open(self) -> bool:
        """Iterations start at planned instants, whatever the service does."""
        return is_open_load(self.offered)

    @property
    def kind(self) -> str:
        """The time that counts: response time of an open load, service time of a closed one."""
        return "response" if self.is_open else "service"

    @property
    def accounting(self) -> Mapping[str, Any]:
        """Planned iterations by state."""
        found: Mapping[str, Any] = self.summary.get("accounting") or {}
        return found

    def count(self, state: str) -> int:
        """Iterations in a state."""
        return int(self.accounting.get(state) or 0)

    @property
    def bad(self) -> int:
        """Iterations that failed or took too long."""
        return self.count("failed") + self.count("timed_out")

    @property
    def ran(self) -> int:
        """Iterations that ended by themselves."""
        return self.count("ok") + self.bad

    @property
    def missing(self) -> int:
        """Planned iterations that did not run to an end."""
        return max(0, self.count("planned") - self.ran)

    @property
    def bounds(self) -> list[Mapping[str, Any]]:
        """Causes that bound the load; runs of older releases do not say."""
        return list(self.summary.get("bounds") or ())

    @property
    def is_generators(self) -> bool:
        """Late starts are the load generator's own."""
        faults = [bound["fault"] for bound in self.bounds]
        return not faults or "generator" in faults

    def times(self, kind: str, state: str = "ok") -> Mapping[str, Any]:
        """Percentiles of a time; of none where there are none."""
        latency = self.summary.get("latency") or {}
        found: Mapping[str, Any] = (latency.get(kind) or {}).get(state) or _NO_TIMES
        return found

    @property
    def main_times(self) -> Mapping[str, Any]:
        """Percentiles of the time that counts."""
        return self.times(self.kind)

    @property
    def start_lag(self) -> Mapping[str, Any]:
        """Percentiles of the start lag."""
        found: Mapping[str, Any] = self.summary.get("start_lag") or _NO_TIMES
        return found

    @property
    def offered(self) -> Mapping[str, Any]:
        """The load that was offered, beside what was asked."""
        found: Mapping[str, Any] = self.summary.get("offered") or {}
        return found

    @property
    def runner(self) -> tuple[str, Any]:
        """Type and configuration of the runner."""
        found = self.summary.get("runner") or {}
        return str(found.get("type", "")), found.get("config")

    @property
    def elapsed_s(self) -> float:
        """Seconds of load so far."""
        offered = self.offered.get("duration_s") or 0.0
        return float(self.timeline.get("elapsed_s") or offered)

    @property
    def lag_limit_s(self) -> float:
        """Start lag above which the generator is late."""
        return float(self.timeline.get("lag_limit_s") or _LAG_LIMIT_S)

    @property
    def verdicts(self) -> list[Mapping[str, Any]]:
        """Verdicts of the SLA criteria."""
        return list(self.summary.get("sla") or ())

    @property
    def tracing(self) -> Mapping[str, Any]:
        """What is known of its traces."""
        found: Mapping[str, Any] = self.summary.get("tracing") or {}
        return found

    @cached_property
    def service(self) -> LatencyMatrix:
        """Service times by time."""
        return self.matrix("service")

    @cached_property
    def response(self) -> LatencyMatrix:
        """Response times by time."""
        return self.matrix("response")

    @property
    def main_matrix(self) -> LatencyMatrix:
        """The times that count, by time."""
        return self.response if self.is_open else self.service

    def matrix(self, name: str) -> LatencyMatrix:
        """A matrix of the timeline; an empty one where there is none."""
        found = self.timeline.get(name)
        return LatencyMatrix.from_dict(found) if found else LatencyMatrix(1)

    def list_of(self, name: str) -> list[Any]:
        """A list of the timeline."""
        return list(self.timeline.get(name) or ())


def _title(summary: Mapping[str, Any]) -> str:
    """The name that the task gives a workload, else the title of its subtask."""
    name = str(summary.get("name") or "")
    own = name if summary.get("scenario", name) != name else ""
    return own or str(summary.get("subtask") or name or "workload")


def workloads_of(facts: RunFacts) -> list[WorkloadFacts]:
    """The workloads of a run in the order of the task."""
    found = list(facts.summary.get("workloads") or ())
    timelines = list((facts.timeline or {}).get("workloads") or ())
    asked = list(facts.manifest.get("workloads") or ())
    titles = distinct([_title(one) for one in found])
    workloads = []
    for number, summary in enumerate(found):
        workloads.append(
            WorkloadFacts(
                number=number,
                title=titles[number],
                summary=summary,
                timeline=timelines[number] if number < len(timelines) else {},
                asked=asked[number] if number < len(asked) else {},
            )
        )
    return workloads
