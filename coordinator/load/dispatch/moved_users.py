"""Moves virtual users between workers so that there are never more than requested. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from osbench.coordinator.load.fleet.worker import WorkerHandle


def regrant(
    workers: Sequence[WorkerHandle], targets: Sequence[int], elsewhere: int = 0
) -> list[WorkerHandle]:
    """Change the user limits of workers towards their targets.

    Returns the workers whose limit changed. `elsewhere`: users that other workers may still have.

    A limit is lowered at once, and counts as held until the worker's heartbeat shows that it has
    released its users (design: lower, wait, raise). Only users that are not held go to others.
    """
    changed = []
    for worker, target in zip(workers, targets, strict=True):
        worker.target = target
        if target < worker.user_limit:
            worker.user_limit = target
            worker.generation += 1
            changed.append(worker)
    held = sum(max(worker.user_limit, worker.held) for worker in workers)
    free = sum(targets) - held - elsewhere
    for worker in workers:
        # users that it still holds itself can be given back to it
        kept = max(worker.user_limit, worker.held)
        limit = min(worker.target, kept + max(free, 0))
        if limit > worker.user_limit:
            free -= max(0, limit - kept)
            worker.user_limit = limit
            worker.held = max(kept, limit)
            worker.generation += 1
            changed.append(worker)
    return changed
