"""End of a resumed load without progress, whose missing iterations no worker can report."""

from __future__ import annotations

from collections.abc import Sequence

from osbench.common.errors import FleetError
from osbench.coordinator.formatting import count
from osbench.coordinator.load.fleet.worker_request import processes
from osbench.coordinator.load.run.services import RunServices
from osbench.coordinator.load.run.workload.workload_run import WorkloadRun

#: Longest time without a result while workers hold iterations and run none, seconds. It is longer
#: than most virtual users take to begin.
STALL_S = 120.0


class StallWatch:
    """Watches the progress of a resumed load; time with an unreachable Redis does not count."""

    def __init__(self, services: RunServices) -> None:
        self._services = services
        self._settled = -1
        #: Since when there has been no progress, of the seconds that the pool has watched.
        self._since_s = 0.0

    def look(self, running: Sequence[WorkloadRun]) -> None:
        """Raise FleetError if workers held iterations for `STALL_S` seconds, but ran none.

        Settled iterations, preparing workers and a paused load begin the time again. `running`:
        workloads under load. Workers without users or with a rate limit are left out.
        """
        pool = self._services.pool
        ledgers = [one.results.ledger for one in running]
        # a paused load, one without users and one that is paced may rest for as long as it likes
        workers = [
            one
            for one in pool.workers.values()
            if one.present and not one.gone and one.user_limit and not one.pace
        ]
        held = sum(ledger.outstanding(one.name) for ledger in ledgers for one in workers)
        settled = sum(ledger.settled for ledger in ledgers)
        works = any(one.beat.busy or one.beat.state == "preparing" for one in workers)
        works = works or any(one.runner.is_paused for one in running)
        if not held or works or settled != self._settled:
            self._settled, self._since_s = settled, pool.watched_s
        if pool.watched_s - self._since_s > STALL_S:
            raise FleetError(
                f"within {STALL_S:g} s no message came from {processes(len(workers))} holding "
                f"{count(held, 'iteration')} and running none; see their logs for batches or "
                "results that were refused or lost"
            )
