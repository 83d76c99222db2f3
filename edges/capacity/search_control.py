"""Runs the trials of a search; each is a change of the load, journalled beforehand."""

from __future__ import annotations

import logging
from typing import Any

from osbench.common.plugin.runner import SearchingRunner, split
from osbench.common.values.intervals import Intervals
from osbench.coordinator.load.run.services import RunServices
from osbench.coordinator.load.run.workload.workload_run import WorkloadRun
from osbench.coordinator.results.accounting.load_change import LoadChange
from osbench.coordinator.results.accounting.search.capacity_sentence import load_text
from osbench.coordinator.results.accounting.search.trials import Trials

LOG = logging.getLogger(__name__)

#: The end of a trial of a rate is decided on so long before it, as arrivals are given out ahead.
AHEAD_S = 1.0
#: From a decision to the first arrival of a rate.
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
    """Begins and ends the trials (loads at one rate, or of some users) of one workload's search."""

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
        # users are there, or end, as soon as it is decided
        is_open = self._searching.OPEN
        self._ahead_s, self._lead_s = (AHEAD_S, LEAD_S) if is_open else (0.0, 0.0)
        self._asked_s = 0.0
        #: Changes for which a message has reported that earlier iterations are awaited.
        self._told = 0
        #: This coordinator has begun the trial that is under load.
        self._ours = False
        #: The fewest and the most users that no worker had while the trial was judged.
        self._missing: tuple[int, int] | None = None
        #: Numbers of its users as its load ended; None if that was in an earlier coordinator.
        self._in_use: Intervals | None = None

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
        left = self._left() if changes else 0
        if changes and self._waits(elapsed_s - changes[-1].at_s, left):
            return
        self._go_on(elapsed_s, max(0, left), self._lost() if changes else 0)

    def _left(self) -> int:
        """Return how many iterations of the last trial have not ended, nor are lost."""
        if self._searching.OPEN:
            return self._runner.changes[-1].number - self._ledger.decided
        # numbers that workers gave back are not started before the next trial
        return self._ledger.allotted - len(self._ledger.pool) - self._ledger.decided

    def _lost(self) -> int:
        """Return how many iterations of the last trial were lost with a worker.

        Numbers of users are given out again, so all earlier trials' losses are subtracted.
        """
        changes = self._runner.changes
        if self._searching.OPEN:
            # the last two: a trial, and the end of its load
            begun = changes[-2].number if len(changes) > 1 else 0
            return self._ledger.gone(begun, changes[-1].number)
        gone = self._ledger.gone(0, self._ledger.allotted)
        return max(0, gone - sum(change.lost for change in changes))

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
        if elapsed_s >= trials.begins_s:
            lacking = self._lacking_users()
            least, most = self._missing or (lacking, lacking)
            self._missing = min(least, lacking), max(most, lacking)
        if elapsed_s >= trials.ends_s - self._ahead_s:
            self._decide(0.0, trials.ends_s, **self._user_faults())
            return
        if elapsed_s - self._asked_s >= ASK_S:
            self._asked_s = elapsed_s
            if trials.is_lost(elapsed_s):
                self._decide(0.0, elapsed_s, **self._user_faults())

    def _lacking_users(self) -> int:
        if self._searching.OPEN:
            return 0
        held = sum(worker.user_limit for worker in self._run.workers.present)
        return max(0, self._runner.users(self._run.elapsed()) - held)

    def _user_faults(self) -> dict[str, Any]:
        """Return fields of `LoadChange` on users that no worker had, as the trial's load ends.

        If they were lacking for only a part of it, a worker was gone and others have its users by
        now: the trial is interrupted.
        """
        if self._searching.OPEN:
            return {}
        users = self._run.results.users
        self._in_use = Intervals()
        for worker in self._run.workers.present:
            self._in_use.update(Intervals(users.of(worker.mid, worker.user_limit)))
        least, most = self._missing or (0, 0)
        return {"missing": least, "interrupted": most > least == 0}

    def _waiting(self) -> int:
        """Return how many users of the last trial have not begun: `on_start` failed, or runs."""
        if self._searching.OPEN:
            return 0
        results, changes = self._run.results, self._runner.changes
        statistics = results.statistics
        if not statistics.lives or len(changes) < 2:
            return 0
        in_use = self._in_use
        if in_use is None:
            workers = self._run.workers.active
            limits = split(int(changes[-2].level or 0), [one.capacity for one in workers])
            in_use = Intervals()
            for worker, limit in zip(workers, limits, strict=True):
                in_use.update(Intervals(results.users.of(worker.mid, limit)))
        return len(in_use) - len(in_use.intersection(statistics.lives.began))

    def _go_on(self, elapsed_s: float, unended: int, lost: int) -> None:
        waiting = self._waiting()
        made = self._trials.made(unended, lost, waiting)
        rate = self._searching.next_rate(made)
        if self._trials.disturbed + (lost > 0) >= MOST_DISTURBED:
            rate = None
        if made:
            said = "sustained" if made[-1].held else "not sustained"
            load = load_text(made[-1].rate, self._searching.unit)
            LOG.info("%s: %s %s", self._run.name, load, said)
        of_trial: dict[str, Any] = {"unended": unended, "lost": lost, "waiting": waiting}
        if rate is None:
            self._decide(0.0, elapsed_s, last=True, **of_trial)
        else:
            self._missing = self._in_use = None
            self._decide(rate, max(0.0, elapsed_s) + self._lead_s, **of_trial)

    def _decide(self, rate: float, at_s: float, *, last: bool = False, **trial: Any) -> None:
        """Journal a change of the load to `rate`, or users, from `at_s` seconds after t0 on.

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
