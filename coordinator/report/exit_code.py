"""Rules of the exit code of a run, and the meaning of each code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from osbench.common.plugin.sla import Verdict
from osbench.coordinator.formatting import count
from osbench.coordinator.results.accounting.totals import NOT_MADE, Accounting

#: The load generator was the limit, or its delays may be why a criterion failed.
LIMITED = 4
#: Something around the load failed: a hook, an export, or undoing a context (`cleanup RUN`).
AROUND = 5

MEANINGS = {
    0: "everything ran and every SLA holds",
    1: "an SLA failed, or a workload was aborted",
    2: "the command, task, configuration or deployment is wrong",
    3: "iterations were lost, dropped with a worker or the coordinator, or not started",
    4: "the load generator was the limit, or its delays may be why an SLA failed",
    5: "all is well but for a hook or export that failed, or a context that could not be undone",
    130: "interrupted",
}


def meaning(code: int, dropped: int = 0) -> str:
    """Return the meaning of a run's exit code as a phrase; "unknown" for other codes.

    If `dropped` arrivals did not run, code 0 is not described as if everything ran.
    """
    if code == 0 and dropped:
        return f"every SLA holds, but {count(dropped, 'arrival')} did not run: dropped"
    return MEANINGS.get(code, "unknown")


def worst(codes: Iterable[int]) -> int:
    """Return the exit code of several runs: the worst of `codes`; 0 if there are none.

    From the worst: codes that are not known, 2, 130, 3, 1, 4, 5, 0.
    """
    order = (2, 130, 3, 1, 4, AROUND, 0)
    return min(codes, key=lambda code: order.index(code) if code in order else -1, default=0)


def exit_code(
    *,
    broken: bool,
    interrupted: bool,
    aborted: bool,
    accountings: Sequence[Accounting],
    limited: bool,
    verdicts: Sequence[Verdict],
    refused: bool = False,
    around: bool = False,
) -> int:
    """Return the exit code of a run: the first that applies of 2, 130, 3, 1, 4, 5, 0.

    `refused`: a workload could not begin (2). `broken`: the run could not go on (3, as for
    iterations lost or not started). `aborted`: a failed SLA stopped the load, so iterations that
    did not start are expected (1). A failed verdict is 1, or 4 if all are disputed. `limited`: the
    load generator was the limit (4). `around`: a hook failed, or a context was not undone (5).
    """
    if refused:
        return 2
    if interrupted:
        return 130
    if broken or any(
        sums.lost
        or (sums.not_started and not aborted)
        or any(sums.drops.get(reason) for reason in NOT_MADE)
        for sums in accountings
    ):
        return 3
    failed = [verdict for verdict in verdicts if not verdict.success]
    if any(not verdict.disputed for verdict in failed) or (aborted and not failed):
        return 1
    if limited or failed:
        return LIMITED
    return AROUND if around else 0
