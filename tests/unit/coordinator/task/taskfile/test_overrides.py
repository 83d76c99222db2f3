"""Values set from the command line: what they name, what they change, what is refused."""

import copy

import pytest

from osbench.common.errors import TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.task.taskfile import checked_task
from osbench.coordinator.task.taskfile.overrides import override

TASK = {
    "version": 2,
    "title": "t",
    "subtasks": [
        {"title": "One. Two", "scenario": {"Dummy.dummy": {"sleep": 1}}, "sla": {}},
        {
            "title": "One",
            "workloads": [
                {"scenario": {"Dummy.dummy": {}}, "runner": {"constant": {"times": 4}}},
                {"scenario": {"Dummy.failure": {}}, "runner": {"rps": {"rps": 1, "times": 9}}},
                {"name": "Odd. One", "scenario": {"Dummy.failure": {}}},
            ],
        },
    ],
}
TASK_1 = {
    "Dummy.dummy": [
        {"args": {"sleep": 1}, "runner": {"type": "constant", "times": 4}},
        {"context": {"dummy_context": {}}},
    ]
}


def changed(task, *texts):
    before = copy.deepcopy(task)
    value, problems = override(task, texts)
    assert task == before
    assert problems == []
    return value


def refused(task, *texts):
    _, problems = override(task, texts)
    return [str(problem) for problem in problems]


@pytest.mark.parametrize("workload", ["0.0", "One. Two.0", "One. Two.Dummy.dummy"])
def test_a_simple_subtask_is_its_own_workload(workload):
    value = changed(TASK, f"{workload}.args.sleep=0.25", f"{workload}.runner.times=3")

    assert value["subtasks"][0]["scenario"] == {"Dummy.dummy": {"sleep": 0.25}}
    assert value["subtasks"][0]["runner"] == {"serial": {"times": 3}}


@pytest.mark.parametrize("key", ["1.0.runner.times", "One.Dummy.dummy.runner.constant.times"])
def test_keys_of_a_runner_go_by_its_name_or_without(key):
    value = changed(TASK, f"{key}=7")

    assert value["subtasks"][1]["workloads"][0]["runner"] == {"constant": {"times": 7}}


@pytest.mark.parametrize("workload", ["1.2", "One.Odd. One"])
def test_a_workload_goes_by_its_name(workload):
    value = changed(TASK, f"{workload}.args.sleep=3")

    assert value["subtasks"][1]["workloads"][2]["scenario"] == {"Dummy.failure": {"sleep": 3}}


def test_whole_parts_and_missing_ones_can_be_set():
    value = changed(
        TASK,
        "1.1.runner={constant: {times: 2}}",
        "1.1.args={sleep: 2}",
        "0.0.sla.failure_rate.max=5",
        "0.0.warmup=1.5",
        "0.0.warmup=2",
        "0.0.context.dummy_context={}",
    )

    first, second = value["subtasks"][0], value["subtasks"][1]["workloads"][1]
    assert second == {
        "scenario": {"Dummy.failure": {"sleep": 2}},
        "runner": {"constant": {"times": 2}},
    }
    assert first["sla"] == {"failure_rate": {"max": 5}}
    assert first["warmup"] == 2
    assert first["contexts"] == {"dummy_context": {}}


def test_version_1_has_the_same_keys():
    value = changed(
        TASK_1,
        "Dummy.dummy.0.args.sleep=2",
        "0.0.runner.times=5",
        "0.0.runner.constant.concurrency=2",
        "0.1.contexts.dummy_context.fail_setup=true",
    )

    first, second = value["Dummy.dummy"]
    assert first == {
        "args": {"sleep": 2},
        "runner": {"type": "constant", "times": 5, "concurrency": 2},
    }
    assert second["context"] == {"dummy_context": {"fail_setup": True}}


def test_everything_that_cannot_be_set_is_reported():
    problems = refused(
        TASK,
        "0.0.args.sleep",
        "7.0.args.sleep=1",
        "Three.0.args.sleep=1",
        "1.Dummy.failure.args.sleep=1",
        "1.3.args.sleep=1",
        "0.0=1",
        "0.0.args.sleep.more=1",
        "0.0.args.sleep=[",
    )

    assert len(problems) == 8
    assert "write subtask.workload.key=value" in problems[0]
    assert "there is no subtask 7: they are 0 to 1" in problems[1]
    assert "there is no subtask 'Three'" in problems[2]
    assert "names several workloads, take a position: 1, 2" in problems[3]
    assert "there is no workload 3" in problems[4]
    assert "a key must follow the workload" in problems[5]
    assert "'more' cannot be set in 1" in problems[6]
    assert problems[7].startswith("--set 0.0.args.sleep: the value ")


def test_a_list_is_gone_through_by_position():
    task = {"Dummy.dummy": [{"hooks": [{"description": "a"}]}]}

    assert changed(task, "0.0.hooks.0.description=b") == {
        "Dummy.dummy": [{"hooks": [{"description": "b"}]}]
    }
    assert "there is no '1' in a list of 1" in refused(task, "0.0.hooks.1.description=b")[0]


def test_a_value_that_does_not_fit_is_refused_at_its_place():
    with pytest.raises(TaskError) as caught:
        checked_task(TASK, "task.yaml", Plugins(), ["1.0.runner.times=none", "1.0.runner.tims=3"])

    places = {problem.place for problem in caught.value.problems}
    assert places == {
        "subtasks[1].workloads[0].runner.constant.times",
        "subtasks[1].workloads[0].runner.constant.tims",
    }


def test_a_broken_task_is_reported_before_any_override():
    with pytest.raises(TaskError) as caught:
        checked_task({"version": 2, "subtasks": 3}, "task.yaml", Plugins(), ["0.0.args.sleep=1"])

    assert "--set" not in str(caught.value)
