"""When the load of a workload ends, and why it is said to have been cut short."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from osbench.common.plugin.runner import Step
from osbench.common.plugin.sla import Verdict
from osbench.common.values.outcomes import LifeEvent
from osbench.coordinator.load.run.status import RunStatus
from osbench.coordinator.load.run.workload.stop_rules import StopRules
from osbench.coordinator.report.run_outcome import Breach
from osbench.coordinator.results.accounting.workload_users import UserLives

FAILED = Verdict(criterion="failure_rate", success=False, detail="6 of 10 failed")


class Watched(StopRules):
    """Rules, and why and when they have stopped the load."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.stops: list[tuple[str, float]] = []
        super().__init__(*given, lambda *stop: self.stops.append(stop), **named)


def rules(
    status: RunStatus,
    *,
    abort: bool = False,
    breach: Any = None,
    failing: Any = (),
    rule: Any = None,
) -> Watched:
    sla = SimpleNamespace(breach=lambda *_: breach, failing=lambda _: failing)
    results: Any = SimpleNamespace(statistics=None, sla=sla, abort=rule, trials=None)
    return Watched(status, results, "A.b", abort_on_sla=abort)


def test_the_stop_instant_is_the_runners_and_never_moves_back():
    one = rules(RunStatus())

    one.apply(Step(stop_s=5.0), 1.0)
    one.apply(Step(stop_s=8.0), 2.0)

    assert (one.stop_s, one.stops) == (5.0, [])
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

    assert (one.stop_s, one.stops) == (2.0, [("interrupted", 2.0)])


@pytest.mark.parametrize("step", [Step(done=True), Step(stop_s=1.0)])
def test_a_load_that_was_over_is_not_cut_short(step):
    status = RunStatus()
    one = rules(status)
    one.apply(Step(stop_s=1.0), 0.5)
    status.interruption.level = 1

    one.apply(step, 2.0)

    assert one.stops == []


def test_an_sla_that_cannot_be_met_any_more_stops_all_load_where_that_was_asked():
    status, calm = RunStatus(), RunStatus()

    rules(status, abort=True, breach=FAILED).watch_sla(10)
    rules(calm, breach=FAILED).watch_sla(10)

    assert str(status.breach) == "A.b: failure_rate: 6 of 10 failed"
    assert status.stopped_for == "sla"
    assert calm.breach is None


def test_the_first_breach_stays_the_reason():
    status = RunStatus(breach=Breach("C.d", "throughput", "too low"))

    rules(status, abort=True, breach=FAILED).watch_sla(10)

    assert str(status.breach) == "C.d: throughput: too low"


def test_an_sla_that_fails_at_the_end_of_a_workload_stops_the_next_ones():
    status = RunStatus()

    rules(status, abort=True, failing=(FAILED,)).judge_end()

    assert status.stopped_for == "sla"


def test_an_interrupted_run_judges_no_sla_at_the_end():
    status = RunStatus()
    status.interruption.level = 1

    rules(status, abort=True, failing=(FAILED,)).judge_end()

    assert status.breach is None


class Rule:
    """Ends the load once it was asked twice."""

    def __init__(self) -> None:
        self.asked = 0
        self.reason = ""

    def watch(self) -> bool:
        """Count."""
        self.asked += 1
        self.reason = "all failed" if self.asked == 2 else ""
        return bool(self.reason)


def test_the_workloads_own_rule_ends_its_load_and_no_others():
    status = RunStatus()
    one = rules(status, rule=Rule())

    for elapsed_s in (1.0, 2.0, 3.0):
        one.watch_abort(elapsed_s)
        one.apply(Step(stop_s=60.0), elapsed_s)

    assert (one.stop_s, one.stops) == (2.0, [("abort", 2.0)])
    assert status.stopped_for is None


def test_the_rule_is_not_asked_all_the_time():
    rule = Rule()
    one = rules(RunStatus(), rule=rule)

    one.watch_abort(1.0)
    one.watch_abort(1.1)

    assert rule.asked == 1


def test_a_load_that_no_user_could_begin_with_is_ended():
    one = rules(RunStatus())
    lives = UserLives()
    statistics: Any = SimpleNamespace(lives=lives)
    one._results.statistics = statistics
    one.watch_users(1000.0)
    one.apply(Step(), 1000.0)
    assert one.stop_s is None

    texts = {1: ("LoginError", "no such user\nmore", "tb")}
    lives.add([(LifeEvent.NOT_BEGUN, 1, 5, 1)], texts)
    one.watch_users(59.0)
    one.apply(Step(), 59.0)
    assert one.stop_s is None
    one.watch_users(60.5)
    one.apply(Step(), 60.5)

    assert (one.stop_s, one.stops) == (60.5, [("no_users", 60.5)])
    assert lives.first_error == "LoginError: no such user"


def test_a_load_goes_on_where_one_user_began():
    one = rules(RunStatus())
    lives = UserLives()
    one._results.statistics = SimpleNamespace(lives=lives)  # type: ignore[assignment]
    lives.add([(LifeEvent.NOT_BEGUN, 1, 5, 1), (LifeEvent.BEGUN, 1, 5, 0)], {})

    one.watch_users(600.0)
    one.apply(Step(), 600.0)

    assert one.stop_s is None


def test_a_rule_that_is_broken_after_the_stop_has_aborted_nothing(caplog):
    one = rules(RunStatus(), rule=Rule())

    one.watch_abort(1.0)
    one.apply(Step(stop_s=1.5), 1.0)
    one.watch_abort(2.0)
    one.apply(Step(stop_s=1.5), 2.0)

    assert (one.stop_s, one.stops, caplog.text) == (1.5, [], "")
