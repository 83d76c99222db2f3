"""Workloads with known numbers whose load rises, or searches: what few runs have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgpack
import numpy as np

from helpers.planted_counters import counters_of, queue, share
from helpers.result_rows import row_of
from helpers.sample_reports import MS, constant_workload, rps_workload, run_report, worker
from osbench.common.plugin.runner import Capacity
from osbench.common.plugin.sla import Verdict
from osbench.common.protocol.columns import decode_rows, encode_rows
from osbench.common.task import Named
from osbench.common.values.outcomes import LifeEvent, Outcome
from osbench.coordinator.report.model.plan_figures import PlanComparison, PlannedFigure
from osbench.coordinator.report.run_outcome import RunOutcome
from osbench.coordinator.results.accounting.core_use import CpuProfile
from osbench.coordinator.results.accounting.drill_figures import LeftFigures, LeftKind
from osbench.coordinator.results.accounting.drill_statistics import DrillStatistics
from osbench.coordinator.results.accounting.marks import Mark
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.search.trials import SearchOutcome, TrialFigures
from osbench.coordinator.results.accounting.stage_statistics import StageFigures
from osbench.coordinator.results.accounting.totals import (
    Accounting,
    Bound,
    Offered,
    Tracing,
    Warmup,
)
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics
from osbench.edges.traces.counters.counter_series import WorkloadCounters

#: Iterations of a stage, and seconds of one.
_ITERATIONS, _STAGE_S = 400, 10.0


def stages_workload() -> WorkloadOutcome:
    """A closed load of 2, 4 and 8 virtual users, of whom one could not begin."""
    return WorkloadOutcome(
        name="Shop.buy",
        scenario="Shop.buy",
        title="More and more users",
        subtask_description="until it hurts",
        subtask_tags=("shop",),
        position=1,
        runner=Named(name="stages", config={"stages": [{"users": 2, "duration": 10}]}),
        accounting=Accounting(planned=1300, ok=1200, not_started=100),
        warmup=Warmup(seconds=1.5, left_out=12),
        offered=Offered(
            duration_s=30.25, concurrency=8, concurrency_held=0.87, waited_s=1.2, cut_short="sla"
        ),
        tracing=Tracing(state="no key"),
        statistics=_stages_statistics(),
        verdicts=(
            Verdict(criterion="failure_rate", success=True, detail="0 of 1200 failed"),
            Verdict(criterion="Shop.queue", success=False, detail="[b]12 of 10 wait"),
        ),
        sla_sources=("native", "rally"),
        workers=(
            worker("a-1", "node1", cpu_mean=0.31, cpu_max=0.95, cores=4, cores_used=1.25),
            worker("b-1", "node2", cpu_mean=0.28, cpu_max=0.4, waiting=0.02, lost=True),
        ),
        cpu=CpuProfile(),
        asked=((0.0, 2.0), (10.0, 2.0), (10.0, 4.0), (20.0, 4.0), (20.0, 8.0), (30.0, 8.0)),
        stages=tuple(_stage(number, 2.0 * 2**number) for number in range(3)),
        marks=(
            Mark(kind="warmup", from_s=0.0, to_s=1.5, label="warm-up", text="the first 1.5 s"),
            Mark(kind="loss", from_s=22.0, to_s=22.0, label="b-1 lost", text="b-1 was lost"),
        ),
        t0_at=1775044801.25,
        elapsed_s=30.25,
        counters=_counters(),
        bounds=(
            Bound(cause="lost_workers", fault="generator", sentence="1 of 2 workers was lost"),
            Bound(cause="service", fault="service", sentence="[b]the service was the limit"),
        ),
    )


def _counters() -> WorkloadCounters:
    """Counters of which one is nearly full in the last stage."""
    steps = np.repeat([0.4, 0.7, 0.96], 10)
    return counters_of(
        share("memory", "db1", 0.5 + steps / 100),
        share("CPU", "[b]db1", steps),
        queue("messages ready", "mq1", 400 * steps**4),
        queue("IO pressure", "db1", steps / 100, unit="share"),
    )


def _stage(number: int, users: float) -> StageFigures:
    rate = 40.0 * (1 - 0.5 ** (number + 1))
    return StageFigures(
        from_s=number * _STAGE_S,
        to_s=(number + 1) * _STAGE_S,
        begin=users,
        end=users,
        ok=_ITERATIONS,
        failed=number,
        timed_out=0,
        dropped=0,
        ok_per_s=rate,
        ended_per_s=rate,
        in_flight=users,
        p50_s=0.02 * (number + 1),
        p95_s=0.03 * (number + 1) ** 2,
        p99_s=None,
    )


def _stages_statistics() -> WorkloadStatistics:
    made = WorkloadStatistics(is_open=False, planned_s=30.0)
    checks = msgpack.packb({"kind": "checks", "item": {"paid": [1, 0], "shipped": [9, 1]}})
    rows: list[tuple[Any, ...]] = []
    for number in range(1, 3 * _ITERATIONS + 1):
        begin = number * 25 * MS
        extra = (b"", [checks], b"") if number % 7 == 0 else None
        # no order in it that an eye could see
        end = begin + 10 * MS + number * 7919 % 1000 * MS // 25
        rows.append(row_of(number, Outcome.OK, begin, begin, end, 0, 0, (), extra))
    made.add(decode_rows(encode_rows(rows, (), 0)), worker="a-1")
    texts = {1: ("Refused", "no [b]account[/b] left\nnor money", "")}
    begun = [(LifeEvent.BEGUN, number, number * 12 * MS, 0) for number in range(1, 8)]
    made.lives.add([*begun, (LifeEvent.NOT_BEGUN, 8, 5 * MS, 1)], texts)
    made.lives.add([(LifeEvent.ENDED, 1, 3 * MS, 0), (LifeEvent.REPLACED, 2, 0, 0)], texts)
    return made


def search_workload() -> WorkloadOutcome:
    """A search that has found between which rates the service gives way."""
    trials = tuple(
        _trial(number, rate, cause)
        for number, (rate, cause) in enumerate(
            ((20.0, ""), (40.0, ""), (60.0, "disturbed"), (80.0, "sla"), (50.0, ""), (60.0, "sla"))
        )
    )
    found = Capacity(kind="found", rate=55.0, low=50.5, high=59.25, held=50.0, broke=60.0)
    return replace(
        constant_workload(),
        name="the most",
        scenario="Shop.search",
        source="rally",
        title="How much it bears",
        position=2,
        runner=Named(name="capacity", config={"low": 20, "high": 80}),
        accounting=Accounting(planned=900, ok=890, failed=10),
        offered=Offered(duration_s=60.0, rate_planned=50.0, rate_offered=49.5),
        search=SearchOutcome(
            capacity=found,
            trials=trials,
            limit="",
            grown=(("find", 0.01, 0.03),),
            grown_spans=(("nova.select", 0.004, 0.02),),
            traces="at 60/s a trace waits 16 ms longer in nova",
        ),
    )


def _trial(number: int, rate: float, cause: str) -> TrialFigures:
    return TrialFigures(
        rate=rate,
        held=not cause,
        cause=cause,
        detail="percentile: p95 of response time 310ms, allowed 200ms" if cause == "sla" else "",
        from_s=10.0 * number + 2,
        to_s=10.0 * number + 10,
        ok=int(rate * 8) - number,
        failed=number,
        timed_out=0,
        dropped=0,
        ok_per_s=min(rate, 55.0),
        p50_s=rate / 1000,
        p95_s=rate / 400,
        p99_s=rate / 200,
        concurrency=rate * rate / 1000,
        actions={"find": rate / 2000},
    )


def drill_workload() -> WorkloadOutcome:
    """An open load whose service was half gone from the tenth second to the sixteenth."""
    drill = DrillStatistics({"fault": "stop [b]one[/b]", "after": "start one"}, warmup_s=1.0)
    made = WorkloadStatistics(is_open=True, planned_s=30.0, drill=drill)
    for phase, first, end in (("", 20, 200), ("fault", 200, 320), ("after", 320, 600)):
        if phase:
            drill.begin(phase, first * 0.05)
            drill.end_hook(phase, "")
        rows = []
        for number in range(first, end):
            due = number * 50 * MS
            bad = 200 <= number < 330 and number % 2 == 0
            took = 10 * MS + number * 7919 % 1000 * MS // 50
            outcome = Outcome.FAILED if bad else Outcome.OK
            rows.append(row_of(number, outcome, due, due, due + took, 0, int(bad), (), None))
        made.add(decode_rows(encode_rows(rows, (), 0)), worker="a-1")
    states = {"ERROR": 6, "BUILD": 1}
    servers = LeftKind(kind="servers", in_error=6, changing=1, states=states)
    left = LeftFigures(kinds=(servers, LeftKind(kind="floating ips")), waited_s=61.0)
    drill.leave(
        left,
        [
            [number * 50 * MS, number * 50 * MS + 20 * MS, Outcome.FAILED, number, 0, 1]
            for number in (202, 204, 206, 240, 300, 322)
        ],
    )
    return replace(
        constant_workload(),
        name="a drill",
        scenario="Shop.look",
        title="One of two fails",
        position=3,
        runner=Named(name="rps", config={"rps": 20, "times": 600}),
        accounting=Accounting(planned=600, ok=533, failed=65, not_started=2),
        warmup=Warmup(seconds=1.0, left_out=18),
        offered=Offered(duration_s=30.0, rate_planned=20.0, rate_offered=20.0),
        statistics=made,
        verdicts=(Verdict(criterion="drill", success=False, detail="65 iterations, allowed 50"),),
        sla_sources=("native",),
        hooks=(),
        marks=(Mark(kind="phase", from_s=10.0, to_s=16.0, label="", text="The fault."),),
    )


def failed_workload() -> WorkloadOutcome:
    """A workload that could not begin."""
    return replace(
        constant_workload(),
        position=4,
        begun=False,
        error="users@openstack: Conflict: the name [b]x[/b] is taken",
        accounting=Accounting(planned=8, not_started=8),
        statistics=WorkloadStatistics(),
        verdicts=(),
    )


def plan_of(*, measured: bool = True) -> PlanComparison:
    """What `plan` said of the load of stages, beside what happened."""

    def figure(planned: float, found: float) -> PlannedFigure:
        return PlannedFigure(planned=planned, measured=found if measured else None)

    return PlanComparison(
        workers=figure(2, 2),
        cost_s=figure(0.001, 0.0014),
        service_s=figure(0.02, 0.055),
        users=figure(8, 7.5),
        cpu=figure(0.3, 0.295),
        differences=("an iteration took 55 ms, 2.75 times the plan",),
    )


def all_kinds() -> RunOutcome:
    """A run whose workloads have between them all that a report can show."""
    workloads: Sequence[WorkloadOutcome] = (
        rps_workload(),
        stages_workload(),
        search_workload(),
        drill_workload(),
        failed_workload(),
    )
    report = run_report(*workloads, exit_code=3, notes=("Shop.buy: 1 of 2 workers was lost",))
    return replace(report, plans=(None, plan_of(), None, None, None))
