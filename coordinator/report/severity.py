"""Orders the workloads of a run, the worst first, for readers of many workloads."""

from __future__ import annotations

from osbench.common.values.outcomes import STATES
from osbench.coordinator.report.model.model import WorkloadReport

#: Number of workloads from which on successful ones are reported in brief.
MANY = 12


def has_held(workload: WorkloadReport) -> bool:
    """Return whether a workload began, met its SLA, and had only ok iterations and no bound."""
    return _class(workload) == _HELD


_FAILED, _IMPAIRED, _HELD = range(3)


def _class(workload: WorkloadReport) -> int:
    if workload.unbegun or any(not verdict.success for verdict in workload.sla):
        return _FAILED
    not_ok = sum(workload.accounting.state(state) for state in STATES[1:])
    return _IMPAIRED if not_ok or workload.bounds else _HELD


def severity(workload: WorkloadReport) -> tuple[int, float]:
    """Return a sort key of a workload: failed ones first, then impaired ones, then the rest.

    Failed: no load, or a failed criterion. Impaired: iterations that are not ok, or a bound of the
    load. Within both, greater fractions of bad iterations come first.
    """
    found = _class(workload)
    share = workload.bad / workload.ran if workload.ran else 0.0
    return found, -share if found != _HELD else 0.0
