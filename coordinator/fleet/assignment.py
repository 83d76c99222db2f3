"""Splits the workers of a run among workloads that are under load at once. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osbench.common.errors import FleetError
from osbench.common.plugin.runner import Runner
from osbench.coordinator.fleet.worker import WorkerHandle


@dataclass(frozen=True, kw_only=True)
class WorkerNeeds:
    """What a task asks of the workers of a run."""

    #: Worker processes, at least.
    workers: int
    #: Virtual users at once, over all workers.
    users: int
    #: Virtual users that a worker must have where it is the only one of a workload among others.
    users_alone: int


def needs(groups: Sequence[Sequence[Runner]]) -> WorkerNeeds:
    """What groups of workloads ask for at most, each group under load at once.

    Open runners need only one virtual user.
    """
    users = [[_users(runner) for runner in group] for group in groups]
    return WorkerNeeds(
        workers=max(map(len, users)),
        users=max(map(sum, users)),
        users_alone=max((max(group) for group in users if len(group) > 1), default=1),
    )


def _users(runner: Runner) -> int:
    return 1 if runner.OPEN else runner.concurrency


def split_workers(capacities: Sequence[int], runners: Sequence[Runner]) -> list[list[int]] | None:
    """The workers, by position, of each workload; None where they do not suffice.

    Each gets at least one, and as many as carry its virtual users. The others go where there
    is least for what is asked; an open runner counts like the average of the closed ones.
    """
    asked = [_users(runner) for runner in runners]
    closed = [users for users, runner in zip(asked, runners, strict=True) if not runner.OPEN]
    average = sum(closed) / len(closed) if closed else 1.0
    weights = [
        average if runner.OPEN else float(users)
        for users, runner in zip(asked, runners, strict=True)
    ]
    found: list[list[int]] = [[] for _ in asked]
    held = [0] * len(asked)
    for worker in sorted(range(len(capacities)), key=lambda one: -capacities[one]):
        lacking = [k for k in range(len(asked)) if held[k] < asked[k]]
        if lacking:
            target = max(lacking, key=lambda k: (asked[k] - held[k], -k))
        else:
            target = min(range(len(asked)), key=lambda k: (held[k] / weights[k], k))
        found[target].append(worker)
        held[target] += capacities[worker]
    if any(have < want for have, want in zip(held, asked, strict=True)):
        return None
    return [sorted(workers) for workers in found]


def divide(
    workers: Sequence[WorkerHandle], title: str, group: Sequence[tuple[str, Runner]]
) -> list[list[WorkerHandle]]:
    """The workers of each workload (scenario and runner) of a group under load at once.

    `title` is that of the subtask. Raises FleetError where the workers are too few.
    """
    if len(group) == 1:
        return [list(workers)]
    found = split_workers(
        [worker.beat.capacity for worker in workers], [runner for _, runner in group]
    )
    if found is None:
        asked = ", ".join(
            f"{scenario} {'any number' if runner.OPEN else runner.concurrency}"
            for scenario, runner in group
        )
        capacities = ", ".join(str(worker.beat.capacity) for worker in workers)
        raise FleetError(
            f"{title}: its workloads run at once, each on worker processes of its "
            f"own. They ask for virtual users ({asked}); the {len(workers)} workers have "
            f"{capacities}. Start more with osbench-worker, or with larger --virtual-users"
        )
    return [[workers[position] for position in part] for part in found]
