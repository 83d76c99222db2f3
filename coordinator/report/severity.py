"""Workloads of a run, the worst first: what a reader of many workloads looks for."""

from __future__ import annotations

from osbench.common.outcomes import STATES
from osbench.coordinator.report.model.model import WorkloadReport

#: Workloads of a run from which on those that held are told in brief.
MANY = 12


def has_held(workload: WorkloadReport) -> bool:
    """Nothing about the workload calls for a look: criteria, outcomes and load are all well."""
    return _class(workload) == _HELD


_FAILED, _IMPAIRED, _HELD = range(3)


def _class(workload: WorkloadReport) -> int:
    if workload.unbegun or any(not verdict.success for verdict in workload.sla):
        return _FAILED
    not_ok = sum(workload.accounting.state(state) for state in STATES[1:])
    return _IMPAIRED if not_ok or workload.bounds else _HELD


def severity(workload: WorkloadReport) -> tuple[int, float]:
    """Sort key: failed criteria, then failures, then the rest; greater shares of failures first.

    Equal workloads stay in the order of the task.
    """
    found = _class(workload)
    share = workload.bad / workload.ran if workload.ran else 0.0
    return found, -share if found != _HELD else 0.0
