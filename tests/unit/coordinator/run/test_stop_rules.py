"""When the load of a workload ends, and why it is said to have been cut short."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from osbench.common.plugin.runner import Step
from osbench.common.plugin.sla import Verdict
from osbench.coordinator.run.status import RunStatus
from osbench.coordinator.run.stop_rules import StopRules

FAILED = Verdict(criterion="failure_rate", success=False, detail="6 of 10 failed")


def rules(
    status: RunStatus, *, abort: bool = False, breach: Any = None, failing: Any = ()
) -> StopRules:
    sla = SimpleNamespace(breach=lambda *_: breach, failing=lambda _: failing)
    results: Any = SimpleNamespace(statistics=None, sla=sla)
    return StopRules(status, results, "A.b", abort_on_sla=abort)


def test_the_stop_instant_is_the_runners_and_never_moves_back():
    one = rules(RunStatus())

    one.apply(Step(stop_s=5.0), 1.0)
    one.apply(Step(stop_s=8.0), 2.0)

    assert (one.stop_s, one.cut_short) == (5.0, None)
    assert not one.reached(4.9)
    assert one.reached(5.0)
    assert (one.within(4.0), one.within(6.0)) == (4.0, 5.0)


def test_an_interruption_stops_the_load_now_and_cuts_it_short():
    status = RunStatus()
    one = rules(status)
    one.apply(Step(stop_s=5.0), 1.0)
    status.interruption.level = 1

    one.apply(Step(stop_s=5.0), 2.0)
    one.apply(Step(stop_s=5.0), 3.0)

    assert (one.stop_s, one.cut_short) == (2.0, "interrupted")


@pytest.mark.parametrize("step", [Step(done=True), Step(stop_s=1.0)])
def test_a_load_that_was_over_is_not_cut_short(step):
    status = RunStatus()
    one = rules(status)
    one.apply(Step(stop_s=1.0), 0.5)
    status.interruption.level = 1

    one.apply(step, 2.0)

    assert one.cut_short is None


def test_an_sla_that_cannot_be_met_any_more_stops_all_load_where_that_was_asked():
    status, calm = RunStatus(), RunStatus()

    rules(status, abort=True, breach=FAILED).watch_sla(10)
    rules(calm, breach=FAILED).watch_sla(10)

    assert status.breach == "A.b: failure_rate: 6 of 10 failed"
    assert status.stopped_for == "sla"
    assert calm.breach == ""


def test_the_first_breach_stays_the_reason():
    status = RunStatus(breach="C.d: throughput: too low")

    rules(status, abort=True, breach=FAILED).watch_sla(10)

    assert status.breach == "C.d: throughput: too low"


def test_an_sla_that_fails_at_the_end_of_a_workload_stops_the_next_ones():
    status = RunStatus()

    rules(status, abort=True, failing=(FAILED,)).judge_end(complete=True)

    assert status.stopped_for == "sla"


def test_an_interrupted_run_judges_no_sla_at_the_end():
    status = RunStatus()
    status.interruption.level = 1

    rules(status, abort=True, failing=(FAILED,)).judge_end(complete=False)

    assert status.breach == ""


def test_a_stop_after_the_last_start_has_cut_nothing_short():
    status = RunStatus()
    one = rules(status)
    status.interruption.level = 1
    one.apply(Step(), 2.0)
    assert one.cut_short == "interrupted"

    one.judge_end(complete=True)

    assert one.cut_short is None
