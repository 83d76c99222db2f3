"""Cases of `make truth` that are the same on a busy machine: planted causes and known values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from truth import counts, endings, limits, wire
from truth.case import Case, examine, judge
from truth.planting import play

pytestmark = pytest.mark.functional

#: Workloads of one task, all of which end with exit code 0.
TOGETHER = (
    limits.max_concurrency(seconds=2),
    counts.throughput(sleep_s=0.5, least=0.1),
    counts.one_iteration(),
    counts.ramp(),
    counts.long_warm_up(),
)
#: The same, with exit code 5.
BESIDE = (endings.export_fails(), endings.hook_fails())
ALONE = (
    limits.open_files(),
    wire.endless_answers(),
    endings.context_fails(),
    endings.interrupted(),
    endings.warm_up_fails(),
    endings.report_refused(),
    endings.directory_removed(),
)


@pytest.mark.parametrize("cases", [TOGETHER, BESIDE])
def test_what_was_planted_in_the_workloads_of_one_task_is_what_they_print(
    cases: tuple[Case, ...],
) -> None:
    workloads = [workload for case in cases for workload in case.planting.workloads]
    # less than the backlog of the first workload, more than a busy machine is late
    config = {"benchmark": {"max_lag_s": 5}}
    planting = replace(cases[0].planting, workloads=workloads, config=config)

    seen = play(planting, lenient=True)

    rows = [judge(case, replace(seen, at=at), lenient=True) for at, case in enumerate(cases)]
    assert not [f"{row.case.name}: {row.printed}" for row in rows if not row.is_right]


@pytest.mark.parametrize("case", ALONE, ids=lambda case: case.name)
def test_what_was_planted_is_what_a_run_prints(case: Case) -> None:
    row = examine(case, lenient=True)

    assert row.is_right, row.printed
