"""Statements on zones and servers."""

from __future__ import annotations

from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.statements.breakdown_statements import breakdown_statements
from osbench.coordinator.results.accounting.breakdown import BreakdownFigures, BreakdownRow


def said(*rows: BreakdownRow, by: str = "zone", of: str = "iterations") -> list[tuple[str, str]]:
    workload = WorkloadReport(name="A.b", breakdowns=(BreakdownFigures(by=by, of=of, rows=rows),))
    found = list(breakdown_statements(workload))
    assert all(one.on_page for one in found)
    return [(one.label, one.text) for one in found]


def test_a_zone_has_its_share_beside_the_planned_one_and_its_times() -> None:
    eu = BreakdownRow(name="eu", share=0.3, asked=0.25, ok=120, p50=0.01, p95=0.02, p99=0.04)

    assert said(eu) == [
        (
            "by zone",
            "eu: 30.0 % of iterations (25 % planned), 120 ok, p50 10.0ms, p95 20.0ms, p99 40.0ms",
        )
    ]


def test_a_server_without_good_responses_has_no_times() -> None:
    bad = BreakdownRow(name="b3", share=1.0, failed=1200)

    assert said(bad, by="x-backend", of="requests") == [
        ("by server", "b3: 100.0 % of requests, 0 ok, 1,200 failed")
    ]


def test_many_servers_are_counted() -> None:
    found = said(*[BreakdownRow(name=f"b{one}") for one in range(12)], by="address", of="requests")

    assert len(found) == 11
    assert found[-1] == ("by server", "and 2 more; --json has all")
