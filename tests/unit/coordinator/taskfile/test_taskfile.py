"""Task files end to end: what is accepted, and the messages about what is not."""

import io
import json

import pytest

from osbench.common.errors import PluginError, TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.taskfile import load

VERSION_2 = """
version: 2
title: All of it
description: Two subtasks
tags: [nightly, api]
subtasks:
  - title: Simple
    group: g
    description: One workload
    scenario:
      Dummy.dummy: {sleep: 0.1, label: "{run}-{iteration}"}
    runner:
      constant: {times: 4, concurrency: 2, timeout: 3}
    sla:
      failure_rate: {max: 10}
    idempotent: true
    enable_profiler: false
  - title: Complex
    run_in_parallel: true
    workloads:
      - scenario: {Dummy.dummy: {}}
        description: Ours
      - scenario: {Dummy.dummy: {}}
        runner: {rps: {times: 5, rps: 2.5}}
        sla: {}
"""


@pytest.fixture
def plugins():
    return Plugins()


@pytest.fixture
def write(tmp_path):
    def written(text, name="task.yaml"):
        path = tmp_path / name
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        return str(path)

    return written


@pytest.fixture
def refusal(write, plugins):
    """All problems of a task file, one per line, or a mapping from place to message."""

    def refused(document):
        with pytest.raises(TaskError) as caught:
            load(write(document), args={}, plugins=plugins)
        assert caught.value.exit_code == 2
        return {problem.place: problem.message for problem in caught.value.problems}

    return refused


def one(**workload):
    """A version 2 task of one workload."""
    given = {"scenario": {"Dummy.dummy": {}}, "title": "s", **workload}
    return {"version": 2, "title": "t", "subtasks": [given]}


def test_version_2_with_all_its_keys(write, plugins):
    source = write(VERSION_2)

    task = load(source, args={}, plugins=plugins)

    simple, complex_ = task.subtasks
    assert (task.title, task.description, task.tags) == (
        "All of it",
        "Two subtasks",
        ("nightly", "api"),
    )
    assert (task.version, task.source) == (2, source)
    assert (simple.title, simple.group, simple.run_in_parallel) == ("Simple", "g", False)
    assert (complex_.title, complex_.run_in_parallel) == ("Complex", True)
    first, second, third = task.workloads
    assert first.args == {"sleep": 0.1, "label": "{run}-{iteration}"}
    assert (first.runner.name, first.runner.config["times"]) == ("constant", 4)
    assert (first.idempotent, first.enable_profiler) == (True, False)
    assert (second.idempotent, second.enable_profiler) == (False, None)
    assert [w.place for w in task.workloads] == [
        "subtasks[0]",
        "subtasks[1].workloads[0]",
        "subtasks[1].workloads[1]",
    ]
    assert [w.position for w in task.workloads] == [0, 0, 1]
    assert (first.sla[0].config, third.sla) == ({"max": 10}, ())


def test_what_a_workload_leaves_out(write, plugins):
    task = load(write(one()), args={}, plugins=plugins)

    (workload,) = task.workloads
    assert (workload.runner.name, workload.runner.config) == ("serial", {})
    assert [(s.name, s.config) for s in workload.sla] == [("failure_rate", {"max": 0})]
    assert workload.description == plugins.scenario("Dummy.dummy").title
    assert (workload.contexts, workload.hooks) == ((), ())


def test_version_1_with_all_its_keys(write, plugins):
    task = load(
        write(
            {
                "Dummy.dummy": [
                    {"args": {"sleep": 0}, "runner": {"type": "constant", "times": 3}},
                    {"description": "d", "runner": {"times": 2}, "idempotent": True},
                ],
                "Dummy.dummy_exception": [{"sla": {"failure_rate": {"max": 100}}}],
            }
        ),
        args={},
        plugins=plugins,
    )

    first, second, third = task.workloads
    assert task.version == 1
    assert [subtask.title for subtask in task.subtasks] == [
        "Dummy.dummy",
        "Dummy.dummy_exception",
    ]
    assert (first.runner.name, first.runner.config) == ("constant", {"times": 3})
    assert (second.runner.name, second.runner.config) == ("serial", {"times": 2})
    assert (second.description, second.idempotent) == ("d", True)
    assert (third.runner.name, third.sla[0].config) == ("serial", {"max": 100})
    assert [w.place for w in task.workloads] == [
        "Dummy.dummy[0]",
        "Dummy.dummy[1]",
        "Dummy.dummy_exception[0]",
    ]


def test_a_task_from_standard_input(monkeypatch, plugins):
    monkeypatch.setattr("sys.stdin", io.StringIO("Dummy.dummy: [{}]"))

    task = load("-", args={}, plugins=plugins)

    assert (task.source, task.workloads[0].scenario) == ("-", "Dummy.dummy")


def test_task_arguments_fill_the_template(write, plugins):
    text = "Dummy.dummy: [{runner: {times: {{ ceil(times / 2) }} } }]"

    task = load(write(text), args={"times": 5}, plugins=plugins)

    assert task.workloads[0].runner.config == {"times": 3}


def test_all_problems_are_reported_at_once_with_place_and_value(refusal):
    problems = refusal(
        {
            "version": 2,
            "title": "t",
            "subtasks": [
                one(runner={"constant": {"times": 2, "concurrency": 5}})["subtasks"][0],
                {
                    "title": "c",
                    "workloads": [
                        {"scenario": {"Dummy.dumy": {}}},
                        {
                            "scenario": {"Dummy.failure": {"nonsense": 1}},
                            "runner": {"constant": {"times": 0, "timeout": "3", "tmies": 1}},
                            "sla": {"failure_rate": {"max": 101}, "speed": {}},
                            "contexts": {"castles": {}},
                            "hooks": [{"action": {"call": "x"}, "trigger": {"event": {}}}],
                        },
                        {"scenario": {"Dummy.dummy": {}}, "runner": {"constnat": {}}},
                    ],
                },
            ],
        }
    )

    first, second, third = (f"subtasks[1].workloads[{k}]" for k in range(3))
    assert "concurrency 5 and times 2" in problems.pop("subtasks[0].runner.constant")
    assert "'Dummy.dumy'; did you mean Dummy.dummy" in problems.pop(f"{first}.scenario")
    assert "'nonsense'" in problems.pop(f"{second}.scenario.Dummy.failure")
    runner = f"{second}.runner.constant"
    assert problems.pop(f"{runner}.times") == "must be at least 1, got 0"
    assert problems.pop(f"{runner}.timeout") == 'must be a number, got "3"'
    assert problems.pop(f"{runner}.tmies") == "unknown key (did you mean times?), got 1"
    assert "got 101" in problems.pop(f"{second}.sla.failure_rate.max")
    assert "'speed'" in problems.pop(f"{second}.sla.speed")
    assert "'castles'" in problems.pop(f"{second}.contexts.castles")
    assert "'call'" in problems.pop(f"{second}.hooks[0].action")
    assert "is missing" in problems.pop(f"{second}.hooks[0].trigger.event")
    assert "'constnat'; did you mean constant" in problems.pop(f"{third}.runner.constnat")
    assert problems == {}


@pytest.mark.parametrize(
    ("config", "place", "message"),
    [
        ({"times": 1, "rps": 0}, ".rps", "must be more than 0, got 0"),
        ({"times": 1, "rps": "5"}, ".rps", 'must be a number or an object, got "5"'),
        ({"times": 1, "rps": {"start": 1, "end": 2}}, ".rps", "step is missing"),
        (
            {"times": 1, "rps": {"start": 0, "end": 2, "step": 1}},
            ".rps.start",
            "must be at least 1, got 0",
        ),
        (
            {"times": 1, "rps": {"start": 3, "end": 2, "step": 1}},
            "",
            "rps.end must not be less than rps.start, got end 2 and start 3",
        ),
        ({"rps": 1}, "", "times is missing"),
    ],
)
def test_rates_that_cannot_be(refusal, config, place, message):
    problems = refusal(one(runner={"rps": config}))

    assert problems == {f"subtasks[0].runner.rps{place}": message}


@pytest.mark.parametrize(
    ("document", "place", "message"),
    [
        ("", "", "is empty"),
        ("{}", "", "is empty"),
        ("# nothing", "", "is empty"),
        ("- a", "", "must be an object, got a list of 1"),
        ("just text", "", 'must be an object, got "just text"'),
        ({"version": 3}, "version", "must be 1 or 2, got 3"),
        ({"version": "2"}, "version", 'must be 1 or 2, got "2"'),
        ({"version": True}, "version", "must be 1 or 2, got true"),
        ({"version": 1}, "", "names no scenario"),
        ({"title": "t", "subtasks": []}, "", "has subtasks, but no version: add version: 2"),
        (
            {"version": 2, "title": "t", "subtasks": []},
            "subtasks",
            "must hold at least 1, got an empty list",
        ),
        ({"version": 2, "title": "t"}, "", "subtasks is missing"),
        (one(runner={"serial": None}), "subtasks[0].runner.serial", "must be an object, got null"),
        (
            one(scenario={"Dummy.dummy": {}, "Dummy.failure": {}}),
            "subtasks[0].scenario",
            "must name at most 1, got an object with Dummy.dummy, Dummy.failure",
        ),
        (one(idempotent="yes"), "subtasks[0].idempotent", 'must be true or false, got "yes"'),
        (one(title="t" * 129), "subtasks[0].title", "must have at most 128 characters, got"),
        (one(context={}), "subtasks[0].context", "unknown key (did you mean contexts?), got"),
        ({"Dummy.dummy": {}}, "Dummy.dummy", "must be a list, got an empty object"),
        (
            {"Dummy.dummy": [{"contexts": {}}]},
            "Dummy.dummy[0].contexts",
            "unknown key (did you mean context?), got an empty object",
        ),
        (
            {"Dummy.dummy": [{"runner": {"type": "constnat"}}]},
            "Dummy.dummy[0].runner",
            "there is no runner 'constnat'; did you mean constant",
        ),
    ],
)
def test_documents_that_are_no_tasks(refusal, document, place, message):
    problems = refusal(document)

    assert list(problems) == [place]
    assert problems[place].startswith(message)


def test_secrets_are_not_repeated(refusal):
    problems = refusal(one(runner={"constant": {"password": "hunter2"}}))

    assert "hunter2" not in str(problems)


def test_a_file_that_is_not_there(tmp_path, plugins):
    source = str(tmp_path / "absent.yaml")

    with pytest.raises(TaskError, match=r"absent\.yaml: 1 problem\n.*No such file"):
        load(source, args={}, plugins=plugins)


def test_a_file_that_is_not_text(tmp_path, plugins):
    path = tmp_path / "task.yaml"
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(TaskError, match="not text in UTF-8"):
        load(str(path), args={}, plugins=plugins)


def test_a_broken_plugin_is_one_error_and_no_problem_of_the_task(write, tmp_path):
    (tmp_path / "plugin.py").write_text("1 / 0")

    with pytest.raises(PluginError, match=r"plugin\.py:1"):
        load(write(one()), args={}, plugins=Plugins([str(tmp_path / "plugin.py")]))


def test_a_runner_whose_check_raises_is_a_problem(write, tmp_path):
    (tmp_path / "plugin.py").write_text(
        "from osbench.plugin import runner\n"
        "class Broken(runner.Runner):\n"
        "    NAME = 'broken'\n"
        "    @classmethod\n"
        "    def check(cls, config):\n"
        "        return config['absent']\n"
    )
    plugins = Plugins([str(tmp_path / "plugin.py")])

    with pytest.raises(TaskError, match=r"runner\.broken: .*KeyError: 'absent'"):
        load(write(one(runner={"broken": {}})), args={}, plugins=plugins)


WARMED = """
version: 2
title: Warm
subtasks:
  - title: One
    scenario: {Dummy.dummy: {}}
    runner: {constant_for_duration: {duration: 5}}
    warmup: %s
"""


def test_a_warm_up_is_read_and_has_to_leave_something(write, plugins, refusal):
    (workload,) = load(write(WARMED % 1.5), args={}, plugins=plugins).workloads

    assert workload.warmup_s == 1.5
    assert "less than the 5 s" in refusal(WARMED % 5)["subtasks[0].warmup"]
    assert "at least 0" in refusal(WARMED % -1)["subtasks[0].warmup"]
