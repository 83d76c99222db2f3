"""Task files end to end: what is accepted, and the messages about what is not."""

import io
import json

import pytest

from osbench.common.errors import TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.task.taskfile import load, semantics
from osbench.coordinator.task.taskfile.parsing import parse

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
                            "runner": {"constant": {"times": 0, "timeout": "3 sec", "tmies": 1}},
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
    assert problems.pop(f"{runner}.timeout") == (
        'must be seconds, or a duration such as 30s, 5m or 1h30m, got "3 sec"'
    )
    assert problems.pop(f"{runner}.tmies") == "unknown key (did you mean times?), got 1"
    assert "got 101" in problems.pop(f"{second}.sla.failure_rate.max")
    assert "'speed'" in problems.pop(f"{second}.sla.speed")
    assert "'castles'" in problems.pop(f"{second}.contexts.castles")
    assert "'call'" in problems.pop(f"{second}.hooks[0].action")
    assert "is missing" in problems.pop(f"{second}.hooks[0].trigger.event")
    assert "'constnat'; did you mean constant" in problems.pop(f"{third}.runner.constnat")
    assert problems == {}


def test_an_item_that_is_no_object_moves_no_other_item_of_version_1(refusal):
    runner = {"type": "constant", "tmies": 4}

    problems = refusal({"Dummy.dumy": [5, {"args": {}}], "Dummy.dummy": [None, {"runner": runner}]})
    alone = refusal({"Dummy.dumy": [{"args": 5, "runner": runner}], "Dummy.dummy": [5]})

    unknown = "unknown key (did you mean times?), got 4"
    assert "'Dummy.dumy'; did you mean Dummy.dummy" in problems.pop("Dummy.dumy[1]")
    assert problems == {
        "Dummy.dumy[0]": "must be an object, got 5",
        "Dummy.dummy[0]": "must be an object, got null",
        "Dummy.dummy[1].runner.tmies": unknown,
    }
    assert alone == {
        "Dummy.dumy[0].args": "must be an object, got 5",
        "Dummy.dumy[0].runner.tmies": unknown,
        "Dummy.dummy[0]": "must be an object, got 5",
    }


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
        (
            {"rps": 1},
            "",
            "give either times, iterations in all, or duration, seconds: both are missing",
        ),
    ],
)
def test_rates_that_cannot_be(refusal, config, place, message):
    problems = refusal(one(runner={"rps": config}))

    assert problems == {f"subtasks[0].runner.rps{place}": message}


MIXED = {"scenario": {"Dummy.dummy": {}, "Dummy.failure": {}}, "mix": {"Dummy.dummy": 1}}


def test_a_search_without_a_criterion_of_its_own_is_refused(write, plugins, refusal):
    search = {"search": {"low": 1, "high": 9}}
    own = {"failure_rate": {"max": 0}}

    bare = refusal(one(runner=search))
    empty = refusal(one(runner=search, sla={}))
    good = load(write(one(runner=search, sla=own)), args={}, plugins=plugins)
    steady = load(write(one(runner={"serial": {"times": 1}})), args={}, plugins=plugins)

    assert bare == empty
    assert bare["subtasks[0].sla"] == (
        "is missing: search looks for the load at which a criterion breaks; add one, such as "
        "percentile: {p: 95, max_s: 500ms, of: response}"
    )
    for task in (good, steady):
        assert [sla.name for sla in task.workloads[0].sla] == ["failure_rate"]


def mixed(weights, **more):
    return one(**MIXED | {"mix": weights} | more)


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
        (
            {
                "title": "t",
                "subtasks": [MIXED | {"title": "s", "mix": {"Dummy.dummy": 1, "Dummy.failure": 1}}],
            },
            "version",
            "is missing: add version: 2",
        ),
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
            "names 2 scenarios: name one, or add their weights as mix: {Dummy.dummy: 1, Dummy.fa",
        ),
        (
            one(users={"data": "users.csv"}),
            "subtasks[0].users.data",
            'must be an object, got "users.csv"; an example: {file: users.csv}',
        ),
        (one(mix={"Dummy.dummy": 1}), "subtasks[0].mix", "is for several scenarios, but"),
        (mixed({"Dummy.dummy": 1}), "subtasks[0].mix", "has no weight for Dummy.failure"),
        (
            mixed({"Dummy.dummy": 1, "Dummy.failure": 1, "Dummy.dumy": 1}),
            "subtasks[0].mix.Dummy.dumy",
            "is not in `scenario`; did you mean Dummy.dummy",
        ),
        (
            mixed({"Dummy.dummy": 0, "Dummy.failure": 1}),
            "subtasks[0].mix.Dummy.dummy",
            "must be more than 0, got 0",
        ),
        (
            mixed({"Dummy.dummy": 1, "Dummy.failure": 1}, args_from="x.csv"),
            "subtasks[0].args_from",
            "gives arguments to one scenario: with a mix use users: {data: ...}",
        ),
        (
            {"version": 2, "title": "t", "subtasks": [{"title": "s", "workloads": [MIXED]}]},
            "subtasks[0].workloads[0].mix",
            "has no weight for Dummy.failure",
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


def test_a_broken_plugin_is_a_problem_only_of_a_task_that_may_need_it(write, tmp_path):
    (tmp_path / "plugin.py").write_text("1 / 0")
    plugins = Plugins([str(tmp_path / "plugin.py")])

    assert load(write(one()), args={}, plugins=plugins).workloads
    with pytest.raises(TaskError, match=r"no runner 'broken', .*plugin\.py:1: ZeroDivisionError"):
        load(write(one(runner={"broken": {}})), args={}, plugins=plugins)


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


def test_durations_have_units_in_every_part_of_a_workload(write, plugins):
    task = load(
        write(
            one(
                runner={"stages": {"stages": [{"duration": "1m30s", "target": 5}], "timeout": "2"}},
                warmup="500ms",
                sla={"percentile": [{"p": 99, "max_s": "250ms"}], "max_avg_duration": "1s"},
                hooks=[
                    {
                        "action": {"sys_call": {"command": "true", "timeout": "1m"}},
                        "trigger": {"event": {"unit": "time", "at": ["1m", 5]}},
                    },
                    {
                        "action": {"sys_call": "5m"},
                        "trigger": {"periodic": {"unit": "time", "step": "10s"}},
                    },
                ],
            )
        ),
        args={},
        plugins=plugins,
    )

    (workload,) = task.workloads
    assert workload.runner.config == {"stages": [{"duration": 90, "target": 5}], "timeout": 2}
    assert workload.warmup_s == 0.5
    assert [one.config for one in workload.sla] == [[{"p": 99, "max_s": 0.25}], 1]
    first, second = workload.hooks
    assert first.action.config == {"command": "true", "timeout": 60}
    assert first.trigger.config["at"] == [60, 5]
    assert (second.action.config, second.trigger.config["step"]) == ("5m", 10)


def test_durations_of_virtual_users_windows_and_rules_have_units_too(write, plugins):
    task = load(
        write(
            one(
                runner={"user_stages": {"stages": [{"duration": "1m", "users": 2}]}},
                think={"min": "500ms", "max": "1s"},
                http={"base": "http://shop", "timeout": "2s"},
                abort={"failure_rate": 50, "over_s": "10s", "after_s": "5s"},
                sla={"failure_rate": {"max": 5, "over_s": "10s"}},
            )
        ),
        args={},
        plugins=plugins,
    )

    (workload,) = task.workloads
    assert workload.runner.config == {"stages": [{"duration": 60, "users": 2}]}
    assert (workload.abort["over_s"], workload.abort["after_s"]) == (10, 5)
    assert workload.sla[0].config == {"max": 5, "over_s": 10}


def test_durations_of_version_1_and_in_overrides_have_units_too(write, plugins):
    text = "Dummy.dummy: [{warmup: 5s, runner: {type: constant_for_duration, duration: 10s}}]"

    task = load(write(text), args={}, plugins=plugins, overrides=["0.0.runner.duration=5m"])

    (workload,) = task.workloads
    assert (workload.warmup_s, workload.runner.config) == (5.0, {"duration": 300})


def test_a_problem_of_the_file_is_not_reported_as_one_of_an_override(write, plugins):
    path = write("version: 2\ntitle: t\nsubtasks: [{titel: x}]")

    def places(overrides):
        with pytest.raises(TaskError) as caught:
            load(path, args={}, plugins=plugins, overrides=overrides)
        return [problem.place for problem in caught.value.problems]

    assert places(["x.0.args.sleep=1"]) == places([])


def test_what_is_no_duration_is_refused_with_what_is_one(refusal):
    wanted = "must be seconds, or a duration such as 30s, 5m or 1h30m"
    problems = refusal(one(warmup="-5s"))
    assert problems == {"subtasks[0].warmup": f'{wanted}, got "-5s"'}

    problems = refusal(
        one(
            runner={"constant_for_duration": {"duration": "5 minutes", "concurrency": "5s"}},
            hooks=[
                {
                    "action": {"sys_call": "true"},
                    "trigger": {"event": {"unit": "iteration", "at": ["5s"]}},
                }
            ],
        )
    )
    assert problems == {
        "subtasks[0].runner.constant_for_duration.duration": f'{wanted}, got "5 minutes"',
        "subtasks[0].runner.constant_for_duration.concurrency": 'must be an integer, got "5s"',
        "subtasks[0].hooks[0].trigger.event.at[0]": 'must be an integer, got "5s"',
    }


USERS = {"data": {"file": "u.csv"}}


@pytest.mark.parametrize(
    ("workload", "place", "said"),
    [
        ({"runner": {"rps": {"rps": 1, "times": 1}}, "think": {"min": 1}}, "think", "no effect"),
        ({"think": {"min": 2, "max": "1s"}}, "think", "max 1 is less than min 2"),
        (
            {"runner": {"rps": {"rps": 1, "times": 1}}, "users": {"start_rate": 1}},
            "users.start_rate",
            "needs a closed runner",
        ),
        (
            {"runner": {"rps": {"rps": 1, "times": 1}}, "users": {"max_rate": 1}},
            "users.max_rate",
            "needs a closed runner",
        ),
        (
            {
                "runner": {"constant": {"times": 9, "concurrency": 3, "ramp_up": 3}},
                "users": {"start_rate": 1},
            },
            "users.start_rate",
            "say the same",
        ),
        (
            {"runner": {"constant": {"times": 9, "concurrency": 3}}, "users": USERS},
            "users.data",
            "u.csv has 2 rows for 3 virtual users",
        ),
        ({"users": {"data": {"file": "large.csv"}}}, "users.data.file", "larger than 16 MiB"),
        ({"users": {"data": {"file": "none.csv"}}}, "users.data.file", "cannot be read"),
        ({"http": {"base": "shop.example"}}, "http.base", ""),
        ({"http": {"bse": "http://x"}}, "http.bse", "did you mean base?"),
        ({"http": {"base": "http://x:port"}}, "http.base", "host or port cannot be read"),
        ({"http": {"headers": {"X A": "b"}}}, "http.headers", "'X A' is not a header name"),
        ({"http": {"headers": {"X": "a\n"}}}, "http.headers", "the header X holds"),
        (
            {"scenario": {"HttpFlow.run": {"steps": [{"path": "/a"}]}}},
            "scenario.HttpFlow.run",
            "'/a' is below base, and there is none",
        ),
    ],
)
def test_what_users_are_like_is_checked(refusal, tmp_path, workload, place, said):
    (tmp_path / "u.csv").write_text("name\nann\nbob\n")
    (tmp_path / "large.csv").write_text("name\n" + ("x" * 1023 + "\n") * (17 << 10))

    problems = refusal(one(**workload))

    assert said in problems[f"subtasks[0].{place}"]


@pytest.mark.parametrize("data", [{"order": "cycle"}, {"order": "random"}])
def test_users_may_share_rows(write, plugins, tmp_path, data):
    (tmp_path / "u.csv").write_text("name\nann\n")
    runner = {"constant": {"times": 9, "concurrency": 3}}
    users = {"data": {"file": "u.csv", **data}}

    (workload,) = load(write(one(runner=runner, users=users)), args={}, plugins=plugins).workloads

    assert workload.users == users


def test_a_workload_has_the_name_that_the_file_gives_it_or_that_of_its_scenario(write, plugins):
    text = "Dummy.dummy: [{name: Checkout}, {}]"

    named, unnamed = load(write(text), args={}, plugins=plugins).workloads

    assert (named.name, named.scenario) == ("Checkout", "Dummy.dummy")
    assert unnamed.name == "Dummy.dummy"


@pytest.mark.parametrize("name", [" ", "", 5, "n" * 129])
def test_what_is_no_name_is_refused(refusal, name):
    assert list(refusal(one(name=name))) == ["subtasks[0].name"]


ABORTED = WARMED.replace("warmup: %s", "abort: %s")


def test_a_rule_to_abort_is_read(write, plugins):
    text = ABORTED % "{failure_rate: 50, over_s: 2, after_s: 1}"
    (workload,) = load(write(text), args={}, plugins=plugins).workloads

    assert workload.abort == {"failure_rate": 50, "over_s": 2, "after_s": 1}


def test_times_of_stages_windows_and_rules_are_written_as_durations(write, plugins):
    stages = [{"duration": "2m", "users": 3}]
    text = one(
        runner={"user_stages": {"stages": stages}},
        abort={"failure_rate": 50, "over_s": "10s", "after_s": "1m"},
        sla={"failure_rate": {"max": 5, "over_s": "30s"}},
    )
    (workload,) = load(write(text), args={}, plugins=plugins).workloads

    assert workload.runner.config == {"stages": [{"duration": 120, "users": 3}]}
    assert workload.abort == {"failure_rate": 50, "over_s": 10, "after_s": 60}
    assert workload.sla[0].config == {"max": 5, "over_s": 30}


@pytest.mark.parametrize(
    ("rule", "place", "message"),
    [
        ("{failure_rate: 50}", "", "after_s 0 and over_s 10 together must be less than the 5 s"),
        ("{failure_rate: 50, over_s: 2, after_s: 3}", "", "never ends the load"),
        ("{over_s: 2}", "", "has no limit to watch"),
        ("{}", "", "must name at least 1"),
        ("50", "", "must be an object"),
        ("{failure_rate: 0, over_s: 2}", ".failure_rate", "more than 0"),
        ("{failure_rate: 101, over_s: 2}", ".failure_rate", "at most 100"),
        ("{failure_rate: 50%, over_s: 2}", ".failure_rate", "must be a number"),
        ("{failure_rate: 50, over_s: 0.1}", ".over_s", "at least 1"),
        ("{failure_rat: 50}", ".failure_rat", "failure_rate"),
        ("{percentile: {p: 95}, over_s: 2}", ".percentile", "max_s"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused(refusal, rule, place, message):
    assert message in refusal(ABORTED % rule)[f"subtasks[0].abort{place}"]


REQUEST = {"url": "http://shop/", "method": "GET", "status_code": 200}


def test_what_a_scenario_does_not_take_is_refused_at_its_place(write, plugins):
    args = {**REQUEST, "url": "htp://shop/{user}", "heders": {"A": 1}}

    with pytest.raises(TaskError) as caught:
        load(write(one(scenario={"HttpRequests.check_request": args})), args={}, plugins=plugins)

    problems = caught.value.problems
    assert {one.place for one in problems} == {"subtasks[0].scenario.HttpRequests.check_request"}
    assert [one.message.partition(" ")[0] for one in problems] == ["url", "url", "heders"]


def test_each_row_of_a_data_file_is_checked_by_row_and_column(write, plugins):
    rows = ["http://shop/1,200", "htp://shop/2,200", 'http://shop/3,"""ok"""']
    write("\n".join(["url,status_code:json", *rows]), "r.csv")
    task = one(
        scenario={"HttpRequests.check_request": {"method": "GET"}},
        args_from="r.csv",
        runner={"serial": {"times": 3}},
    )

    with pytest.raises(TaskError) as caught:
        load(write(task), args={}, plugins=plugins)

    first, second = caught.value.problems
    assert first.place == second.place == "subtasks[0].args_from"
    assert first.message.startswith("r.csv, row 2: url must begin with http://")
    assert second.message == (
        "r.csv, row 3: argument 'status_code' of HttpRequests.check_request must be int | None,"
        " not 'ok'"
    )


def test_a_data_file_that_cannot_be_read_leaves_its_arguments_open(write, plugins):
    write("url,status_code:json\nhttp://shop/1,no\n", "r.csv")
    task = one(scenario={"HttpRequests.check_request": {"method": "GET"}}, args_from="r.csv")

    with pytest.raises(TaskError) as caught:
        load(write(task), args={}, plugins=plugins)

    (problem,) = caught.value.problems
    assert "line 2: column status_code is not JSON" in problem.message


def test_of_many_wrong_rows_the_first_are_told(write, plugins):
    write("sleep\n" + "x\n" * 100, "s.csv")

    with pytest.raises(TaskError) as caught:
        load(
            write(one(args_from="s.csv", runner={"serial": {"times": 3}})), args={}, plugins=plugins
        )

    assert len(caught.value.problems) == 10


@pytest.mark.parametrize(
    ("scenario", "args", "criterion", "said"),
    [
        (
            "Authenticate.keystone",
            {},
            "max_avg_duration",
            "max_avg_duration may pass more easily than with Rally's scenario, "
            "Authenticate.keystone@rally, which asks Keystone for its versions first",
        ),
        (
            "KeystoneBasic.create_user",
            {},
            "max_seconds_per_iteration",
            "max_seconds_per_iteration may pass more easily than with Rally's scenario, "
            "KeystoneBasic.create_user@rally, which logs in in each iteration, as here with "
            "`session: per_iteration`",
        ),
        ("KeystoneBasic.create_user", {"session": "per_iteration"}, "max_avg_duration", ""),
        (
            "NovaServers.boot_server",
            {"session": "per_iteration"},
            "max_avg_duration",
            "max_avg_duration: durations differ from Rally's scenario, "
            "NovaServers.boot_server@rally, which sleeps up to 1 s before the first poll and up to "
            "2 s between polls; here they are at most 10 % or 0.1 s late",
        ),
        (
            "Octavia.create_and_list_pools",
            {"session": "per_iteration"},
            "max_seconds_per_iteration",
            "max_seconds_per_iteration: durations differ from Rally's scenario, "
            "Octavia.create_and_list_pools@rally, which sleeps up to 2 s between polls; here they "
            "are at most 10 % or 0.1 s late",
        ),
        ("NovaServers.list_servers", {"session": "per_iteration"}, "max_avg_duration", ""),
        ("NovaServers.boot_server", {"session": "per_iteration"}, "throughput", ""),
        ("KeystoneBasic.create_user", {}, "throughput", ""),
        ("Placement.list_resource_providers", {}, "max_avg_duration", ""),
        ("Dummy.dummy", {}, "max_avg_duration", ""),
    ],
)
def test_a_limit_of_rally_that_is_easier_here_is_noted(plugins, scenario, args, criterion, said):
    wanted = {"min": 1} if criterion == "throughput" else 1
    sla = {criterion: wanted, "failure_rate": {"max": 0}}
    workload = {"title": "w", "scenario": {scenario: args}, "sla": sla}
    document = {"version": 2, "title": "t", "subtasks": [workload]}

    found = [one.message for one in semantics.notes(parse(document, "task.yaml"), plugins)]

    assert found == ([said] if said else [])


def test_a_place_for_a_value_that_nothing_fills_in_is_noted(write, plugins):
    args = {**REQUEST, "headers": {"X-User": "{user}", "X-Run": "{run}-{iteration}"}}
    task = load(write(one(scenario={"HttpRequests.check_request": args})), args={}, plugins=plugins)

    (note,) = semantics.notes(task, plugins)

    assert note.message == "{user} is sent as it is: only {iteration} and {run} are filled in"


@pytest.mark.parametrize(
    ("runner", "key", "other"),
    [("stages", "users", "user_stages"), ("user_stages", "target", "stages")],
)
def test_stages_of_the_other_kind_name_their_runner(refusal, runner, key, other):
    found = refusal(one(runner={runner: {"stages": [{"duration": 5, key: 3}]}}))

    (message,) = [text for place, text in found.items() if place.endswith(f"stages[0].{key}")]
    assert f"in stages are the runner {other})" in message


def test_a_mix_is_one_workload_whose_parts_are_checked(refusal):
    weights = {"Dummy.dummy": 3, "Dummy.failure": 1}
    task = parse(mixed(weights), "-")

    (workload,) = task.workloads
    assert workload.scenario == "Dummy.dummy + Dummy.failure"
    assert workload.args["Dummy.dummy"] == {"weight": 3, "args": {}}
    scenarios = {"Dummy.dummy": {"sleep": "long"}, "Dummy.failure": {}}
    problems = refusal(one(scenario=scenarios, mix=weights))
    assert "argument 'sleep' of Dummy.dummy" in "".join(problems.values())


STEP = {"name": "hello", "path": "http://x/{data.nmae}"}
ASKED = {"url": "http://x", "method": "GET", "status_code": 200}


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ({"users": {"data": {"file": "u.csv"}}}, "{data.nmae} is not a column of users.data; did"),
        ({}, "{data.nmae} needs a data file: users: {data: {file: ...}}"),
        (
            {
                "users": {"data": {"file": "u.csv"}},
                "scenario": {
                    "HttpFlow.run": {"steps": [STEP]},
                    "HttpRequests.check_request": ASKED,
                },
                "mix": {"HttpFlow.run": 1, "HttpRequests.check_request": 1},
            },
            "{data.nmae} is not a column of users.data; did you mean name",
        ),
    ],
)
def test_a_flow_names_columns_of_its_users(refusal, tmp_path, workload, said):
    (tmp_path / "u.csv").write_text("name\nann\n")

    problems = refusal(one(**{"scenario": {"HttpFlow.run": {"steps": [STEP]}}} | workload))

    assert [problem.startswith(said) for problem in problems.values()] == [True]
