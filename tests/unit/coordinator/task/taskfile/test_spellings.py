"""What users of other load generators write: each is told how it is spelt here."""

import pytest

from osbench.common.errors import TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.task.taskfile import checked_task

PLUGINS = Plugins()
LOAD = {"constant": {"times": 3}}


def problems(document):
    """Message by place."""
    with pytest.raises(TaskError) as error:
        checked_task(document, "task.yaml", PLUGINS)
    return {problem.place: problem.message for problem in error.value.problems}


def task(**keys):
    one = {"title": "a", "scenario": {"Dummy.dummy": {}}, "runner": LOAD, **keys}
    return {"version": 2, "title": "t", "subtasks": [one]}


@pytest.mark.parametrize(
    ("keys", "place", "said"),
    [
        ({"scenario": "Dummy.dummy"}, "scenario", "write {Dummy.dummy: {}}"),
        ({"runner": "constant"}, "runner", "write {constant: {}}"),
        ({"runner": {"stages": [1]}}, "runner.stages", "as in stages: {stages: [{duration: 1m"),
        ({"runner": {"users": 5, "duration": 9}}, "runner", "constant_for_duration: {concurrency"),
        ({"runner": {"ramping-vus": {}}}, "runner.ramping-vus", "write user_stages: {stages: ["),
        ({"runner": {"type": "constant", "times": 2}}, "runner", "spells it {constant: {times}}"),
        ({"runner": {"constant": {"users": 4}}}, "runner.constant.users", "is `concurrency`"),
        ({"runner": {"constant": {"think": 1}}}, "runner.constant.think", "key of the workload"),
        (
            {"runner": {"constant": {"times": 9, "duration": "5s"}}},
            "runner.constant.duration",
            "a duration ends constant_for_duration and, for arrivals, rps and stages",
        ),
        ({"sla": {"p95": 2}}, "sla.p95", "write percentile: {p: 95, max_s: 2}"),
        ({"sla": {"p99.9": "2s"}}, 'sla["p99.9"]', "write percentile: {p: 99.9, max_s: 2s}"),
        ({"sla": {"errors": "1%"}}, "sla.errors", "write failure_rate: {max: 1}"),
        ({"sla": {"failure_rate": "1%"}}, "sla.failure_rate", "an example: {max: 5}"),
        ({"sla": {"failure_rate": {"max": "1%"}}}, "sla.failure_rate.max", "write 1 where percent"),
        ({"think": "1s"}, "think", "an example: {min: 1s, max: 3s}"),
        ({"users": 50}, "users", "how many there are is `concurrency` of the runner"),
        (
            {"scenario": {"Dummy.dummy": {"sleep": "0.1s"}}},
            "scenario.Dummy.dummy",
            "write 0.1, if it is in seconds",
        ),
    ],
)
def test_the_message_has_the_right_spelling(keys, place, said):
    found = problems(task(**keys))

    (where,) = found
    assert where.replace('["', ".").replace('"]', "") == f"subtasks[0].{place}".replace(
        '["', "."
    ).replace('"]', "")
    assert said in found[where]


@pytest.mark.parametrize("key", ["scenario", "runner", "stages"])
def test_keys_of_a_workload_at_the_top_of_a_file_are_told_where_they_belong(key):
    (said,) = problems({"title": "t", key: "x"}).values()

    assert f"has no subtasks: `{key}` belongs into one" in said
    assert "subtasks: [{title: first, scenario: {Dummy.dummy" in said


def test_all_problems_of_a_file_are_told_at_once():
    document = task(
        think="1s", sla={"p95": 2, "failure_rate": "1%"}, runner={"constant": {"rps": 5}}
    )
    document["subtasks"].append({"title": "b", "scenario": "Dummy.dumy"})
    document["subtasks"].append(
        {"title": "c", "workloads": [{"sla": {"p9": 1}}, 7, {"scenario": {"No.such": {}}}]}
    )
    del document["version"]

    assert set(problems(document)) == {
        "version",
        "subtasks[0].think",
        "subtasks[0].sla.p95",
        "subtasks[0].sla.failure_rate",
        "subtasks[0].runner.constant.rps",
        "subtasks[1].scenario",
        "subtasks[2].workloads[0]",
        "subtasks[2].workloads[0].sla.p9",
        "subtasks[2].workloads[1]",
        "subtasks[2].workloads[2].scenario",
    }


def test_problems_of_both_versions_are_told_with_those_of_plug_ins():
    found = problems(
        {"Dummy.dumy": [{"runner": 3, "args": {"a": 1}}], "Dummy.dummy": [{"sla": {"p9": 1}}]}
    )

    assert set(found) == {
        "Dummy.dumy[0].runner",
        "Dummy.dumy[0]",
        "Dummy.dummy[0].sla.p9",
    }


def test_words_that_yaml_reads_as_a_truth_are_told_to_be_quoted():
    document = {**task(), "title": False}

    assert problems(document) == {
        "title": "must be a string, got false: put it in quotes (YAML reads yes, no, on and off as"
        " these)"
    }


def test_checks_that_look_at_the_runner_wait_for_a_right_one():
    found = problems(task(runner=7, users={"start_rate": 3}, warmup=5))

    assert set(found) == {"subtasks[0].runner"}
