"""Phases of a drill in a task file: what is refused before the load, and how."""

import pytest
import yaml

from osbench.common.errors import TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.task.taskfile import load
from osbench.coordinator.task.taskfile.semantics import notes

RPS = {"rps": {"rps": 10, "times": 600}}


def at(*values, unit="time"):
    return {"event": {"unit": unit, "at": list(values)}}


def hook(description, trigger):
    found = {"action": {"sys_call": "true"}, "trigger": trigger}
    return {**found, "description": description} if description else found


STOP, START = hook("stop", at(20)), hook("start", at(40))


def loaded(tmp_path, **workload):
    subtask = {"title": "t", "scenario": {"Dummy.dummy": {}}, "runner": RPS, **workload}
    file = tmp_path / "task.yaml"
    file.write_text(yaml.safe_dump({"version": 2, "title": "t", "subtasks": [subtask]}), "utf-8")
    return load(str(file), args={}, plugins=Plugins())


def refused(tmp_path, **workload):
    with pytest.raises(TaskError) as error:
        loaded(tmp_path, **workload)
    return str(error.value)


@pytest.mark.parametrize(
    "phases", [{"fault": "stop"}, {"fault": "stop", "after": "start"}, {"fault": "sys_call"}]
)
def test_phases_name_hooks(tmp_path, phases):
    hooks = [STOP, START, hook("", at(30))]

    task = loaded(tmp_path, hooks=hooks, phases=phases, sla={"drill": {"failed": {"max": 1}}})

    assert task.workloads[0].phases == phases


@pytest.mark.parametrize(
    ("hooks", "phases", "more", "message"),
    [
        ([], {"fault": "stop"}, {}, "phases.fault: the workload has no hook called 'stop': it has"),
        ([START], {"fault": "stop"}, {}, "its hooks are 'start'; a hook is called by its"),
        ([STOP, STOP], {"fault": "stop"}, {}, "2 hooks are called 'stop': give them descriptions"),
        ([STOP], {"fault": "stop", "after": "stop"}, {}, "phases.after: names the hook of `fault`"),
        ([STOP], {"fault": "stop"}, {"warmup": 30}, "begins 20 s into the load, and the load is"),
        ([hook("stop", at(0))], {"fault": "stop"}, {}, "begins 0 s into the load"),
        ([hook("stop", at(70))], {"fault": "stop"}, {}, "does not fire within the load of 60 s"),
        (
            [hook("stop", at(601, unit="iteration"))],
            {"fault": "stop"},
            {},
            "does not fire within the load of 600 iterations",
        ),
        ([hook("stop", at(10, 20))], {"fault": "stop"}, {}, "fires more than once"),
        (
            [hook("stop", {"periodic": {"unit": "time", "step": 5}})],
            {"fault": "stop"},
            {},
            "fires more than once",
        ),
        (
            [STOP, hook("start", at(20))],
            {"fault": "stop", "after": "start"},
            {},
            "phases.after: begins 20 s into the load, and `fault` at 20 s",
        ),
        ([STOP], {"after": "stop"}, {}, "fault"),
        ([STOP], {"fault": "stop", "before": "stop"}, {}, "before"),
        (
            [STOP],
            {"fault": "stop"},
            {"runner": {"search": {"low": 1, "high": 2}}, "sla": {"failure_rate": {"max": 1}}},
            "cannot be combined with the runner search",
        ),
    ],
)
def test_what_is_no_drill_is_refused(tmp_path, hooks, phases, more, message):
    said = refused(tmp_path, hooks=hooks, phases=phases, **more)

    assert message in said


def test_the_criterion_needs_phases(tmp_path):
    said = refused(tmp_path, sla={"drill": {"failed": {"max": 1}}})

    assert "sla.drill: needs the key `phases` of the workload" in said


def test_a_limit_on_resources_needs_a_scenario_that_creates_some(tmp_path):
    told = {"hooks": [STOP], "phases": {"fault": "stop"}}
    sla = {"drill": {"left_in_error": {"max": 0}}}
    cloud = {"NovaServers.boot_server": {"image": {"name": "i"}, "flavor": {"name": "f"}}}

    said = refused(tmp_path, sla=sla, **told)

    assert "sla.drill.left_in_error: the scenario Dummy.dummy creates no resources" in said
    assert loaded(tmp_path, sla=sla, scenario=cloud, **told).workloads
    for wrong in (5, ["left_in_error"], {"left_in_error": 0}):
        said = refused(tmp_path, sla={"drill": wrong}, scenario=cloud, **told)
        assert ": 1 problem" in said


def test_faulty_hooks_are_told_and_not_missed(tmp_path):
    sla = {"drill": {"failed": {"max": 1}}}

    for phases in ({"fault": "stop"}, 7):
        said = refused(tmp_path, hooks=[{"action": {"sys_call": "x"}}], phases=phases, sla=sla)

        assert "trigger" in said
        assert "no hook called" not in said
        assert "needs the key" not in said


def test_an_unknown_trigger_is_told_once(tmp_path):
    said = refused(tmp_path, hooks=[hook("stop", {"never": {}})], phases={"fault": "stop"})

    assert ": 1 problem" in said
    assert "does not fire" not in said


def test_a_closed_load_is_noted(tmp_path):
    closed = {"constant_for_duration": {"duration": 60, "concurrency": 2}}
    told = {"hooks": [STOP], "phases": {"fault": "stop"}}

    (note,) = notes(loaded(tmp_path, runner=closed, **told), Plugins())

    assert "an open runner, such as rps, shows the full cost of a fault" in str(note)
    assert notes(loaded(tmp_path, **told), Plugins()) == []
