"""Splits the workers of a run among workloads that are under load at once. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osbench.common.errors import FleetError
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.runner import Runner
from osbench.common.task import Subtask, Task, Workload
from osbench.coordinator.fleet.worker import Member


def runner_of(workload: Workload, plugins: Plugins) -> Runner:
    """The runner that a workload names."""
    kind = plugins.get("runner", workload.runner.name)
    assert issubclass(kind, Runner)
    return kind(workload.runner.config)


def together(subtask: Subtask) -> list[tuple[Workload, ...]]:
    """The workloads of a subtask, in groups that are under load at once."""
    if subtask.run_in_parallel:
        return [subtask.workloads]
    return [(workload,) for workload in subtask.workloads]


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a task asks of the workers of a run."""

    #: Worker processes, at least.
    workers: int
    #: Virtual users at once, over all workers.
    users: int
    #: Virtual users that a worker must have where it is the only one of a workload among others.
    users_alone: int


def needs(task: Task, plugins: Plugins) -> Needs:
    """What the task's groups ask for at most; open runners do with any number of users."""
    groups = [
        [_users(runner_of(workload, plugins)) for workload in group]
        for subtask in task.subtasks
        for group in together(subtask)
    ]
    return Needs(
        workers=max(map(len, groups)),
        users=max(map(sum, groups)),
        users_alone=max((max(group) for group in groups if len(group) > 1), default=1),
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
    members: Sequence[Member], subtask: Subtask, group: Sequence[Workload], plugins: Plugins
) -> list[list[Member]]:
    """The workers of each workload of a group. Raises FleetError where they are too few."""
    if len(group) == 1:
        return [list(members)]
    runners = [runner_of(workload, plugins) for workload in group]
    found = split_workers([member.beat.capacity for member in members], runners)
    if found is None:
        asked = ", ".join(
            f"{workload.scenario} {'any number' if runner.OPEN else runner.concurrency}"
            for workload, runner in zip(group, runners, strict=True)
        )
        capacities = ", ".join(str(member.beat.capacity) for member in members)
        raise FleetError(
            f"{subtask.title}: its workloads run at once, each on worker processes of its "
            f"own. They ask for virtual users ({asked}); the {len(members)} workers have "
            f"{capacities}. Start more with osbench-worker, or with larger --virtual-users"
        )
    return [[members[position] for position in part] for part in found]
