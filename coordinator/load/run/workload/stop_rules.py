"""End of the load of a workload: its runner's stop time, its rule to abort, a stopped run."""

from __future__ import annotations

import logging
from collections.abc import Callable

from osbench.common.plugin.runner import Step
from osbench.common.plugin.sla import Verdict
from osbench.coordinator.load.run.status import RunStatus
from osbench.coordinator.report.run_outcome import Breach
from osbench.coordinator.results.accounting.workload_results import WorkloadResults

LOG = logging.getLogger(__name__)

#: A load that no virtual user could begin with is ended after so long, seconds.
NO_USERS_S = 60.0
#: Interval in which the rule to abort is evaluated, seconds.
WATCH_S = 0.5


class StopRules:
    """Decides the stop time of one workload's load, and the cause if the load is cut short."""

    def __init__(
        self,
        status: RunStatus,
        results: WorkloadResults,
        name: str,
        note: Callable[[str, float], None],
        *,
        abort_on_sla: bool,
    ) -> None:
        """`name` is the workload's; `abort_on_sla` stops all load of the run if an SLA fails.

        `note` is called with cause and seconds after t0 if the load is stopped before its time.
        Causes are "interrupted", "sla", "abort", "no_users", "runner_failed" and "runner_lost".
        """
        self._status = status
        self._note = note
        self._results = results
        self._name = name
        self._abort_on_sla = abort_on_sla
        #: When the rule to abort was last evaluated, seconds after t0.
        self._watched_s = 0.0
        #: The rule has ended the load.
        self._aborts = False
        #: No iteration starts at or after this time, seconds after t0; None without end.
        self.stop_s: float | None = None
        self._no_users = False
        #: Cause by which the runner's own code ended the load before its time; else "".
        self._script_cause = ""

    def apply(self, step: Step, elapsed_s: float) -> None:
        """Set the stop time from the runner's step, or to now if there is a cause to stop.

        The stop time only moves to earlier times. A new early stop is passed to `note`.
        """
        stop_s, cause = step.stop_s, self._cause
        if cause:
            stop_s = min(elapsed_s, stop_s) if stop_s is not None else elapsed_s
            told = cause == self._script_cause
            if not (told or step.done or self.reached(elapsed_s)):
                self._note(cause, stop_s)
        if stop_s is not None and (self.stop_s is None or stop_s < self.stop_s):
            self.stop_s = stop_s

    def reached(self, elapsed_s: float) -> bool:
        """Return whether the stop time is reached: nothing starts then. False without one."""
        return self.stop_s is not None and elapsed_s >= self.stop_s

    def within(self, elapsed_s: float) -> float:
        """Return `elapsed_s`, or the stop time if that is earlier; both in seconds after t0."""
        return elapsed_s if self.stop_s is None else min(elapsed_s, self.stop_s)

    @property
    def _cause(self) -> str | None:
        """The cause if no more load is to be started, such as "sla"; else None."""
        own = "abort" if self._aborts else "no_users" if self._no_users else None
        return self._status.stopped_for or own or self._script_cause or None

    def watch_users(self, elapsed_s: float) -> None:
        """End the load if no virtual user could begin in the first NO_USERS_S seconds; log it."""
        if self._no_users or elapsed_s < NO_USERS_S:
            return
        lives = self._results.statistics.lives
        self._no_users = lives.none_began
        if self._no_users:
            LOG.warning(
                "%s: no virtual user could begin within %g s: %s; the load is ended",
                self._name,
                elapsed_s,
                lives.first_error,
            )

    def watch_script(self, elapsed_s: float, *, lost: bool) -> None:
        """End the load if the runner's own code has failed, or its worker is `lost` while it runs.

        The cause is logged and passed to `note`, once. Does nothing if the run is stopped already.
        """
        if self._script_cause or self._status.stopped_for:
            return
        error = self._results.script_end
        if error:
            self._script_cause = "runner_failed"
            LOG.error("%s: the runner's own code failed: %s; the load is ended", self._name, error)
        elif error is None and lost and not self.reached(elapsed_s):
            self._script_cause = "runner_lost"
            LOG.error(
                "%s: the worker that ran the runner's own code was lost or left; the load is ended",
                self._name,
            )
        if self._script_cause:
            self._note(self._script_cause, self.within(elapsed_s))

    def watch_abort(self, elapsed_s: float) -> None:
        """End the load if the condition of the key `abort` is met; log it.

        Evaluates the condition at most every WATCH_S seconds. Has no effect after the stop time.
        """
        rule = self._results.abort
        if rule is None or self._aborts or elapsed_s - self._watched_s < WATCH_S:
            return
        self._watched_s = elapsed_s
        self._aborts = rule.watch() and not self.reached(elapsed_s)
        if self._aborts:
            LOG.warning("%s: the load is aborted: %s", self._name, rule.reason)

    def watch_sla(self, plan: int | None) -> None:
        """Stop all load of the run if a criterion cannot be met any more, with `abort_on_sla` only.

        `plan`: the number of planned iterations, None if unlimited. Searches are left out. Logs the
        criterion and notes it in the status.
        """
        if self._abort_on_sla and not self._status.breach and self._results.trials is None:
            results = self._results
            self._breach(results.sla.breach(results.statistics, plan))

    def judge_end(self) -> None:
        """Stop all load of the run if a criterion failed at the end, with `abort_on_sla` only.

        Logs the criterion and notes it in the status. Searches and interrupted runs are left out.
        """
        stopped = self._status.breach or self._status.interruption.drains
        # a search looks for the load that breaks a criterion
        if self._abort_on_sla and not stopped and self._results.trials is None:
            # no more results can mend a criterion that fails now
            failing = self._results.sla.failing(self._results.statistics)
            self._breach(next(iter(failing), None))

    def _breach(self, verdict: Verdict | None) -> None:
        if verdict is not None:
            self._status.breach = Breach(self._name, verdict.criterion, verdict.detail)
            LOG.warning("the load is stopped for a failed SLA: %s", self._status.breach)
