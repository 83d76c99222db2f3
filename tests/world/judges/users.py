"""A closed load never has more virtual users at once than it asks for."""

from __future__ import annotations

from collections.abc import Iterator

from world.coordinators import SimulatedRun
from world.judges.finding import Finding


def of_run(run: SimulatedRun) -> Iterator[Finding]:
    """Compare the iterations that ran at once with the concurrency."""
    asked = run.plan.task.workloads[0].runner.config.get("concurrency")
    if asked is not None and run.known.most_at_once > asked:
        yield Finding("too many users", f"{run.known.most_at_once} of {asked}")
