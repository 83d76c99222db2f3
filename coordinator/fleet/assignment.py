"""Splits the workers of a run among workloads under load together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from osbench.common.errors import FleetError
from osbench.coordinator.fleet.worker import WorkerHandle, carried


@dataclass(frozen=True, kw_only=True)
class AskedUsers:
    """Number of virtual users that a workload requests."""

    #: The workload's.
    name: str
    #: Of an open load 1: as many as are busy at once, a number that is unknown before.
    count: int
    is_open: bool
    #: They are coroutines, not threads.
    coroutines: bool


@dataclass(frozen=True, kw_only=True)
class WorkerNeeds:
    """Number of workers and virtual users that a task needs."""

    #: Worker processes, at least.
    workers: int
    #: Virtual users at once over all workers, of both kinds and of each.
    users: int
    threads: int
    coroutines: int
    #: Threads of a worker that is the only one of a workload among others.
    threads_alone: int


def needs(groups: Sequence[Sequence[AskedUsers]]) -> WorkerNeeds:
    """Return the most that any group needs; the workloads of a group are under load together."""
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
    """Return the workers of each workload, by position; None if they do not suffice.

    `capacities` are the virtual users that each worker can have of each workload. Each workload
    gets at least one worker, and as many as carry its virtual users. Each of the other workers goes
    to the workload with the least capacity for its users; an open load counts like the average of
    the closed loads.
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
    """Return the workers of each workload of a group.

    `title` is that of the subtask. Raises FleetError if the workers are too few.
    """
    if len(group) == 1:
        return [list(workers)]
    capacities = [
        [carried(worker.beat, coroutines=one.coroutines) for one in group] for worker in workers
    ]
    found = split_workers(capacities, group)
    if found is None:
        asked = ", ".join(
            f"{one.name} {'any number' if one.is_open else one.count}" for one in group
        )
        have = ", ".join(_carries(worker, group) for worker in workers)
        raise FleetError(
            f"{title}: its workloads run at once, each on its own worker processes. "
            f"They ask for virtual users ({asked}); the {len(workers)} workers have "
            f"{have}. Start more with osbench-worker, or with larger --virtual-users"
        )
    return [[workers[position] for position in part] for part in found]


def _carries(worker: WorkerHandle, group: Sequence[AskedUsers]) -> str:
    """Describe how many virtual users of each requested kind a worker can have."""
    kinds = sorted({one.coroutines for one in group})
    return " or ".join(str(carried(worker.beat, coroutines=kind)) for kind in kinds)
