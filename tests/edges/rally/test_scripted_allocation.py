"""Users of a load that the runner's own code starts: one worker has them until the end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from helpers.loads import workload
from helpers.memberships import handle
from osbench.common.plugin.scripted_runner import ScriptedRunner
from osbench.common.values.outcomes import LifeEvent
from osbench.coordinator.load.run.workload.workload_run import WorkloadRun
from osbench.edges.rally.scripted_allocation import ScriptedUserAllocation


def begun(*workers: Any) -> WorkloadRun:
    """A load under way, on these workers."""
    one = workload(ScriptedRunner({}), SimpleNamespace(look=lambda *_: None))
    one.dispatcher.place = lambda *_: None  # type: ignore[method-assign]
    one.services.clock.refresh = lambda _: None
    serve(one, *workers)
    one.start(90.0)
    return one


def serve(one: WorkloadRun, *workers: Any) -> None:
    pool = one.services.pool
    pool.serving, pool.present = lambda _: list(workers), list(workers)


def users_end(one: WorkloadRun, kind: LifeEvent, texts: Any = None) -> None:
    """The code has ended, and its worker says so."""
    one.results.statistics.lives.add([(kind, 1, 5, 1 if texts else 0)], {1: texts})


def stops(one: WorkloadRun) -> list[str]:
    return [record["why"] for record in one.services.journal if record["do"] == "stop"]


def noted(one: WorkloadRun) -> list[str]:
    """Why the load was stopped, as its rules note it."""
    found: list[str] = []
    one.rules._note = lambda why, _: found.append(why)
    return found


def test_the_worker_with_most_users_has_all_of_its_own_and_the_others_none():
    small, large = handle("w1", capacity=4), handle("w2", capacity=8)

    one = begun(small, large)

    assert isinstance(one.allocation, ScriptedUserAllocation)
    assert (small.user_limit, large.user_limit) == (0, 8)
    assert one.results.users.count(large.mid) == 8


def test_another_worker_gets_no_users_though_it_has_more():
    first = handle("w1", capacity=4)
    one = begun(first)

    second = handle("w2", capacity=8)
    serve(one, first, second)
    one.run_pass(poll=False)

    assert (first.user_limit, second.user_limit) == (4, 0)


def test_a_load_whose_worker_is_gone_ends_and_is_begun_nowhere_else():
    first, second = handle("w1", capacity=8), handle("w2", capacity=8)
    one = begun(first, second)
    why = noted(one)

    serve(one, second)
    one.run_pass(poll=False)
    one.run_pass(poll=False)

    assert second.user_limit == 0
    assert why == ["runner_lost"]
    assert one.rules.reached(one.elapsed())


def test_a_worker_that_does_not_follow_yet_is_waited_for():
    first, second = handle("w1", capacity=8), handle("w2", capacity=8)
    one = begun(first, second)
    why = noted(one)

    serve(one, second)
    one.services.pool.unheard = [first]
    one.run_pass(poll=False)

    assert (second.user_limit, why) == (0, [])
    assert not one.rules.reached(one.elapsed())


def test_the_load_is_over_when_the_code_has_returned():
    first = handle("w1", capacity=8)
    one = begun(first)
    why = noted(one)

    users_end(one, LifeEvent.SCRIPT_ENDED)
    one.run_pass(poll=False)

    assert (first.user_limit, why) == (0, [])
    assert one.ending.finished()
    # it left after that
    serve(one)
    one.run_pass(poll=False)
    assert not why


def test_code_that_failed_ends_the_load_with_a_verdict():
    one = begun(handle("w1", capacity=8))
    why = noted(one)

    users_end(one, LifeEvent.SCRIPT_FAILED, ("ValueError", "no sixth\nmore", "tb"))
    one.run_pass(poll=False)
    one.run_pass(poll=False)
    one.results.ledger.close(None)

    assert why == ["runner_failed"]
    failed = [verdict for verdict in one.results.judge() if verdict.criterion == "runner"]
    assert [verdict.detail for verdict in failed] == ["ValueError: no sixth"]


@pytest.mark.parametrize("kind", [LifeEvent.SCRIPT_ENDED, LifeEvent.SCRIPT_FAILED])
def test_the_end_of_the_code_is_no_life_of_a_virtual_user(kind):
    one = begun(handle("w1", capacity=8))

    users_end(one, kind, ("ValueError", "no sixth", "tb"))

    assert one.results.statistics.lives.to_dict() is None


def test_the_users_of_the_report_are_the_most_that_ran_at_once():
    one = begun(handle("w1", capacity=8))

    offered = one.view.offered()

    assert (offered.concurrency, offered.concurrency_held) == (1, None)
    assert list(one.allocation.asked) == []
