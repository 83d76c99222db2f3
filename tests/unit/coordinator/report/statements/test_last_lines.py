"""The last lines of a report in a terminal say why, and what to type next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from osbench.coordinator.report.model.model import Report, WorkloadReport
from osbench.coordinator.report.model.workload_parts import SlaVerdict
from osbench.coordinator.report.statements.last_lines import causes, commands
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


@pytest.mark.parametrize(
    ("code", "workload", "said"),
    [
        (0, {"sla": (HELD,)}, []),
        (1, {"sla": (HELD, BROKEN)}, ["GET /: percentile: p95 2s, allowed 1s"]),
        # a note says these
        (2, {"error": "no such host"}, []),
        (3, {"sla": (BROKEN,), "accounting": LOST}, ["GET /: 2 lost, 3 not started"]),
        (4, {"bounds": (SERVICE, BOUND)}, []),
        (130, {"sla": (BROKEN,)}, []),
    ],
)
def test_what_decided_the_exit_code_is_named(
    code: int, workload: dict[str, object], said: list[str]
) -> None:
    assert list(causes(report(code, **workload))) == said


def test_of_many_causes_some_are_named() -> None:
    found = causes(report(1, sla=(BROKEN,) * 9))

    assert len(found) == 5
    assert found[-1] == "and 5 more"


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
    found = [command for command, _ in commands(report(code, **workload))]

    assert [one.replace(f" {RUN}", "") for one in found] == [
        f"osbench-coord {one}" for one in typed
    ]
    assert all(RUN in one for one in found)
