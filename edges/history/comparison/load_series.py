"""Makes staircases from several runs that differ only in their load: each run is a step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.staircase.staircase import (
    Staircase,
    StaircaseStep,
    staircase_of,
)
from osbench.edges.history.comparison.compared_run import ComparedRun


@dataclass(frozen=True, kw_only=True)
class RunsStaircase:
    """The staircase (throughput and latency by load) of one workload over several runs."""

    task: str
    deployment: str | None
    workload: str
    staircase: Staircase


def staircases_of(runs: Sequence[ComparedRun]) -> list[RunsStaircase]:
    """Return a staircase for each workload of the newest run, if it ran at two loads or more.

    `runs`: same task apart from the load, oldest first; at least one. Runs whose load changed by
    stages are left out.
    """
    newest = runs[-1]
    found = []
    for workload in newest.workloads:
        is_open = newest.workloads[workload].is_open
        staircase = staircase_of(_steps(runs, workload, is_open), is_open=is_open)
        if staircase is not None:
            found.append(
                RunsStaircase(
                    task=str(newest.manifest.get("task", "")),
                    deployment=newest.deployment,
                    workload=workload,
                    staircase=staircase,
                )
            )
    return found


def _steps(runs: Iterable[ComparedRun], workload: str, is_open: bool) -> Iterator[StaircaseStep]:
    for run in runs:
        one = run.workloads.get(workload)
        # a run whose load changed is not a step
        if one is not None and not one.stages:
            step = _step(run.run_id, one, is_open)
            if step is not None:
                yield step


def _step(run_id: str, one: WorkloadReport, is_open: bool) -> StaircaseStep | None:
    offered, throughput = one.offered, one.throughput
    # an open load has no users, and a closed one no rate
    load = offered.rate_planned if is_open else offered.concurrency
    if not load or not throughput.ok_per_s:
        return None
    times, service = one.times("response" if is_open else "service"), one.latency.service
    busy_s = service.ok.sum_s + service.failed.sum_s + service.timed_out.sum_s
    return StaircaseStep(
        load=float(load),
        throughput=throughput.ok_per_s,
        p50_s=times.p50,
        p95_s=times.p95,
        p99_s=times.p99,
        concurrency=busy_s / throughput.span_s if is_open else float(load),
        count=times.count,
        failed=one.bad,
        name=run_id,
    )
