"""Where the load generator was the limit, so that the load was not the one asked for."""

from __future__ import annotations

from osbench.coordinator.results.totals import Accounting, Offered
from osbench.coordinator.results.workload_statistics import WorkloadStatistics

#: Share of the plan that may be dropped for `capacity` or `late`.
DROPS_ALLOWED = 0.01
#: Share of the asked user-seconds that must not be spent waiting for work.
HELD_ASKED = 0.98


def generator_limits(
    accounting: Accounting, offered: Offered, statistics: WorkloadStatistics, lag_limit_s: float
) -> list[str]:
    """Sentences that say where the load was not what was asked for, and what to do."""
    found = []
    drops = accounting.drops.get("capacity", 0) + accounting.drops.get("late", 0)
    if drops > DROPS_ALLOWED * accounting.planned:
        found.append(
            f"{drops} of {accounting.planned} arrivals could not be started in time: "
            "add workers, or virtual users"
        )
    lag_s = statistics.start_lag.percentile(99) / 1e9 if statistics.start_lag.count else 0.0
    own = accounting.drops.get("max_concurrency", 0)
    if lag_s > lag_limit_s and own > drops:
        found.append(
            f"the task's own max_concurrency was the limit: {own} of {accounting.planned} "
            "arrivals were dropped for it; raise it, or lower the rate"
        )
    elif lag_s > lag_limit_s:
        found.append(
            f"p99 start lag is {lag_s:.3f} s, above lag_limit_s ({lag_limit_s:g} s): "
            "the workers could not keep up"
        )
    held, waited_s = offered.concurrency_held, offered.waited_s or 0.0
    # in a load of milliseconds the wait for the first batches is a large share and means nothing
    if held is not None and held < HELD_ASKED and waited_s > lag_limit_s:
        found.append(
            f"concurrency held is {held:.1%}: a virtual user waited {waited_s:.2f} s for work, "
            "or had no worker"
        )
    return found
