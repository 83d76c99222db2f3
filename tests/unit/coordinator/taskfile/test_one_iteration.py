"""A task cut down to one iteration of each workload."""

from __future__ import annotations

from osbench.common.task import HookConfig, Named, Subtask, Task, Workload
from osbench.coordinator.taskfile.one_iteration import once

HOOK = HookConfig(action=Named(name="sys_call"), trigger=Named(name="event"))


def workload(position: int, runner: Named) -> Workload:
    return Workload(
        place=f"subtasks[0].workloads[{position}]",
        position=position,
        scenario="Shop.buy",
        args={"item": 3},
        runner=runner,
        contexts=(Named(name="users"),),
        sla=(Named(name="max_avg_duration", config=1),),
        hooks=(HOOK,),
        warmup_s=10.0,
    )


def test_each_workload_runs_once_alone_with_its_arguments_and_contexts() -> None:
    rate = Named(name="rps", config={"rps": 500, "times": 10_000, "timeout": 7})
    serial = Named(name="serial")
    made = (workload(0, rate), workload(1, serial))
    task = Task(title="T", subtasks=(Subtask(title="S", workloads=made, run_in_parallel=True),))

    (subtask,) = once(task).subtasks

    assert not subtask.run_in_parallel
    assert [one.runner.config for one in subtask.workloads] == [
        {"times": 1, "concurrency": 1, "timeout": 7},
        {"times": 1, "concurrency": 1},
    ]
    for before, after in zip(made, subtask.workloads, strict=True):
        assert (after.args, after.contexts, after.place) == (
            before.args,
            before.contexts,
            before.place,
        )
        assert (after.hooks, after.warmup_s) == ((), 0.0)
        assert [one.name for one in after.sla] == ["failure_rate"]
