"""A closed load never has more virtual users at once than it asks for, nor two of one number."""

from __future__ import annotations

from collections.abc import Iterator

from world.coordinators import SimulatedRun
from world.judges.finding import Finding


def of_run(run: SimulatedRun) -> Iterator[Finding]:
    """Compare the iterations that ran at once with the concurrency."""
    asked = run.plan.task.workloads[0].runner.config.get("concurrency")
    if asked is not None and run.known.most_at_once > asked:
        yield Finding("too many users", f"{run.known.most_at_once} of {asked}")
    hurt = any(one.hurt for one in run.world.workers)
    if asked is not None and run.known.users and not hurt and max(run.known.users) > asked:
        yield Finding("a user too many", f"number {max(run.known.users)} of {asked}")
    # a user whose iteration timed out ends without `on_stop`
    if run.known.doubled and "timeout" not in run.plan.task.workloads[0].runner.config:
        yield Finding("two users with one number", str(sorted(run.known.doubled)[:8]))
