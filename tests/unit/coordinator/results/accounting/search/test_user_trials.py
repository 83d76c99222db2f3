"""Trials of virtual users: what fails one, what only disturbs it, and how it is said."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.result_rows import block, row
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.columns import Columns
from osbench.common.task import Named
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.load_change import LoadChange
from osbench.coordinator.results.accounting.search.trials import TrialFigures, Trials
from osbench.edges.capacity.search import Search

SLAS = (
    Named(name="failure_rate", config={"max": 0}),
    Named(name="percentile", config={"p": 95, "max_s": 0.2, "of": "response"}),
)


def trials(**config: Any) -> Trials:
    runner = Search({"users": {"low": 4, "high": 64}, "hold": 10, "settle": 2, **config})
    return Trials(runner, lambda: SlaEvaluator(SLAS, Plugins()), 0.1)


def change(at_s: float, level: float, **more: Any) -> LoadChange:
    return LoadChange(request="s", at_s=at_s, level=level, **more)


def rows(due_s: list[float], took: int = 50, late: int = 0) -> Columns:
    """Iterations whose users were free at instants, began so late, and took so many ms."""
    made = []
    for number, at_s in enumerate(due_s, 1):
        due = round(at_s * 1000)
        made.append(row(number, due=due, started=due + late, ended=due + late + took))
    return block(*made)


def one_trial(found: Trials, *columns: Columns, waiting: int = 0, **end: Any) -> TrialFigures:
    """A trial of 4 users from 1 s on, judged from 3 s to 13 s, that is over."""
    found.change(change(1.0, 4.0))
    for some in columns:
        found.add(some, "w", {}, 0.0)
    found.change(change(13.0, 0.0, **end))
    found.change(change(14.0, 8.0, waiting=waiting))
    return next(iter(found.figures()))


def test_users_that_meet_the_criteria_are_sustained():
    found = trials()

    figures = one_trial(found, rows([3.5, 4.0, 12.0]))

    assert (figures.rate, figures.held, figures.cause) == (4, True, "")
    assert found.progress == "trial 2 at 8 users"


def test_a_service_that_is_slow_breaks_a_trial_and_the_verdict_has_its_users():
    found = trials()
    one_trial(found, rows([3.5, 4.0]))
    found.add(rows([16.5], took=900), "w", {}, 0.0)
    found.change(change(26.0, 0.0))
    found.change(change(27.0, 0.0, last=True))

    verdict = found.verdict()

    assert found.outcome().capacity.unit == "users"
    assert "at 8 users percentile: p95 of response time 900ms" in verdict.detail
    assert "/s" not in verdict.detail


def test_users_that_the_workers_lack_make_the_generator_the_limit():
    found = trials()

    figures = one_trial(found, rows([3.5]), missing=1)

    assert (figures.held, figures.cause) == (False, "generator")
    assert figures.detail == "the workers lacked 1 virtual user"
    limit = found.outcome().limit
    assert limit == "at 4 users the workers lacked 1 virtual user: add workers, or virtual users"


def test_criteria_that_fewer_users_break_are_not_met_by_more():
    figures = one_trial(trials(), rows([3.5], took=900), missing=1)

    assert figures.cause == "sla"
    assert figures.detail.endswith("; and the workers lacked 1 virtual user")


def test_a_user_that_had_to_wait_for_work_is_the_generators_and_never_the_services():
    figures = one_trial(trials(), rows([3.5, 4.0], late=400))

    assert (figures.held, figures.cause) == (False, "generator")
    assert figures.detail == "p99 start lag was 400ms"


def test_users_that_cannot_begin_break_a_trial_whatever_the_others_do():
    figures = one_trial(trials(), rows([3.5]), waiting=3)

    assert (figures.held, figures.cause) == (False, "sla")
    assert figures.detail.startswith("3 of its users had not begun")


def test_a_trial_shorter_than_an_iteration_says_what_to_do():
    figures = one_trial(trials(), rows([1.2], took=15_000))

    assert figures.cause == "sla"
    assert figures.detail == "no iteration has ended: hold longer than an iteration takes"


def test_a_trial_that_lacked_a_worker_for_a_while_is_made_again():
    found = trials()
    one_trial(found, rows([3.5]), interrupted=True)

    assert found.disturbed == 1
    assert found.runner.next_rate(found.made()) == 4


def test_failures_that_more_iterations_could_outweigh_do_not_end_a_trial_early():
    found = trials()
    found.change(change(1.0, 4.0))
    found.add(rows([3.5, 4.0], took=900), "w", {}, 0.0)

    # nobody knows how many iterations users will make
    assert not found.is_lost(5.0)


@pytest.mark.parametrize("field", ["missing", "waiting"])
def test_what_a_trial_lacked_survives_the_journal(field: str) -> None:
    made = change(1.0, 0.0, **{field: 3})

    record = made.to_record(0)
    old = {key: value for key, value in record.items() if key not in ("missing", "waiting")}

    assert LoadChange.of(record) == made
    assert (LoadChange.of(old).missing, LoadChange.of(old).waiting) == (0, 0)
