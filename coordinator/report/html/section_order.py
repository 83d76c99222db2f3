"""Orders the parts of the page: the parts that explain the verdict come first."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from osbench.coordinator.report.model.model import CRASHED, WorkloadReport
from osbench.coordinator.report.page_facts import PageFacts

#: Criteria that limit a time.
_TIME_LIMITS = frozenset(
    {
        "max_avg_duration",
        "max_avg_duration_per_atomic",
        "max_seconds_per_iteration",
        "outliers",
        "percentile",
        "performance_degradation",
    }
)
#: Exit codes of a run that could not do what was requested, or did not end.
_BROKEN = frozenset({2, 3, 130})


class Emphasis(StrEnum):
    """Main interest of a reader, which decides the order: failures, slowness, or figures."""

    FAILED = "failed"
    SLOW = "slow"
    FINE = "fine"


#: Parts of the first screen below the verdict.
_OVERVIEW = {
    Emphasis.FAILED: ("failures", "figures", "why"),
    Emphasis.SLOW: ("why", "figures", "failures"),
    Emphasis.FINE: ("figures", "failures", "why"),
}
#: Parts of a workload below its first message.
_WORKLOAD = {
    Emphasis.FAILED: (
        "drill", "errors", "criteria", "timeline", "search", "staircase", "cause", "durations",
        "tables",
    ),
    Emphasis.SLOW: (
        "drill", "cause", "durations", "criteria", "timeline", "search", "staircase", "errors",
        "tables",
    ),
    Emphasis.FINE: (
        "drill", "search", "durations", "timeline", "staircase", "criteria", "cause", "errors",
        "tables",
    ),
}  # fmt: skip


def emphasis_of(workload: WorkloadReport, *, has_cause: bool) -> Emphasis:
    """Return the emphasis of a workload's section.

    FAILED if its load did not begin, or a criterion failed that limits no time. SLOW if a time
    limit failed, or `has_cause`: traces show a clear cause of slowness. Else FINE.
    """
    failed = {verdict.criterion for verdict in workload.sla if not verdict.success}
    if workload.unbegun or failed - _TIME_LIMITS:
        return Emphasis.FAILED
    return Emphasis.SLOW if failed or has_cause else Emphasis.FINE


def run_emphasis(facts: PageFacts, workloads: Iterable[Emphasis]) -> Emphasis:
    """Return the emphasis of the first screen: the emphasis of the worst workload.

    FAILED if the run crashed, or if its exit code is in `_BROKEN`: the run was refused, lost
    iterations, or was interrupted.
    """
    if facts.state == CRASHED or facts.report.exit_code in _BROKEN:
        return Emphasis.FAILED
    return min(workloads, key=list(Emphasis).index, default=Emphasis.FINE)


def overview_blocks(emphasis: Emphasis) -> tuple[str, ...]:
    """Return the names of the parts of the first screen below the verdict, in order."""
    return _OVERVIEW[emphasis]


def workload_blocks(emphasis: Emphasis) -> tuple[str, ...]:
    """Return the names of the parts of a workload's section below its first message, in order."""
    return _WORKLOAD[emphasis]
