"""When a search judges a trial and begins the next one."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Named
from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import LifeEvent, Outcome
from osbench.coordinator.load.run.steering.steered_runner import SteeredRunner
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.accounting.ledger import Ledger
from osbench.coordinator.results.accounting.load_change import LoadChange
from osbench.coordinator.results.accounting.search.trials import Trials
from osbench.coordinator.results.accounting.workload_users import UserLives, UserRegister
from osbench.edges.capacity.search import Search
from osbench.edges.capacity.search_control import SearchControl


class Searched:
    """A search of rates from 10 to 20/s in trials of 5 s, at an instant that tests choose."""

    def __init__(self, timeout_s: float = 0.0, runner: Any = None) -> None:
        self.accounts, self.ledger, self.at_s = Accounts(), Ledger(), 0.0
        self.planned = 0
        planned = Search(runner or {"low": 10, "high": 20, "hold": 4, "settle": 1})
        slas = (Named(name="failure_rate", config={"max": 0}),)
        self.trials = Trials(planned, lambda: SlaEvaluator(slas, Plugins()), 0.1)
        self.changes = self.accounts.changes[0]
        run: Any = SimpleNamespace(
            name="Shop.buy",
            plan=SimpleNamespace(number=0),
            runner=SteeredRunner(planned, self.changes),
            results=SimpleNamespace(trials=self.trials, ledger=self.ledger),
            dispatcher=SimpleNamespace(cut=lambda at_s: (at_s, self.planned)),
            under_load=True,
            wants_workers=True,
            specification=SimpleNamespace(timeout_s=timeout_s),
            elapsed=lambda: self.at_s,
        )
        self.run, self.runner = run, run.runner
        self.services: Any = SimpleNamespace(port=SimpleNamespace(decide=self._decide))
        self.search = SearchControl(self.services, run)

    def _decide(self, records: Any) -> None:
        for record in records:
            self.accounts.apply(record)
            self.trials.change(self.changes[-1])

    def look(self, at_s: float) -> list[float]:
        """Look at an instant; the rates so far."""
        self.at_s = at_s
        self.search.look()
        return [change.level for change in self.changes]

    def start(self, count: int) -> None:
        """Iterations of the trial are given out."""
        self.ledger.cut("w", 1, Intervals([(1, count + 1)]))
        self.planned = count

    def end(self, *numbers: int) -> None:
        """Some of them end well."""
        outcomes = np.full(len(numbers), Outcome.OK, np.uint8)
        self.ledger.report("w", np.array(numbers, np.int64), outcomes)


def test_a_trial_is_not_judged_before_its_end() -> None:
    here = Searched()
    here.look(0.0)
    here.start(2)
    here.end(1, 2)

    # from 0.5 s to 5.5 s, and its end is decided on a second before
    assert here.look(4.8) == [10, 0]
    assert here.look(5.4) == [10, 0]
    assert here.look(5.5)[:2] == [10, 0]
    assert len(here.changes) == 3


def test_the_next_trial_waits_for_what_runs_however_long_it_takes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    here = Searched()
    here.look(0.0)
    here.start(3)
    here.end(1)
    here.look(5.0)

    with caplog.at_level(logging.WARNING):
        for at_s in (6.0, 100.0, 500.0):
            assert here.look(at_s) == [10, 0]
    here.end(2, 3)

    assert len(here.look(500.5)) == 3
    assert [record.getMessage() for record in caplog.records] == [
        "Shop.buy: the next trial waits for 2 iterations of the last one; `timeout` of the runner "
        "bounds them"
    ]


def test_iterations_that_are_beyond_their_timeout_are_not_waited_for() -> None:
    here = Searched(timeout_s=30.0)
    here.look(0.0)
    here.start(3)
    here.look(5.0)

    assert here.look(45.0) == [10, 0]
    assert len(here.look(46.0)) == 3
    assert [one.cause for one in here.trials.figures()] == ["sla"]


class UsersSearched(Searched):
    """A search of 2 to 8 users in trials of 5 s, on one worker, at an instant that tests choose."""

    def __init__(self, capacity: int = 8) -> None:
        super().__init__(runner={"users": {"low": 2, "high": 8}, "hold": 4, "settle": 1})
        self.worker = SimpleNamespace(mid="w", capacity=capacity, user_limit=0)
        workers = SimpleNamespace(present=[self.worker], active=[self.worker])
        self.run.workers = workers
        self.run.results.users = UserRegister()
        self.run.results.users.give("w", [(1, 9)])
        self.lives = UserLives()
        self.run.results.statistics = SimpleNamespace(lives=self.lives)

    def look(self, at_s: float) -> list[float]:
        found = super().look(at_s)
        self.worker.user_limit = min(self.worker.capacity, self.runner.users(at_s))
        return found

    def finish(self) -> list[LoadChange]:
        """The first trial runs to its end; the changes up to the begin of the next one."""
        for at_s in (0.0, 0.1, 1.5, 3.0, 5.0, 5.5):
            self.look(at_s)
        return self.changes


def test_users_begin_and_end_as_soon_as_it_is_decided() -> None:
    here = UsersSearched()

    assert here.look(0.0) == [2]
    assert here.look(4.9) == [2]
    assert here.look(5.0) == [2, 0]
    assert (here.changes[0].at_s, here.changes[1].at_s) == (0.0, 5.0)
    assert here.runner.users(5.0) == 0
    # nothing runs any more, and a trial without rows is made again
    assert here.look(5.2) == [2, 0, 2]


def test_the_next_users_wait_for_what_runs_but_not_for_numbers_that_came_back() -> None:
    here = UsersSearched()
    here.look(0.0)
    here.ledger.cut("w", 1, Intervals([(1, 11)]))
    here.end(1, 2, 3)
    here.look(5.0)

    assert here.look(6.0) == [2, 0]
    here.ledger.give_back("w", [(6, 11)])
    assert here.look(6.5) == [2, 0]
    here.end(4, 5)

    assert here.look(7.0) == [2, 0, 2]
    assert here.changes[-1].unended == 0


def test_iterations_lost_with_a_worker_count_for_their_own_trial() -> None:
    here = UsersSearched()
    here.look(0.0)
    here.ledger.cut("gone", 1, Intervals([(1, 4)]))
    here.look(5.0)
    here.ledger.mark_lost("gone")

    here.look(6.0)
    here.look(11.0)
    here.look(12.0)

    assert [one.lost for one in here.changes if one.level] == [0, 3, 0]


def test_users_that_no_worker_can_have_are_missing() -> None:
    assert UsersSearched(capacity=1).finish()[1].missing == 1
    assert UsersSearched().finish()[1].missing == 0


def test_users_that_were_gone_for_a_while_interrupt_their_trial() -> None:
    here = UsersSearched()
    here.look(0.0)
    here.look(0.1)
    here.worker.user_limit = 1
    SearchControl.look(here.search)
    here.at_s = 2.0
    SearchControl.look(here.search)
    here.worker.user_limit = 2

    here.look(5.0)

    assert (here.changes[1].interrupted, here.changes[1].missing) == (True, 0)


def test_users_whose_start_failed_or_goes_on_are_counted() -> None:
    here = UsersSearched()
    here.lives.add([(LifeEvent.NOT_BEGUN, 1, 5, 0), (LifeEvent.BEGUN, 5, 5, 0)], {})

    # 1 failed, and 2 has said nothing yet
    assert here.finish()[2].waiting == 2
    assert [one.detail[:23] for one in here.trials.figures()] == ["2 of its users had not "]


def test_users_that_say_after_the_trial_that_they_had_begun_are_not_waited_for() -> None:
    here = UsersSearched()
    here.lives.add([(LifeEvent.BEGUN, 1, 5, 0)], {})
    for at_s in (0.0, 0.1, 1.5, 3.0, 5.0):
        here.look(at_s)

    here.lives.add([(LifeEvent.BEGUN, 2, 5, 0)], {})

    assert here.look(5.5) == [2, 0, 2]
    assert here.changes[2].waiting == 0


def test_users_that_have_not_begun_are_known_to_a_coordinator_that_comes_after_the_trial() -> None:
    here = UsersSearched()
    here.lives.add([(LifeEvent.BEGUN, 1, 5, 0)], {})
    for at_s in (0.0, 0.1, 1.5, 3.0, 5.0):
        here.look(at_s)

    here.search = SearchControl(here.services, here.run)

    assert here.look(5.5) == [2, 0, 2]
    assert here.changes[2].waiting == 1


def test_a_scenario_whose_users_just_begin_waits_for_none() -> None:
    assert UsersSearched().finish()[2].waiting == 0


def test_users_of_a_coordinator_that_is_gone_get_their_trial_again() -> None:
    here = UsersSearched()
    here.look(0.0)

    here.search = SearchControl(here.services, here.run)

    assert here.look(3.0) == [2, 0]
    assert here.changes[1].interrupted
    assert here.look(3.5) == [2, 0, 2]
