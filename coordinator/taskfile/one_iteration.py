"""A task cut down to one iteration of each workload, for `run --once`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from osbench.common.task import Named, Subtask, Task, Workload

#: What a failed iteration does to the exit code, whatever the SLA of the task.
_SLA = (Named(name="failure_rate", config={"max": 0}),)


def once(task: Task) -> Task:
    """The task with one iteration a workload, one workload at a time, and without hooks.

    Its SLA criteria are replaced: those of a load say nothing about one iteration.
    """
    return replace(task, subtasks=tuple(map(_subtask, task.subtasks)))


def _subtask(subtask: Subtask) -> Subtask:
    workloads = tuple(map(_workload, subtask.workloads))
    return replace(subtask, workloads=workloads, run_in_parallel=False)


def _workload(workload: Workload) -> Workload:
    asked = workload.runner.config
    bound = (
        {"timeout": asked["timeout"]} if isinstance(asked, Mapping) and "timeout" in asked else {}
    )
    runner = Named(name="constant", config={"times": 1, "concurrency": 1, **bound})
    return replace(workload, runner=runner, sla=_SLA, hooks=(), warmup_s=0.0)
