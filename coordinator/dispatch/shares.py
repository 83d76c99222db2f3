"""Moves virtual users between workers so that there are never more than requested. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from osbench.coordinator.fleet.worker import WorkerHandle


def regrant(
    workers: Sequence[WorkerHandle], targets: Sequence[int], elsewhere: int = 0
) -> list[WorkerHandle]:
    """Change the shares of workers (numbers of virtual users) towards their targets.

    Returns the workers whose share changed. `elsewhere`: users that other workers may still have.

    A share is lowered at once, and counts as held until the worker's heartbeat shows that it has
    released its users (design: lower, wait, raise). Only users that are not held go to others.
    """
    changed = []
    for worker, target in zip(workers, targets, strict=True):
        worker.target = target
        if target < worker.share:
            worker.share = target
            worker.generation += 1
            changed.append(worker)
    held = sum(max(worker.share, worker.held) for worker in workers)
    free = sum(targets) - held - elsewhere
    for worker in workers:
        # users that it still holds itself can be given back to it
        kept = max(worker.share, worker.held)
        share = min(worker.target, kept + max(free, 0))
        if share > worker.share:
            free -= max(0, share - kept)
            worker.share = share
            worker.held = max(kept, share)
            worker.generation += 1
            changed.append(worker)
    return changed
