"""A closed load never has more virtual users at once than it asks for, nor two of one number."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.coordinator.results.storage.run_directory import RunDirectory
from world.coordinators import SimulatedRun
from world.judges.finding import Finding


def of_run(run: SimulatedRun) -> Iterator[Finding]:
    """Compare the iterations that ran at once with the concurrency."""
    asked = run.plan.task.workloads[0].runner.config.get("concurrency")
    if asked is not None and run.known.most_at_once > asked:
        yield Finding("too many users", f"{run.known.most_at_once} of {asked}")
    most = max(run.known.users, default=0)
    if asked is not None and most > asked and not _lost_users(run):
        yield Finding("a user too many", f"number {most} of {asked}")
    # a user whose iteration timed out ends without `on_stop`
    if run.known.doubled and "timeout" not in run.plan.task.workloads[0].runner.config:
        yield Finding("two users with one number", str(sorted(run.known.doubled)[:8]))


def _lost_users(run: SimulatedRun) -> bool:
    """A worker was lost with the numbers of its users, or left while nobody coordinated."""
    hurt = any(one.hurt for one in run.world.workers)
    hurt = hurt or run.coordinator is None or run.coordinator.number > 1
    return hurt or any(one["do"] == "lost" for one in RunDirectory(run.folder).decisions())
