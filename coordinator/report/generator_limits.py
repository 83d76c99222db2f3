"""Where the load generator was the limit, so that the load was not the one asked for."""

from __future__ import annotations

from osbench.common.protocol import timers
from osbench.coordinator.results.totals import Accounting, Offered
from osbench.coordinator.results.workload_statistics import WorkloadStatistics

#: Share of the plan that may be dropped for `capacity` or `late`.
DROPS_ALLOWED = 0.01
#: Share of the asked user-seconds that must not be spent waiting for work.
HELD_ASKED = 0.98
#: Share of the load's time for which a scenario may block the event loops of workers.
BLOCKED_ALLOWED = 0.01


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
    found += _loop_limits(statistics, lag_limit_s)
    held, waited_s = offered.concurrency_held, offered.waited_s or 0.0
    # in a load of milliseconds the wait for the first batches is a large share and means nothing
    if held is not None and held < HELD_ASKED and waited_s > lag_limit_s:
        found.append(
            f"concurrency held is {held:.1%}: a virtual user waited {waited_s:.2f} s for work, "
            "or had no worker"
        )
    return found


def _loop_limits(statistics: WorkloadStatistics, lag_limit_s: float) -> list[str]:
    """The same for virtual users that share an event loop."""
    lag = statistics.loop_lag
    if not lag.count:
        return []
    blocked_s = statistics.blocked.total() / 1e9
    # in a load of seconds what a scenario imports first is a large share and means nothing
    if blocked_s > max(BLOCKED_ALLOWED * lag.count * timers.LOOP_BEAT_S, lag_limit_s):
        ((place, lasted),) = statistics.blocked.most_common(1)
        return [
            f"the scenario blocked the event loop of its workers for {blocked_s:.2f} s, of that "
            f"{lasted / 1e9:.2f} s at {place}: all virtual users of a process waited meanwhile; "
            "await what blocks, or call it by `await self.run_blocking(...)`"
        ]
    late_s = lag.percentile(99) / 1e9
    if late_s > lag_limit_s:
        return [
            f"the event loops of the workers were late by {late_s:.3f} s at p99, above lag_limit_s "
            f"({lag_limit_s:g} s): add workers, or take fewer virtual users"
        ]
    return []
