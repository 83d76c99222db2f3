"""Runs the trials of a search for a rate; each is a change of the load, journalled beforehand."""

from __future__ import annotations

import logging
from typing import Any

from osbench.common.plugin.runner import SearchingRunner
from osbench.coordinator.formatting import three_digits
from osbench.coordinator.load.run.services import RunServices
from osbench.coordinator.load.run.workload.workload_run import WorkloadRun
from osbench.coordinator.results.accounting.load_change import LoadChange
from osbench.coordinator.results.accounting.search.trials import Trials

LOG = logging.getLogger(__name__)

#: The end of a trial is decided on so long before it, as arrivals are given out ahead.
AHEAD_S = 1.0
#: From a decision to the first arrival.
LEAD_S = 0.5
#: Interval in which a trial is checked for a criterion that is lost already, seconds.
ASK_S = 0.5
#: Iterations of a trial are awaited for so long after their timeout. Without a timeout they are
#: awaited until they end, or are lost, as at the end of other loads; after a while a message
#: reports why.
TIMEOUT_S = 10.0
TELL_S = 60.0
#: So many trials that say nothing end a search.
MOST_DISTURBED = 40


class SearchControl:
    """Begins and ends the trials (loads at one rate) in the search of one workload."""

    def __init__(self, services: RunServices, run: WorkloadRun) -> None:
        results = run.results
        assert results.trials is not None
        self._port = services.port
        self._run = run
        self._runner = run.runner
        self._workload = run.plan.number
        self._ledger = results.ledger
        self._trials: Trials = results.trials
        self._searching: SearchingRunner = self._trials.runner
        self._asked_s = 0.0
        #: Changes for which a message has reported that earlier iterations are awaited.
        self._told = 0
        #: This coordinator has begun the trial that is under load.
        self._ours = False

    def look(self) -> None:
        """Begin or end a trial if one is due. Raises StorageError.

        Called at each poll. Does nothing before and after the load, and after an interrupt.
        """
        run, trials = self._run, self._trials
        changes = self._runner.changes
        if not run.under_load or not run.wants_workers or (changes and changes[-1].last):
            return
        elapsed_s = run.elapsed()
        if trials.is_loaded:
            self._end(elapsed_s)
            return
        left = changes[-1].number - self._ledger.decided if changes else 0
        if changes and self._waits(elapsed_s - changes[-1].at_s, left):
            return
        # the last two: a trial, and the end of its load
        begun = changes[-2].number if len(changes) > 1 else 0
        lost = self._ledger.gone(begun, changes[-1].number) if changes else 0
        self._go_on(elapsed_s, max(0, left), lost)

    def _waits(self, rested_s: float, left: int) -> bool:
        """Return whether iterations of the last trial are still awaited before the next begins.

        The load of the trial ended `rested_s` seconds ago, and `left` of its iterations run. They
        are awaited for TIMEOUT_S beyond their timeout; without a timeout until they end.
        """
        if rested_s < 0:
            # its end was decided on ahead; at a low rate its last arrival may be over before
            return True
        timeout_s = self._run.specification.timeout_s
        if left <= 0 or (timeout_s and rested_s > timeout_s + TIMEOUT_S):
            return False
        if rested_s > TELL_S and self._told < len(self._runner.changes):
            self._told = len(self._runner.changes)
            LOG.warning(
                "%s: the next trial waits for %d iterations of the last one; `timeout` of the "
                "runner bounds them",
                self._run.name,
                left,
            )
        return True

    def _end(self, elapsed_s: float) -> None:
        """Decide on the end of the trial's load, `AHEAD_S` seconds before it is due.

        Ends it at once if a criterion cannot be met any more, and a trial of an earlier coordinator
        as interrupted. `elapsed_s`: seconds after t0.
        """
        trials = self._trials
        if not self._ours:
            # while the one before was gone nothing was given out
            self._decide(0.0, min(elapsed_s, trials.ends_s), interrupted=True)
            return
        if elapsed_s >= trials.ends_s - AHEAD_S:
            self._decide(0.0, trials.ends_s)
            return
        if elapsed_s - self._asked_s >= ASK_S:
            self._asked_s = elapsed_s
            if trials.is_lost(elapsed_s):
                self._decide(0.0, elapsed_s)

    def _go_on(self, elapsed_s: float, unended: int, lost: int) -> None:
        made = self._trials.made(unended, lost)
        rate = self._searching.next_rate(made)
        if self._trials.disturbed + (lost > 0) >= MOST_DISTURBED:
            rate = None
        if made:
            said = "sustained" if made[-1].held else "not sustained"
            LOG.info("%s: %s/s %s", self._run.name, three_digits(made[-1].rate), said)
        if rate is None:
            self._decide(0.0, elapsed_s, last=True, unended=unended, lost=lost)
        else:
            self._decide(rate, max(0.0, elapsed_s) + LEAD_S, unended=unended, lost=lost)

    def _decide(self, rate: float, at_s: float, *, last: bool = False, **trial: Any) -> None:
        """Journal a change of the load to `rate` arrivals/s, from `at_s` seconds after t0 on.

        The change may come later than `at_s`, behind granted arrivals. A rate of 0 ends a trial,
        `last` the search; `trial`: fields of `LoadChange` on the last trial. Raises StorageError.
        """
        dispatcher = self._run.dispatcher
        at_s, number = dispatcher.cut(at_s)
        change = LoadChange(
            request=f"search {len(self._runner.changes) + 1}",
            at_s=at_s,
            level=rate,
            number=number,
            asked=((at_s, rate),),
            last=last,
            **trial,
        )
        self._ours = rate > 0
        self._port.decide([change.to_record(self._workload)])
