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
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.load.run.steering.steered_runner import SteeredRunner
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.accounting.ledger import Ledger
from osbench.coordinator.results.accounting.search.trials import Trials
from osbench.edges.capacity.search import Search
from osbench.edges.capacity.search_control import SearchControl


class Searched:
    """A search of rates from 10 to 20/s in trials of 5 s, at an instant that tests choose."""

    def __init__(self, timeout_s: float = 0.0) -> None:
        self.accounts, self.ledger, self.at_s = Accounts(), Ledger(), 0.0
        self.planned = 0
        planned = Search({"low": 10, "high": 20, "hold": 4, "settle": 1})
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
        services: Any = SimpleNamespace(port=SimpleNamespace(decide=self._decide))
        self.search = SearchControl(services, run)

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
