"""What a finished run's numbers mean: the generator's limits, the exit code."""

from __future__ import annotations

from collections.abc import Sequence

from osbench.common.plugin.sla import Verdict
from osbench.coordinator.report.exit_code import LEFT_BEHIND
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
    # in a load of milliseconds the first hand-out is a large share and means nothing
    if held is not None and held < HELD_ASKED and waited_s > lag_limit_s:
        found.append(
            f"concurrency held is {held:.1%}: a virtual user waited {waited_s:.2f} s for work, "
            "or had no worker"
        )
    return found


def exit_code(
    *,
    broken: bool,
    interrupted: bool,
    aborted: bool,
    accountings: Sequence[Accounting],
    limited: bool,
    verdicts: Sequence[Verdict],
    refused: bool = False,
    left_behind: bool = False,
) -> int:
    """The first that applies: 2, 130, 3, 4, 1, 5, 0.

    `refused`: a later workload could not begin. `left_behind`: contexts could not be undone.
    `aborted`: an SLA was breached and the run stopped for it, which is why iterations were not
    started.
    """
    if refused:
        return 2
    if interrupted:
        return 130
    if broken or any(
        sums.lost or (sums.not_started and not aborted) or sums.drops.get("worker_lost")
        for sums in accountings
    ):
        return 3
    if limited:
        return 4
    if aborted or not all(verdict.success for verdict in verdicts):
        return 1
    return LEFT_BEHIND if left_behind else 0
