"""Statements on the requests of a workload."""

from __future__ import annotations

import pytest

from osbench.common.protocol.exchanges import PHASES
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.model.time_figures import BriefTimes
from osbench.coordinator.report.model.workload_parts import (
    RequestCounts,
    RequestsReport,
    ThroughputFigures,
)
from osbench.coordinator.report.statements.iteration_statements import request_statements


@pytest.mark.parametrize(
    ("sent", "received", "span_s", "end"),
    [
        (200_000_000, 5_000_000, 4.0, "200 MB sent (50.0 MB/s), 5.00 MB received (1.25 MB/s)"),
        (200_000_000, 3_000_000, 4.0, "200 MB sent (50.0 MB/s), 3.00 MB received"),
        (900, 70_000, 1.0, "900 B sent, 70.0 kB received"),
        (200_000_000, 1, 0.0, "200 MB sent, 1 B received"),
    ],
)
def test_bytes_per_second_of_the_load(sent: int, received: int, span_s: float, end: str) -> None:
    counts = RequestCounts(
        requests=3,
        sent_bytes=sent,
        received_bytes=received,
        phases={phase: BriefTimes() for phase in PHASES},
    )
    workload = WorkloadReport(
        name="w",
        requests=RequestsReport(total=counts),
        throughput=ThroughputFigures(span_s=span_s),
    )

    (statement,) = request_statements(workload)

    assert statement.text.endswith(end)
