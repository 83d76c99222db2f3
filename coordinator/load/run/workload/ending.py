"""End of a load: when nothing more will start or be reported, and the closing of its ledger."""

from __future__ import annotations

from osbench.common.plugin.scenario import Scenario
from osbench.common.protocol import timers
from osbench.coordinator.load.run.workload.load_parts import LoadParts
from osbench.coordinator.load.run.workload.user_allocation import UserAllocation


class Ending:
    """Decides when the load of one workload has ended, and closes its ledger.

    The ledger accounts for every iteration and its final state.
    """

    def __init__(self, load: LoadParts, allocation: UserAllocation) -> None:
        self._load = load
        self._allocation = allocation
        #: Since when there is no worker, of the seconds that the pool has watched.
        self._alone_since: float | None = None
        #: Time since which nothing was settled and no live worker had work; and how many iterations
        #: were settled then.
        self._quiet_since = 0.0
        self._settled_before = -1

    def finished(self) -> bool:
        """Return whether nothing more will start or be reported, or the user stops the run."""
        interruption, ledger = self._load.status.interruption, self._load.results.ledger
        if interruption.stops:
            return True
        return self._ended() and (not ledger.open or self._waited_enough())

    def _ended(self) -> bool:
        """Return whether no more work will be granted: time over, plan used up, or no workers.

        Workers have to be missing for longer than `wait_s` seconds; notes since when they are.
        """
        load, allocation, ledger = self._load, self._allocation, self._load.results.ledger
        if load.rules.reached(load.elapsed() - allocation.linger_s):
            return True
        if allocation.step.done and not ledger.pool:
            return True
        if load.workers.active:
            self._alone_since = None
            return False
        # no worker is left for the rest: perhaps one comes
        services = load.services
        now = services.pool.watched_s
        self._alone_since = now if self._alone_since is None else self._alone_since
        return now - self._alone_since > services.limits.wait_s

    def _waited_enough(self) -> bool:
        """Return whether for SETTLE_S seconds no live worker had work and no iteration was settled.

        Three times as long while results are waiting in Redis. Begins to count at the first call.
        """
        services, ledger = self._load.services, self._load.results.ledger
        pool = services.pool
        now = pool.watched_s
        holders = [worker for worker in pool.workers.values() if ledger.outstanding(worker.name)]
        lively = any(one.present and not one.gone and one.holds_work for one in holders)
        if lively or ledger.settled != self._settled_before:
            self._settled_before = ledger.settled
            self._quiet_since = now
        # waiting results are read first, unless another client adds entries without end
        patience_s = timers.SETTLE_S * (3 if services.channel.behind else 1)
        return now - self._quiet_since > patience_s

    @property
    def users_to_end(self) -> int:
        """The number of virtual users of live workers that have not run `on_stop` yet.

        A worker that has prepared and reports none counts as one. If no worker counts, the number
        of workers that hold work. 0 if the scenario has no `on_stop`, or there was no load.
        """
        load, scenario = self._load, self._load.plan.scenario
        if getattr(scenario.cls, "on_stop", None) is Scenario.on_stop or not load.begun:
            return 0
        here = [worker for worker in load.workers.served if worker.present and not worker.gone]
        return sum(
            max(1, worker.beat.living)
            for worker in here
            if worker.beat.living or worker.beat.prepared == load.number
        ) or sum(worker.holds_work for worker in here)

    def close(self, *, journalled: bool = True) -> None:
        """Close the ledger: every iteration gets its final state. Raises StorageError.

        Without `journalled`, only in memory: another coordinator may go on with the load.
        """
        load, allocation, services = self._load, self._allocation, self._load.services
        budget = allocation.budget
        closing = services.accounts.closing(load.number, budget, unused=budget is None)
        closing |= {"planned": allocation.planned, "at_s": load.elapsed()}
        if journalled:
            services.port.decide([closing])
        else:
            services.port.follow(closing)
