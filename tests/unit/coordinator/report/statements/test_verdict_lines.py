"""The last lines of a report in a terminal say why, and what to type next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from osbench.coordinator.report.model.model import Report, WorkloadReport
from osbench.coordinator.report.model.workload_parts import SlaVerdict
from osbench.coordinator.report.statements.verdict_lines import NAMED, commands, verdict_lines
from osbench.coordinator.results.accounting.totals import Accounting, Bound, Tracing

RUN = "20260401-120000-ab12cd"
HELD = SlaVerdict(criterion="failure_rate", success=True, detail="0 of 9 failed")
BROKEN = SlaVerdict(criterion="percentile", success=False, detail="p95 2s, allowed 1s")
LOST = Accounting(planned=9, ok=4, lost=2, not_started=3)
FAILED = Accounting(planned=9, ok=5, failed=4)
BOUND = Bound(
    cause="other_programs", fault="generator", sentence="other programs used 2 of 2 cores"
)
SERVICE = Bound(cause="service", fault="service", sentence="all users waited")


def report(code: int, **workload: object) -> Report:
    one = replace(WorkloadReport(name="GET /"), **workload)  # type: ignore[arg-type]
    return Report(run_id=RUN, exit_code=code, workloads=(one,))


def lines(found: Report) -> list[str]:
    return ["".join(phrase.text for phrase in line) for line in verdict_lines(found, NAMED)]


@pytest.mark.parametrize(
    ("code", "workload", "said"),
    [
        (0, {"sla": (HELD,)}, ["met  failure_rate: 0 of 9 failed"]),
        (
            1,
            {"sla": (HELD, BROKEN)},
            ["not met  percentile: p95 2s, allowed 1s", "met  failure_rate: 0 of 9 failed"],
        ),
        # notes say these
        (2, {"error": "no such host"}, []),
        (4, {"bounds": (SERVICE, BOUND)}, []),
        (
            3,
            {"sla": (BROKEN,), "accounting": LOST},
            ["2 lost, 3 not started", "not met  percentile: p95 2s, allowed 1s"],
        ),
        (130, {"sla": (BROKEN,)}, ["not met  percentile: p95 2s, allowed 1s"]),
    ],
)
def test_criteria_and_missing_iterations_come_first(
    code: int, workload: dict[str, object], said: list[str]
) -> None:
    assert lines(report(code, **workload)) == said


def test_of_many_criteria_some_are_named_failed_ones_first() -> None:
    found = lines(report(1, sla=(HELD,) * 3 + (BROKEN,) * 6))

    assert [line.partition("  ")[0] for line in found[:4]] == ["not met"] * 4
    assert found[4:] == ["and 2 more not met", "and 3 more met"]


def test_of_many_workloads_that_lack_iterations_some_are_named() -> None:
    one = report(3, accounting=LOST)

    found = lines(replace(one, workloads=one.workloads * 9))

    assert found == ["GET /: 2 lost, 3 not started"] * 4 + ["and 5 more workloads"]


def test_criteria_of_several_workloads_name_them() -> None:
    one = report(1, sla=(HELD,))
    two = replace(one, workloads=(*one.workloads, *report(1, sla=(BROKEN,)).workloads))

    assert lines(two) == [
        "not met  GET /: percentile: p95 2s, allowed 1s",
        "met  GET /: failure_rate: 0 of 9 failed",
    ]


@pytest.mark.parametrize(
    ("code", "workload", "typed"),
    [
        (0, {"sla": (HELD,)}, []),
        (0, {"accounting": FAILED}, ["results --errors", "logs", "report --html report.html"]),
        (1, {"sla": (BROKEN,)}, ["report --html report.html"]),
        (
            1,
            {"sla": (BROKEN,), "tracing": Tracing(state="on", traced=4)},
            ["trace explain", "report --html report.html"],
        ),
        (3, {"accounting": LOST}, ["logs", "report --html report.html"]),
        (4, {"bounds": (BOUND,)}, ["report --html report.html"]),
    ],
)
def test_commands_fit_what_happened(
    code: int, workload: dict[str, object], typed: list[str]
) -> None:
    found = [command for command, _ in commands(report(code, **workload), details=True)]

    assert [one.replace(f" {RUN}", "") for one in found] == [
        f"osbench-coord {one}" for one in typed
    ]
    assert all(RUN in one for one in found)
