"""How many iterations go to a worker at once: pure arithmetic.

A batch is about a second of work and a worker has about two. Before the first results
it is not known how many iterations that is: batches double, so that the worker's own claims (by
what it measures) decide how much of it starts. Near the end batches shrink, so that no worker
is left alone with a tail.
"""

from __future__ import annotations

from osbench.coordinator.fleet.worker import WorkerHandle

#: Work a worker should have, and a batch of it, in seconds.
AHEAD_S = 2.0
BATCH_S = 1.0
#: Shortest batch near the end, seconds.
SHORTEST_S = 0.1
#: Iterations that a virtual user may be sent before anything is known of their length.
BLIND = 65536
#: Batches with rows that a worker may be sent before anything is known.
LIMITED = 8


def blind_sizes(share: int, fair: int | None, limit: int | None = None) -> list[int]:
    """Batch sizes to send to one worker before anything is known.

    `fair` is the worker's part of the plan by its share; None is without end. All of it may be
    sent: what turns out to be too much is taken back before it is claimed. No batch is more
    than an eighth of it, so that the end can be levelled out. Where a batch has a `limit`, for
    the rows it carries, there are no more than some such batches.
    """
    total, largest = BLIND * share, BLIND * share
    if fair is not None:
        total = min(total, fair)
        largest = max(share, fair // 8)
    if limit is not None:
        total, largest = min(total, LIMITED * limit), min(largest, limit)
    sizes: list[int] = []
    size = min(share, largest)
    while total > 0:
        sizes.append(min(size, total))
        total -= size
        if len(sizes) > 1:
            size = min(2 * size, largest)
    return sizes


def room(worker: WorkerHandle, outstanding: int) -> int:
    """Iterations by which a worker's stock is below what it should be."""
    return max(2 * worker.share, int(worker.rate * AHEAD_S)) - outstanding


def batch_size(
    worker: WorkerHandle, left: int | None, workers: int, limit: int | None = None
) -> int:
    """Size of the next batch for a worker whose rate is known."""
    size = max(int(worker.rate * BATCH_S), -(-worker.share // 16), 1)
    if left is not None:
        shortest = max(1, int(worker.rate * SHORTEST_S))
        size = min(size, max(shortest, -(-left // (2 * workers))))
    return size if limit is None else min(size, limit)


def too_large(worker: WorkerHandle) -> int:
    """A batch larger than this is more than a worker should claim at once."""
    return max(2 * worker.share, int(worker.rate * AHEAD_S))
