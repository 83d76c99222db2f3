"""Subtasks and workloads are picked by name or position, or cut down to one iteration of each."""

from __future__ import annotations

import pytest

from osbench.common.errors import UsageError
from osbench.common.task import HookConfig, Named, Subtask, Task, Workload
from osbench.coordinator.task.taskfile import parse
from osbench.coordinator.task.taskfile.selection import Selection, once

TASK = parse(
    {
        "version": 2,
        "title": "t",
        "subtasks": [
            {"title": "one", "scenario": {"Dummy.dummy": {}}},
            {
                "title": "many",
                "workloads": [
                    {"scenario": {"Dummy.dummy": {}}},
                    {"scenario": {"Dummy.failure": {}}},
                    {"name": "Slow", "scenario": {"Dummy.dummy": {"sleep": 1}}},
                ],
            },
            {"title": "1", "scenario": {"Dummy.failure": {}}},
        ],
    },
    "task.yaml",
)


def places(subtasks: tuple[str, ...] = (), workloads: tuple[str, ...] = ()) -> list[str]:
    narrowed = Selection(subtasks=subtasks, workloads=workloads).of(TASK)
    return [workload.place.removeprefix("subtasks") for workload in narrowed.workloads]


@pytest.mark.parametrize(
    ("subtasks", "workloads", "taken"),
    [
        ((), (), ["[0]", "[1].workloads[0]", "[1].workloads[1]", "[1].workloads[2]", "[2]"]),
        (("one",), (), ["[0]"]),
        (("0",), (), ["[0]"]),
        (("many", "0"), (), ["[0]", "[1].workloads[0]", "[1].workloads[1]", "[1].workloads[2]"]),
        (("1",), (), ["[2]"]),
        ((), ("Dummy.failure",), ["[1].workloads[1]", "[2]"]),
        (("many",), ("Dummy.dummy",), ["[1].workloads[0]", "[1].workloads[2]"]),
        (("many",), ("1", "2"), ["[1].workloads[1]", "[1].workloads[2]"]),
        ((), ("2",), ["[1].workloads[2]"]),
        ((), ("Slow",), ["[1].workloads[2]"]),
    ],
)
def test_what_is_named_is_taken_and_a_title_goes_before_a_position(subtasks, workloads, taken):
    assert places(subtasks, workloads) == taken


def test_what_is_taken_keeps_its_title_and_position():
    narrowed = Selection(subtasks=("many",), workloads=("1",)).of(TASK)

    (subtask,) = narrowed.subtasks
    assert (subtask.title, subtask.workloads[0].position) == ("many", 1)
    assert (narrowed.title, narrowed.source) == ("t", "task.yaml")


@pytest.mark.parametrize(
    ("subtasks", "workloads", "said"),
    [
        (("mny",), (), "--subtask 'mny': there is no such subtask; did you mean many"),
        (("zzz",), (), "there is no such subtask; there are 'one', 'many', '1'"),
        (("3",), (), "--subtask 3: there is no such subtask; they are 0 to 2"),
        (("one",), ("Dummy.failure",), "there is no such workload; there are 'Dummy.dummy'"),
        ((), ("Slwo",), "there is no such workload; did you mean Slow"),
        (("one",), ("1",), "--workload 1: there is no such workload; they are 0 to 0"),
    ],
)
def test_what_is_not_there_is_refused(subtasks, workloads, said):
    with pytest.raises(UsageError) as caught:
        places(subtasks, workloads)

    assert said in str(caught.value)


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
