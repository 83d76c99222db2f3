"""Divides the workers of a run among the workloads that are under load at once. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from osbench.common.errors import FleetError
from osbench.coordinator.load.fleet.worker import WorkerHandle, most_users


@dataclass(frozen=True, kw_only=True)
class AskedUsers:
    """Virtual users that one workload requests: how many, and threads or coroutines."""

    #: Name of the workload.
    name: str
    #: 1 for an open load: it needs as many as are busy at once, which is unknown before.
    count: int
    is_open: bool
    #: Whether they are coroutines instead of threads.
    coroutines: bool


@dataclass(frozen=True, kw_only=True)
class WorkerNeeds:
    """Least worker processes and virtual users with which a task can run; made by `needs`."""

    #: Worker processes, at least.
    workers: int
    #: Virtual users at once over all workers: in all, as threads, as coroutines.
    users: int
    threads: int
    coroutines: int
    #: Most threads of one workload that shares its group with others; a worker must carry them
    #: if it is the only worker of that workload. 1 if there are none.
    threads_alone: int


def needs(groups: Sequence[Sequence[AskedUsers]]) -> WorkerNeeds:
    """Return the needs of a task, from the requests of its workloads.

    `groups` has the workloads that are under load at once: within a group numbers are summed, over
    groups the maximum is taken. Raises ValueError without groups.
    """
    several = [one for group in groups if len(group) > 1 for one in group]
    return WorkerNeeds(
        workers=max(map(len, groups)),
        users=max(map(_count, groups)),
        threads=max(_count(_of_kind(group, coroutines=False)) for group in groups),
        coroutines=max(_count(_of_kind(group, coroutines=True)) for group in groups),
        threads_alone=max(
            (one.count for one in _of_kind(several, coroutines=False)),
            default=1,
        ),
    )


def _of_kind(asked: Iterable[AskedUsers], *, coroutines: bool) -> list[AskedUsers]:
    return [one for one in asked if one.coroutines == coroutines]


def _count(asked: Iterable[AskedUsers]) -> int:
    return sum(one.count for one in asked)


def split_workers(
    capacities: Sequence[Sequence[int]], asked: Sequence[AskedUsers]
) -> list[list[int]] | None:
    """Divide workers among workloads: return positions in `capacities` by workload, ascending.

    Returns None if some workload would get fewer virtual users than it requests. `capacities` has
    for each worker the virtual users that it can have of each workload.

    Workers with larger capacity are assigned first. A worker goes to the workload that still lacks
    most users. If no workload lacks any, the worker goes to the workload with the least capacity
    per requested user. An open load counts there as if it requested the closed loads' average.
    """
    closed = [one.count for one in asked if not one.is_open]
    average = sum(closed) / len(closed) if closed else 1.0
    weights = [average if one.is_open else float(one.count) for one in asked]
    found: list[list[int]] = [[] for _ in asked]
    held = [0] * len(asked)
    for worker in sorted(range(len(capacities)), key=lambda one: -max(capacities[one])):
        lacking = [k for k, one in enumerate(asked) if held[k] < one.count]
        if lacking:
            target = max(lacking, key=lambda k: (asked[k].count - held[k], -k))
        else:
            target = min(range(len(asked)), key=lambda k: (held[k] / weights[k], k))
        found[target].append(worker)
        held[target] += capacities[worker][target]
    if any(have < one.count for have, one in zip(held, asked, strict=True)):
        return None
    return [sorted(workers) for workers in found]


def divide(
    workers: Sequence[WorkerHandle], title: str, group: Sequence[AskedUsers]
) -> list[list[WorkerHandle]]:
    """Divide workers among the workloads of a group, which are under load at once.

    Returns the workers of each, in the order of `group`. A single workload gets them all,
    unchecked. `title` is the title of the subtask, for messages. Raises FleetError if a workload of
    several would get fewer virtual users than it requests.
    """
    if len(group) == 1:
        return [list(workers)]
    capacities = [
        [most_users(worker.beat, coroutines=one.coroutines) for one in group] for worker in workers
    ]
    found = split_workers(capacities, group)
    if found is None:
        asked = ", ".join(
            f"{one.name} {'any number' if one.is_open else one.count}" for one in group
        )
        have = ", ".join(_carries(worker, group) for worker in workers)
        raise FleetError(
            f"{title}: its workloads run at once, each on its own worker processes. They ask for "
            f"virtual users ({asked}); the {len(workers)} workers have {have}. Start more with "
            "osbench-worker, or with larger --virtual-users"
        )
    return [[workers[position] for position in part] for part in found]


def _carries(worker: WorkerHandle, group: Sequence[AskedUsers]) -> str:
    """Return the virtual users that a worker can have, for a message: "4", or "4 or 1000".

    The second form has threads, then coroutines; it is used if the group requests both kinds.
    """
    kinds = sorted({one.coroutines for one in group})
    return " or ".join(str(most_users(worker.beat, coroutines=kind)) for kind in kinds)
