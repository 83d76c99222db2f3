"""Virtual users of a load whose iterations the runner's own code starts, in one worker process."""

from __future__ import annotations

from collections.abc import Sequence

from osbench.coordinator.load.fleet.worker import WorkerHandle
from osbench.coordinator.load.run.workload.user_allocation import ClosedUserAllocation
from osbench.coordinator.results.accounting.totals import Offered

#: Turns are short for so long: it is not known how fast the code starts iterations, seconds.
EAGER_S = 2.0


class ScriptedUserAllocation(ClosedUserAllocation):
    """Grants all virtual users of one worker, which stays the same until the load is over.

    Its users are enough for as many iterations as the code runs at the same time.
    """

    def _limits(self, capacity: Sequence[int], elapsed_s: float) -> Sequence[int]:
        home = self._home()
        asked = any(self.step.users or ())
        active = self._load.workers.active
        return [
            many if asked and worker is home else 0
            for worker, many in zip(active, capacity, strict=True)
        ]

    def _home(self) -> WorkerHandle | None:
        """Return the worker that runs the code; None if it is gone.

        Before the code begins: the live worker with the most virtual users, None without workers.
        """
        active, register = self._load.workers.active, self._load.results.users
        if register.given:
            return next((one for one in active if register.count(one.mid)), None)
        return max(active, key=lambda one: one.capacity, default=None)

    def _most(self, workers: Sequence[WorkerHandle], capacity: Sequence[int]) -> Sequence[int]:
        return [worker.target for worker in workers]

    @property
    def script_lost(self) -> bool:
        """Return whether the worker of the code was lost or left, and cannot return.

        After a resume, False as long as it may still accept this coordinator.
        """
        load = self._load
        register = load.results.users
        if not register.given or self._home() is not None:
            return False
        return not any(register.count(worker.mid) for worker in load.workers.unheard)

    def note_held(self) -> None:
        """Do nothing: the code decides how many users there are, so that none can be missing."""

    def offered(self, duration_s: float, cut_short: str | None) -> Offered:
        """Return the offered load; its users are the most that the code had at the same time."""
        results = self._load.results
        wanting_s = results.want_ns / 1e9
        asked_s = results.busy_s + wanting_s
        users = max(1, round(results.statistics.profile.peak()))
        return Offered(
            duration_s=duration_s,
            concurrency=users,
            concurrency_held=results.busy_s / asked_s if asked_s > 0 else None,
            waited_s=wanting_s / users,
            cut_short=cut_short,
        )

    @property
    def linger_s(self) -> float:
        """Seconds to wait for reports of users: 0, as no user reports how long it waited."""
        return 0.0

    @property
    def runs_short(self) -> bool:
        """Return whether the code began less than EAGER_S seconds ago: passes are short then."""
        return self._is_loaded and self._load.elapsed() < EAGER_S

    @property
    def scant(self) -> int:
        """Always 0: passes of the loop are not made shorter because users have few iterations."""
        return 0
