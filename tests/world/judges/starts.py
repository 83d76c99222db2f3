"""What is not idempotent starts once; what is told not_started or lost to nobody never started."""

from __future__ import annotations

from collections.abc import Iterator

from world import present
from world.coordinators import SimulatedRun
from world.judges.finding import Finding


def of_run(run: SimulatedRun) -> Iterator[Finding]:
    """Compare starts with the final states."""
    known = run.known
    begun = {number for number, count in known.started.items() if count}
    twice = sorted(number for number, count in known.started.items() if count > 1)
    if twice and not run.idempotent:
        yield Finding("started twice", str(twice[:8]))
    settled, lost, back = run.sets(0)
    if (back - settled - lost) & begun:
        yield Finding(
            "not_started though started", str(sorted((back - settled - lost) & begun)[:8])
        )
    if begun - settled - lost - back:
        yield Finding("started and not accounted for", str(sorted(begun - settled - lost)[:8]))
    # a thread that was put aside between its look at the lease and the start is late by right
    late = [one for one in known.starts if one.though_lost]
    if late and not present.scheduler().preempt:
        yield Finding("started after it was lost", str(late[0]))
