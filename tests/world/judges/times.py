"""Rows say what happened: what ended ok had ended, and took as long as it took."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.block_contents import counted_rows
from osbench.coordinator.results.storage.run_directory import RunDirectory
from world import present
from world.coordinators import SimulatedRun
from world.judges.finding import Finding

#: How far the time of a row may be from the true one, seconds.
WITHIN_S = 0.001


def of_run(run: SimulatedRun) -> Iterator[Finding]:
    """Compare rows with what the world knows."""
    # a thread that was put aside between its last act and the look at the clock took longer
    exact = not present.scheduler().preempt
    for workload, incarnation, rows in counted_rows(RunDirectory(run.folder)):
        if workload:
            continue
        name = incarnation.partition(".")[0]
        ok = rows.outcome == Outcome.OK
        took = (rows.ended - rows.started)[ok] / 1e9
        for number, seconds in zip(rows.iteration[ok].tolist(), took.tolist(), strict=True):
            true_s = run.known.took_s.get((name, number), [])
            if not true_s:
                yield Finding("ok though it has not ended", f"{number} on {name}")
            elif exact and min(abs(one - seconds) for one in true_s) > WITHIN_S:
                yield Finding("a row tells another time", f"{number}: {seconds} for {true_s}")
