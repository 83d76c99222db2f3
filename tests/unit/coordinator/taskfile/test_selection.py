"""Subtasks and workloads are picked by name or position; the rest of the task is left out."""

from __future__ import annotations

import pytest

from osbench.common.errors import UsageError
from osbench.coordinator.taskfile import parse
from osbench.coordinator.taskfile.selection import Selection

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
