import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from helpers import results_schema
from helpers.result_rows import block, row
from helpers.sample_reports import constant_workload, run_report
from helpers.summaries import to_json
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.report.text import render
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.totals import Accounting, Offered
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics
from osbench.edges.history.sizing.planned_figures import compared_with_plan

LEVEL = {"from_s": 0, "to_s": 10, "begin": 100, "end": 100, "rate": 100}
#: 100 arrivals a second for ten seconds, 1 ms of CPU and 50 ms of service each; a process takes
#: 1 % of a core for itself.
PLANNED = {
    "open": True,
    "processes": 1,
    "rate": 100,
    "users": 5.0,
    "cost": {"cpu_s": 0.001, "idle_cpu": 0.01, "service_s": 0.05},
    "levels": [LEVEL],
}
#: The mean of what two workers take for it: 0.1 of a core between them.
AS_PLANNED = 0.06


def ran(cpu=AS_PLANNED, lasts_ms=50, count=1000, **more) -> WorkloadOutcome:
    """A run of it: an iteration each 10 ms, `lasts_ms` long, on two workers."""
    statistics = WorkloadStatistics()
    rows = [row(n, started=n * 10, ended=n * 10 + lasts_ms) for n in range(count)]
    statistics.add(block(*rows), worker="w")
    workers = (WorkerFigures(cpu_mean=cpu, cpu_max=cpu),) * 2
    values = {
        "accounting": Accounting(planned=count, ok=count),
        "offered": Offered(duration_s=10.0, rate_planned=100.0, rate_offered=100.0),
        "statistics": statistics,
        "workers": workers,
    }
    return replace(constant_workload(), **{**values, **more})


def compared(outcome, **planned):
    return compared_with_plan({"workloads": [{**PLANNED, **planned}]}, 0, outcome)


def test_a_run_as_planned_has_the_same_figures():
    found = compared(ran())

    assert (found.workers.planned, found.workers.measured) == (1, 2)
    assert found.cost_s.measured == pytest.approx(0.001)
    assert found.service_s.measured == pytest.approx(0.05)
    assert found.users.measured == pytest.approx(5, rel=0.05)
    assert (found.cpu.planned, found.cpu.measured) == (pytest.approx(0.06), AS_PLANNED)
    assert found.differences == ()


@pytest.mark.parametrize(("cpu", "times"), [(0.16, "3.00 times"), (0.03, "40% of the plan")])
def test_another_cost_is_told_with_its_reason(cpu, times):
    (sentence,) = compared(ran(cpu=cpu)).differences

    assert times in sentence
    assert sentence.startswith("an iteration cost ")
    assert "likely because" in sentence


def test_a_cost_below_a_planned_bound_is_not_told():
    bound = {**PLANNED["cost"], "cpu_at_most": True}

    assert compared(ran(cpu=0.03), cost=bound).differences == ()
    (sentence,) = compared(ran(cpu=0.16), cost=bound).differences
    assert "3.00 times the plan" in sentence


def test_less_than_the_factor_is_not_told():
    assert compared(ran(cpu=0.10)).differences == ()
    assert compared(ran(lasts_ms=90)).differences == ()


def test_a_slower_service_has_more_users():
    slower, users = compared(ran(lasts_ms=200)).differences

    assert slower.startswith("an iteration took 200 ms, 4.00 times the plan")
    assert "the service was slower under this load" in slower
    assert users.endswith("likely because they follow the service time")


def test_failed_iterations_are_the_reason_for_other_figures():
    failed = Accounting(planned=1000, ok=500, failed=500)

    found = compared(ran(cpu=0.16, lasts_ms=200, accounting=failed)).differences

    assert "50% of the iterations did not end well, which costs otherwise" in found[0]
    assert "50% of the iterations did not end well" in found[1]


def test_full_workers_are_the_reason_for_a_slow_service():
    found = compared(ran(cpu=0.95, lasts_ms=200)).differences

    assert "worker processes were at their limit: add some" in found[1]
    assert found[-1].startswith("a worker process took 95% of a core at its peak, 6% were planned")


def test_a_cost_that_cannot_be_measured_is_not_told():
    short = Offered(duration_s=0.5, rate_planned=100.0, rate_offered=100.0)

    assert compared(ran(offered=short)).cost_s.measured is None
    assert compared(ran(workers=())).cpu.measured is None
    # a hundredth of a core is as much as a worker varies by itself
    assert compared(ran(cpu=0.012), cost={**PLANNED["cost"], "cpu_s": 0.01}).differences == ()


def test_the_rate_of_a_ramp_is_its_mean_and_that_of_a_closed_load_its_own():
    ramp = [{**LEVEL, "begin": 0, "end": 100}, {**LEVEL, "from_s": 10, "to_s": 20}]
    endless = [{**LEVEL, "to_s": None}]

    # 75/s and 100/s of 1 ms, over two workers
    assert compared(ran(), levels=ramp).cpu.planned == pytest.approx(0.01 + 0.075 / 2)
    assert compared(ran(), levels=endless, open=False).cpu.planned == pytest.approx(0.06)
    assert compared(ran(), levels=ramp, open=False).cpu.planned == pytest.approx(0.06)


@pytest.mark.parametrize("workloads", [[], [3], [{"cost": None}], [{**PLANNED, "users": "many"}]])
def test_a_plan_that_was_changed_is_left_alone(workloads):
    assert compared_with_plan({"workloads": workloads}, 0, ran()) is None


def test_without_a_plan_or_a_load_there_is_nothing_to_compare():
    assert compared_with_plan(None, 0, ran()) is None
    assert compared(ran(begun=False)) is None


def test_a_report_has_both_sides_and_what_differs():
    report = replace(run_report(ran(lasts_ms=200)), plans=(compared(ran(lasts_ms=200)),))
    summary = json.loads(json.dumps(to_json(report)))
    file = io.StringIO()

    render(Report.from_json(summary), Console(file=file, width=200), details=True)

    results_schema.validate(summary)
    plan = summary["workloads"][0]["plan"]
    assert plan["service_s"] == {"planned": 0.05, "measured": pytest.approx(0.2)}
    text = " ".join(file.getvalue().split())
    assert "planned workers 2 (plan 1); CPU per iteration 1.00ms (plan 1.00ms)" in text
    assert "users at once 20.0 (plan 5.00)" in text
    assert "4.00 times the plan" in text
