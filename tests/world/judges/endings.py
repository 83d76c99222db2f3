"""Every run ends within a bound and has a report; workers are free; no thread dies."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.common.errors import FleetError, OlderCopy, UsageError
from world.coordinators import SimulatedRun
from world.judges.finding import Finding
from world.world import World


def of_world(world: World, *, is_over: bool, is_released: bool) -> Iterator[Finding]:
    """Hangs, and threads that ended by an exception."""
    if not is_over:
        runs = [run for run in world.runs.values() if not run.over]
        # of two histories neither may have an end
        if not runs or not all(run.restored for run in runs):
            yield Finding("hang", ", ".join(run.plan.run_id for run in runs))
    if not is_released:
        yield Finding("not released", ", ".join(one.name for one in world.held()))
    for who, error in world.scheduler.failures:
        yield Finding(f"failed: {type(error).__name__}", f"{who}: {error!r}")
    for text in world.internal_errors:
        yield Finding("internal error", text)


def of_run(run: SimulatedRun) -> Iterator[Finding]:
    """A run that is over has its report, unless nothing of it had begun."""
    if not run.over or run.summary is not None:
        return
    # one without a plan was killed before it had written what it wants
    alone = isinstance(run.error, FleetError | UsageError)
    if run.restored and isinstance(run.error, OlderCopy):
        # nobody has a copy any more that could be gone on with
        return
    if run.known.starts or not (alone or run.interrupts):
        yield Finding("no report", f"{run.plan.run_id}: {run.error!r}")
