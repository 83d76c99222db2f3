"""The order of many workloads: the worst first."""

from __future__ import annotations

import pytest

from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.model.workload_parts import SlaVerdict
from osbench.coordinator.report.severity import has_held, severity
from osbench.coordinator.results.accounting.totals import Accounting, Bound

HELD = WorkloadReport(name="held", accounting=Accounting(planned=9, ok=9))
BROKEN = WorkloadReport(name="broken", sla=(SlaVerdict(criterion="c", success=False),))
FEW = WorkloadReport(name="few", accounting=Accounting(planned=9, ok=8, failed=1))
MOST = WorkloadReport(name="most", accounting=Accounting(planned=9, ok=1, failed=8))


def test_failed_criteria_come_first_then_failures_then_the_order_of_the_task() -> None:
    found = sorted([HELD, FEW, MOST, BROKEN], key=severity)

    assert [one.name for one in found] == ["broken", "most", "few", "held"]


@pytest.mark.parametrize(
    "workload",
    [
        BROKEN,
        FEW,
        WorkloadReport(name="w", error="no account"),
        WorkloadReport(name="w", accounting=Accounting(planned=2, ok=1, dropped=1)),
        WorkloadReport(name="w", bounds=(Bound(cause="late", fault="generator", sentence="s"),)),
    ],
)
def test_what_calls_for_a_look_has_not_held(workload: WorkloadReport) -> None:
    assert not has_held(workload)
    assert has_held(HELD)
