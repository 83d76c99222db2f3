"""Nothing is lost or left needlessly: a worker was hurt, or somebody stopped the run.

Of a worker process whose supervisor lives, no more is lost than its users had in hand.
"""

from __future__ import annotations

from collections.abc import Iterator

from world.coordinators import SimulatedRun
from world.judges.finding import Finding

#: What the users of a process may have taken and not started, at most.
IN_HAND = 16


def of_run(run: SimulatedRun) -> Iterator[Finding]:
    """What is lost was held by a worker that was hurt."""
    assert run.services is not None
    hurt = {one.incarnation for one in run.world.workers if one.hurt}
    bequeathed = {one.incarnation for one in run.world.workers if one.bequeaths}
    ledger = run.services.accounts.results[0].ledger
    _, lost, back = run.sets(0)
    for name, held in ledger._held.items():
        # of its second membership in the run, and later ones, a worker has another name
        incarnation = name.partition("+")[0]
        numbers = lost & set(held.open.members().tolist())
        # the second Ctrl-C leaves what runs, and so does one while Redis is away
        left = run.interrupts > 1 or run.given_up
        # a coordinator may have acknowledged what was on its disk, or on another copy, only
        left = left or run.restored or run.damaged
        if numbers and incarnation not in hurt and not left:
            yield Finding("needlessly lost", f"{sorted(numbers)[:8]} of {incarnation}")
        unstarted = [number for number in numbers if not run.known.started[number]]
        if incarnation in bequeathed and len(unstarted) > IN_HAND and not left:
            yield Finding("lost in spite of a will", f"{len(unstarted)} of {incarnation}")
    if back and not run.interrupts and not hurt:
        yield Finding("needlessly not started", str(len(back)))
