"""Sizes of the batches of iterations that a worker process gets: pure arithmetic.

A batch is about a second of work and a worker has about two. Before the first results it is not
known how many iterations that is: batches double, so that the excess can be recalled. Near the end
batches shrink, so that no worker is left alone with a tail.
"""

from __future__ import annotations

from osbench.coordinator.load.fleet.worker import WorkerHandle

#: A batch of work, seconds.
BATCH_S = 1.0
#: Shortest batch near the end, seconds.
SHORTEST_S = 0.1


def blind_sizes(users: int, total: int, limit: int | None = None) -> list[int]:
    """Return the sizes of the first batches of a worker whose speed is not known yet.

    They sum to `total`. The first two have an iteration per user (`users`), further ones double.
    `limit` is the most iterations of a batch that carries rows of a data file; None: no limit.
    """
    largest = total if limit is None else min(total, limit)
    sizes: list[int] = []
    size = min(users, largest)
    while total > 0:
        sizes.append(min(size, total))
        total -= size
        if len(sizes) > 1:
            size = min(2 * size, largest)
    return sizes


def batch_size(
    worker: WorkerHandle, left: int | None, workers: int, limit: int | None = None
) -> int:
    """Return the size of the next batch for a worker that has had its first batches.

    About `BATCH_S` seconds of its work, less near the end of the plan; one iteration per user if
    its speed is not known. `left` is the number of iterations of the plan not granted yet (None:
    without end), `workers` the number of workers, `limit` the most iterations of a batch that
    carries rows of a data file.
    """
    if not worker.rate:
        size = worker.user_limit
    else:
        size = max(int(worker.rate * BATCH_S), -(-worker.user_limit // 16), 1)
        if left is not None:
            # a worker takes a batch a round trip
            shortest = max(1, int(worker.rate * (SHORTEST_S + worker.trip_s)))
            size = min(size, max(shortest, -(-left // (2 * workers))))
    return size if limit is None else min(size, limit)
