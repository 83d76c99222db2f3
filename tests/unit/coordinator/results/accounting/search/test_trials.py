"""Trials of a search: which iterations count for each, and why a rate did not hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from helpers.result_rows import MS, block, row
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.runner import Trial
from osbench.common.protocol.columns import Columns
from osbench.common.task import Named
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.load_change import LoadChange
from osbench.coordinator.results.accounting.search.trials import TrialFigures, Trials
from osbench.edges.capacity.search import Search

CONFIG = {"low": 10, "high": 100, "hold": 10, "settle": 2}
SLAS = (
    Named(name="failure_rate", config={"max": 0}),
    Named(name="percentile", config={"p": 95, "max_s": 0.2, "of": "response"}),
)
NAMES = ("buy", "look")


def trials(*, slas: tuple[Named, ...] = SLAS, lag_limit_s: float = 0.1) -> Trials:
    plugins = Plugins()
    return Trials(Search(CONFIG), lambda: SlaEvaluator(slas, plugins), lag_limit_s)


def change(at_s: float, level: float, **more: Any) -> LoadChange:
    return LoadChange(request="s", at_s=at_s, level=level, **more)


def rows(due_s: list[float], took: int = 50, **more: Any) -> Columns:
    """Iterations that were due at instants and took so many milliseconds."""
    made = []
    for number, at_s in enumerate(due_s, 1):
        due = round(at_s * 1000)
        times = {"due": due, "started": due + 1, "ended": due + took} | more
        made.append(row(number, **times))
    return block(*made)


def one_trial(*columns: Columns, texts: Any = None, **more: Any) -> TrialFigures:
    """A trial at 10/s from 1 s on, judged from 3 s to 13 s, that is over."""
    found = trials(**more)
    found.change(change(1.0, 10.0))
    for some in columns:
        found.add(some, "w", texts or {}, 0.0)
    found.change(change(13.0, 0.0))
    found.change(change(14.0, 20.0))
    (figures,) = found.figures()
    return figures


def test_only_iterations_that_were_due_while_it_was_judged_count():
    figures = one_trial(rows([1.0, 2.999, 3.0, 12.9, 13.0, 14.5]))

    assert (figures.rate, figures.from_s, figures.to_s) == (10, 3, 13)
    # one was due before, and ended meanwhile
    assert (figures.ok, figures.ok_per_s) == (2, pytest.approx(0.3))
    assert figures.p95_s == pytest.approx(0.05, rel=0.01)
    assert figures.concurrency == pytest.approx(3 * 0.049 / 10, rel=0.01)
    assert (figures.held, figures.cause, figures.detail) == (True, "", "")


def test_rows_that_come_late_count_for_their_own_trial():
    found = trials()
    found.change(change(1.0, 10.0))
    found.change(change(13.0, 0.0))
    found.change(change(14.0, 20.0))
    found.add(rows([5.0, 17.0]), "w", {}, 0.0)
    found.add(rows([6.0]), "w", {}, 0.0)
    found.change(change(26.0, 0.0))
    found.change(change(27.0, 0.0, last=True))

    assert [(one.rate, one.ok) for one in found.figures()] == [(10, 2), (20, 1)]


def test_a_criterion_that_is_not_met_breaks_a_trial_and_names_the_error():
    slow = one_trial(rows([4.0, 5.0], took=500))
    failed = one_trial(
        rows([4.0, 5.0], outcome=Outcome.FAILED, failure=1), texts={1: ("IOError", "gone", "")}
    )

    assert (slow.held, slow.cause) == (False, "sla")
    assert slow.detail.startswith("percentile: p95 of response time 500ms, allowed 200ms")
    assert failed.detail.startswith("failure_rate: 2 of 2 iterations failed: 100 %")
    assert failed.detail.endswith("(IOError: gone)")


@pytest.mark.parametrize(
    ("dropped", "cause", "said"),
    [
        (Outcome.DROPPED_CAPACITY, "generator", "could not be started in time"),
        (Outcome.DROPPED_LATE, "generator", "could not be started in time"),
        (Outcome.DROPPED_MAX_CONCURRENCY, "max_concurrency", "were dropped for max_concurrency"),
    ],
)
def test_a_load_that_was_not_the_one_asked_for_breaks_a_trial(dropped, cause, said):
    figures = one_trial(rows([4.0, 5.0]), rows([6.0], outcome=dropped))

    assert (figures.held, figures.cause) == (False, cause)
    assert figures.detail == f"1 of 3 arrivals {said}"
    assert figures.dropped == 1


def test_late_starts_break_a_trial():
    late = one_trial(rows([4.0, 5.0], started=6_000, ended=6_010), lag_limit_s=0.1, slas=SLAS[:1])

    assert (late.cause, late.detail) == ("generator", "p99 start lag was 2.00s")


def test_a_criterion_that_late_starts_may_have_broken_says_so_too():
    late = one_trial(rows([4.0, 5.0], started=6_000, ended=6_010), lag_limit_s=0.1)

    assert late.cause == "sla"
    assert late.detail.startswith("percentile: p95 of response time 2.01s, allowed 200ms")
    assert late.detail.endswith("; and p99 start lag was 2.00s")


@pytest.mark.parametrize("gone", [Outcome.DROPPED_WORKER_LOST, Outcome.DROPPED_COORDINATOR_GONE])
def test_a_trial_without_a_worker_says_nothing_and_is_made_again(gone):
    found = trials()
    found.change(change(1.0, 10.0))
    found.add(rows([4.0]), "w", {}, 0.0)
    found.add(rows([5.0], outcome=gone), "w", {}, 0.0)
    found.change(change(13.0, 0.0))

    assert found.disturbed == 1
    assert found.made() == []
    assert found.runner.next_rate(found.made()) == 10


def test_a_trial_that_began_late_is_not_judged_before_it_has_rows(tmp_path):
    """A look at the search meanwhile must not ask a criterion that knows nothing of no rows."""
    (tmp_path / "own.py").write_text(
        "from osbench.plugin import sla\n"
        "class Last(sla.Sla):\n"
        "    NAME = 'last'\n"
        "    def check(self, statistics):\n"
        "        return self.verdict(statistics.last_end > 0, 'ended')\n"
    )
    plugins = Plugins((str(tmp_path),))
    plugins.import_files()
    found = Trials(
        Search(CONFIG), lambda: SlaEvaluator((Named(name="last", config={}),), plugins), 0.1
    )
    found.change(change(1.0, 10.0))
    found._held[-1].statistics.add_loop(np.full(9, 300 * MS, np.int64), {})

    assert found.outcome().capacity.rate is None
    found.add(rows([4.0]), "w", {}, 0.0)
    found.change(change(13.0, 0.0))
    assert found.made() == [Trial(rate=10, held=True)]


def test_iterations_that_do_not_end_break_a_trial():
    found = trials()
    found.change(change(1.0, 10.0))
    found.add(rows([4.0]), "w", {}, 0.0)
    assert found.is_loaded
    assert found.made() == []
    found.change(change(13.0, 0.0))

    assert not found.is_loaded
    assert found.made() == [Trial(rate=10, held=True)]
    assert found.made(unended=3) == [Trial(rate=10, held=False)]
    assert list(found.figures()) == []
    found.change(change(80.0, 20.0, unended=3))
    assert [one.detail for one in found.figures()] == ["3 of its iterations did not end"]


def test_a_trial_that_has_lost_iterations_says_nothing_and_is_made_again():
    found = trials()
    found.change(change(1.0, 10.0))
    found.add(rows([4.0]), "w", {}, 0.0)
    found.change(change(13.0, 0.0))

    assert found.made(lost=2) == []
    found.change(change(14.0, 10.0, lost=2))
    (figures,) = found.figures()
    assert (figures.cause, figures.detail) == (
        "disturbed",
        "2 of its iterations were lost with a worker",
    )
    assert found.disturbed == 1


def test_a_trial_that_had_no_coordinator_for_a_while_says_nothing():
    found = trials()
    found.change(change(1.0, 10.0))
    found.add(rows([4.0]), "w", {}, 0.0)
    found.change(change(13.0, 0.0, interrupted=True))

    assert found.made() == []
    found.change(change(14.0, 10.0))
    (figures,) = found.figures()
    assert (figures.cause, figures.detail) == (
        "disturbed",
        "the coordinator or a worker was gone for a part of it",
    )


def test_a_trial_is_lost_before_its_end_where_nothing_can_mend_it():
    found = trials(slas=SLAS[:1])
    found.change(change(1.0, 10.0))
    found.add(rows([3.5]), "w", {}, 0.0)
    assert not found.is_lost(4.0)
    found.add(rows([3.6], outcome=Outcome.FAILED), "w", {}, 0.0)

    assert not found.is_lost(2.9)
    assert found.is_lost(4.0)
    found.change(change(4.0, 0.0))
    assert found.made() == [Trial(rate=10, held=False)]
    assert found.ends_s == 4.0


def searched() -> Trials:
    """10/s held, 20/s did not, twice by its criterion and once by the load generator."""
    found = trials()
    for number, (rate, took, drops) in enumerate(
        [(10.0, 50, 0), (20.0, 900, 0), (20.0, 900, 0), (20.0, 50, 1)]
    ):
        at_s = 1.0 + 20 * number
        found.change(change(at_s, rate))
        for name, share in (("look", 0.2), ("buy", 0.5)):
            made = []
            for count in range(3):
                due = round((at_s + 4 + count) * 1000)
                action = (name, -1, due, due + round(share * took), 0)
                times = {"due": due, "started": due, "ended": due + took}
                made.append(row(1 + count, actions=(action,), names=NAMES, **times))
            found.add(block(*made, names=NAMES), "w", {}, 0.0)
        if drops:
            found.add(rows([at_s + 9], outcome=Outcome.DROPPED_LATE), "w", {}, 0.0)
        found.change(change(at_s + 12, 0.0))
    return found


def test_the_outcome_says_what_was_found_and_which_actions_grew():
    found = searched()
    assert found.progress.startswith("trial 4 at 20.0/s")
    found.change(change(100.0, 0.0, last=True))

    outcome = found.outcome()

    assert found.progress == "the search is over"
    assert (outcome.capacity.held, outcome.capacity.broke) == (10, 20)
    grown = [(name, round(before, 3), round(after, 3)) for name, before, after in outcome.grown]
    assert grown == [("buy", 0.025, 0.45), ("look", 0.01, 0.18)]
    assert outcome.limit == ""
    # those whose traces are compared; not the one that the load generator broke
    assert outcome.parts == ([(3, 13)], [(23, 33), (43, 53)])
    verdict = found.verdict()
    assert (verdict.criterion, verdict.success) == ("search", False)
    assert verdict.detail.startswith("the search did not end; so far between ")
    assert "; at 20.0/s percentile: p95 of response time 900ms" in verdict.detail


def limited_by(dropped: Outcome) -> Trials:
    """10/s held, 20/s did not for arrivals that were dropped; its first trial says nothing."""
    found = trials()
    found.change(change(1.0, 10.0))
    found.add(rows([4.0]), "w", {}, 0.0)
    found.change(change(13.0, 0.0))
    found.change(change(14.0, 20.0))
    found.add(rows([18.0], outcome=Outcome.DROPPED_WORKER_LOST), "w", {}, 0.0)
    found.change(change(26.0, 0.0))
    found.change(change(27.0, 20.0))
    found.add(rows([30.0, 31.0], outcome=dropped), "w", {}, 0.0)
    found.add(rows([30.5]), "w", {}, 0.0)
    found.change(change(39.0, 0.0))
    found.change(change(40.0, 0.0, last=True))
    return found


def test_the_load_generator_is_named_where_it_was_the_limit():
    said = "at 20.0/s 2 of 3 arrivals could not be started in time: add workers, or virtual users"

    assert limited_by(Outcome.DROPPED_CAPACITY).outcome().limit == said


def test_max_concurrency_is_named_where_it_was_the_limit():
    found = limited_by(Outcome.DROPPED_MAX_CONCURRENCY)

    said = "at 20.0/s 2 of 3 arrivals were dropped for max_concurrency"
    assert found.outcome().limit == f"{said}: raise `max_concurrency` of the runner"
    assert found.verdict().detail.endswith(said)


def test_a_search_below_which_the_load_generator_was_the_limit_advises_no_lower_rate():
    found = trials()
    for at_s in (1.0, 14.0):
        found.change(change(at_s, 10.0))
        found.add(rows([at_s + 3], outcome=Outcome.DROPPED_MAX_CONCURRENCY), "w", {}, 0.0)
        found.add(rows([at_s + 4]), "w", {}, 0.0)
        found.change(change(at_s + 12, 0.0))
    found.change(change(40.0, 0.0, last=True))

    assert "lower `low`" not in found.verdict().detail
    assert "raise `max_concurrency`" in found.outcome().limit


def test_a_search_that_was_never_under_load_says_so():
    verdict = trials().verdict()

    assert (verdict.success, verdict.detail) == (False, "the search ended before its first trial")
