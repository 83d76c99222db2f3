"""Failures around the load are in the notes of a run and decide its exit code."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from helpers.sample_reports import constant_workload, restart_hook
from osbench.coordinator.report.builder import OutcomeBuilder, RunEnd
from osbench.coordinator.report.run_outcome import RunOutcome
from osbench.coordinator.results.accounting.totals import Accounting

#: The end of a run that nobody disturbed.
ENDED = RunEnd()


def built(end: RunEnd = ENDED, /, **changes: Any) -> RunOutcome:
    """The outcome of a run of one workload that was well but for the changes."""
    task: Any = SimpleNamespace(
        title="T", description="", workloads=[SimpleNamespace(name="Dummy.dummy")]
    )
    builder = OutcomeBuilder(run_id="r", task=task, tags=(), started_at=0.0, lag_limit_s=60.0)
    return builder.build([replace(constant_workload(), **changes)], (), end)


def test_a_hook_that_failed_is_exit_code_5_and_a_note() -> None:
    well, failed = built(), built(hooks=(restart_hook(),))

    assert (well.exit_code, failed.exit_code) == (0, 5)
    (said,) = set(failed.notes) - set(well.notes)
    assert said.startswith("Dummy.dummy: hook sys_call: ")


def test_iterations_that_an_interrupted_run_abandons_are_lost_with_no_worker() -> None:
    lost = Accounting(planned=9, ok=3, lost=6)

    (workload,) = built(accounting=lost).workloads
    assert [one.cause for one in workload.bounds] == ["worker_lost"]
    (workload,) = built(RunEnd(interrupted=True), accounting=lost).workloads
    assert workload.bounds == ()
