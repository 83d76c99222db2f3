"""Triggers by arithmetic, the native action, and what firing does with actions that do wrong."""

import json
import threading
from collections import Counter
from dataclasses import asdict
from types import SimpleNamespace

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.engines import until
from helpers.processes import is_living
from helpers.readme import REPOSITORY
from osbench.common.errors import TaskError
from osbench.common.plugin.hook import Event, Failed
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import HookConfig, Named
from osbench.coordinator.plugins.hooks.executor import AT_ONCE, KEPT, ActiveHook, Result
from osbench.coordinator.plugins.hooks.sys_call import READ, SysCall
from osbench.coordinator.plugins.triggers.event import EventTrigger
from osbench.coordinator.plugins.triggers.periodic import PeriodicTrigger
from osbench.coordinator.task.taskfile import load
from servers.child import PATIENCE_S

SAMPLE = REPOSITORY / "samples" / "plugins" / "hook.py"
NOW = Event(unit="time", value=1)

PLUGIN = """
import threading
from servers.child import PATIENCE_S
from osbench.plugin import hook

RELEASE = threading.Event()

class Waits(hook.Hook):
    NAME = "waits"

    def run(self, event):
        RELEASE.wait(60)

class Stoppable(hook.Hook):
    NAME = "stoppable"

    def __init__(self, config):
        super().__init__(config)
        self.over = threading.Event()

    def run(self, event):
        self.config.set()
        self.over.wait(60)

    def stop(self):
        self.over.set()

class Slow(hook.Hook):
    NAME = "slow"

    def __init__(self, config):
        super().__init__(config)
        config["go on"].wait(60)

    def run(self, event):
        self.config["ran"] = True

class Does(hook.Hook):
    NAME = "does"

    def run(self, event):
        match self.config:
            case "raise":
                raise RuntimeError("no http://user:hunter2@host/")
            case "exit":
                raise SystemExit(3)
            case "answer":
                return {"complete": [{"title": "t", "chart_plugin": "Pie", "data": [["a", 1]]}]}
            case "infinite":
                return {"complete": [{"title": "t", "chart_plugin": "Pie", "data": float("inf")}]}
            case "nonsense":
                return {"surprise": 1}
            case "text":
                return "all is well"
"""


@pytest.fixture
def plugins(tmp_path):
    file = tmp_path / "hooks.py"
    file.write_text(PLUGIN)
    return Plugins([str(file)])


def hooks_of(plugins, name, config=None, unit="iteration", **trigger):
    """One hook; it fires at iteration 1 by default."""
    trigger = trigger or {"at": [1]}
    kind = "event" if "at" in trigger else "periodic"
    described = HookConfig(
        action=Named(name=name, config=config),
        trigger=Named(name=kind, config={"unit": unit, **trigger}),
    )
    return ActiveHook(described, plugins)


def settled(hooks):
    """The results of the only hook by event, and how many of each status, once all have ended."""
    until(lambda: not hooks.running())
    return so_far(hooks)


def so_far(hooks):
    counted = hooks.pending()
    counts = Counter()
    for result, times in counted:
        counts[result.status] += times
    results = sorted((result for result, _ in counted), key=lambda one: one.event.value)
    return SimpleNamespace(results=results, counts=counts)


# triggers


def test_an_event_is_due_once_when_its_value_is_passed():
    trigger = EventTrigger({"unit": "time", "at": [5, 0, 3]})

    rounds = [list(trigger.due(*pair)) for pair in ((-1, 0), (0, 2), (2, 9), (9, 100))]

    assert rounds == [[0], [], [3, 5], []]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"unit": "time", "step": 4}, [0, 4, 8, 12]),
        ({"unit": "iteration", "step": 4}, [1, 5, 9, 13]),
        ({"unit": "iteration", "step": 3, "start": 2, "end": 8}, [2, 5, 8]),
        ({"unit": "time", "step": 1, "start": 9, "end": 8}, []),
    ],
)
def test_periods_have_a_start_and_an_end(config, expected):
    assert list(PeriodicTrigger(config).due(-1, 15)) == expected


VALUES = st.integers(min_value=1, max_value=300)


@given(
    st.one_of(
        st.fixed_dictionaries({"at": st.lists(VALUES, min_size=1, unique=True)}),
        st.fixed_dictionaries({"step": VALUES}, optional={"start": VALUES, "end": VALUES}),
    ),
    st.lists(VALUES, min_size=1).map(sorted),
)
def test_it_does_not_matter_how_often_one_looks(config, looks):
    kind = EventTrigger if "at" in config else PeriodicTrigger
    trigger = kind({"unit": "iteration", **config})
    jsonschema.validate(trigger.config, trigger.CONFIG_SCHEMA)

    in_steps, seen = [], -1
    for now in looks:
        in_steps += trigger.due(seen, now)
        seen = now

    assert in_steps == list(trigger.due(-1, looks[-1]))


@pytest.mark.parametrize(
    ("hook", "place", "message"),
    [
        ({"trigger": {"evnt": {}}}, "trigger", "no trigger 'evnt'; did you mean event"),
        (
            {"trigger": {"event": {"unit": "iteration", "at": [0]}}},
            "trigger.event.at[0]",
            "must be at least 1, got 0",
        ),
        ({"trigger": {"event": {"unit": "hours", "at": [1]}}}, "trigger.event.unit", '"iteration"'),
        (
            {"trigger": {"periodic": {"unit": "iteration", "step": 1, "start": 0}}},
            "trigger.periodic.start",
            "must be at least 1, got 0",
        ),
        ({"trigger": {"event": {"unit": "time", "at": []}}}, "trigger.event", "at"),
        ({"trigger": {"periodic": {"unit": "time"}}}, "trigger.periodic", "step"),
        ({"action": {"sys_call": "echo 'a"}}, "action", "No closing quotation"),
        ({"action": {"sys_call": " "}}, "action", "it is empty"),
        ({"action": {"sys_call": {"command": "a", "timeout": 0}}}, "action", "0"),
    ],
)
def test_what_a_task_asks_of_hooks_is_checked(tmp_path, hook, place, message):
    trigger = {"event": {"unit": "time", "at": [0]}}
    good = {"action": {"sys_call": "true"}, "trigger": trigger}
    subtask = {"title": "a", "scenario": {"Dummy.dummy": {}}, "hooks": [{**good, **hook}]}
    file = tmp_path / "task.json"
    file.write_text(json.dumps({"version": 2, "title": "t", "subtasks": [subtask]}))

    with pytest.raises(TaskError) as found:
        load(str(file), args={}, plugins=Plugins())

    (problem,) = found.value.problems
    assert f"hooks[0].{place}" in problem.place
    assert message in problem.message


# sys_call


def text_of(output):
    (chart,) = output["complete"]
    assert chart["chart_plugin"] == "TextArea"
    return chart["data"]


def test_a_command_is_reported_with_what_it_printed():
    output = SysCall("sh -c 'echo one; echo two >&2'").run(NOW)

    assert text_of(output) == ["Return code: 0", "Stdout: one\n", "Stderr: two\n"]


def test_a_command_meets_no_shell():
    output = SysCall("echo $HOME ; ls").run(NOW)

    assert text_of(output)[1] == "Stdout: $HOME ; ls\n"


def test_what_a_command_prints_beyond_the_limit_is_cut_and_says_so():
    least, more = (
        text_of(SysCall(f"head -c {size} /dev/zero").run(NOW))[1] for size in (READ, READ + 1)
    )

    assert least == f"Stdout: {chr(0) * READ}"
    assert more == f"{least}\n(cut: only 65,536 bytes are read)"


def test_charts_on_stdout_are_the_output():
    chart = {"title": "t", "chart_plugin": "Pie", "data": [["a", 1]]}
    printed = json.dumps({"additive": [chart]})

    output = SysCall(f"echo '{printed}'").run(NOW)

    assert output == {"additive": [chart], "complete": []}


def test_another_return_code_is_a_failure_with_its_output():
    with pytest.raises(Failed, match="returned 3") as found:
        SysCall("sh -c 'echo sorry; exit 3'").run(NOW)

    assert text_of(found.value.output)[:2] == ["Return code: 3", "Stdout: sorry\n"]


def test_a_command_that_hangs_is_ended_with_all_it_started(tmp_path):
    pid = tmp_path / "pid"
    command = f"sh -c 'sleep 600 & echo $! > {pid}; wait'"

    with pytest.raises(Failed, match="not ended after 3 s"):
        SysCall({"command": command, "timeout": 3}).run(NOW)

    child = int(pid.read_text())
    until(lambda: not is_living(child))


def test_a_command_that_is_stopped_before_it_starts_ends_at_once():
    action = SysCall("sleep 600")
    action.stop()

    with pytest.raises(Failed, match="returned -"):
        action.run(NOW)


def test_passwords_in_addresses_are_hidden():
    output = SysCall("echo http://user:hunter2@host/").run(NOW)

    assert "hunter2" not in json.dumps(output)


# firing


def test_a_hook_fires_once_for_each_value(plugins):
    hooks = hooks_of(plugins, "does", "answer", unit="time", at=[0, 2])

    for elapsed_s in (0.0, 0.5, 1.9, 2.0, 2.4):
        hooks.look(elapsed_s, 0)
    report = settled(hooks)

    assert [result.event.value for result in report.results] == [0, 2]
    assert report.counts == {"success": 2}
    assert report.results[0].output["complete"][0]["data"] == [["a", 1]]


@pytest.mark.parametrize(
    ("config", "status", "etype"),
    [
        ("raise", "failed", "RuntimeError"),
        ("exit", "failed", "SystemExit"),
        ("infinite", "validation_failed", "ValueError"),
        ("nonsense", "validation_failed", "ValueError"),
        ("text", "validation_failed", "ValueError"),
    ],
)
def test_an_action_that_does_wrong_is_a_result(plugins, config, status, etype):
    hooks = hooks_of(plugins, "does", config)

    hooks.look(0.0, 1)
    report = settled(hooks)

    (result,) = report.results
    assert (result.status, result.error.etype) == (status, etype)
    assert result.output is None
    assert report.counts == {status: 1}
    assert "hunter2" not in result.error.msg + result.error.details


def test_an_action_that_does_not_end_has_failed(plugins):
    hooks = hooks_of(plugins, "waits")

    hooks.look(0.0, 1)
    hooks.stop()
    report = so_far(hooks)

    assert len(hooks.running()) == 1
    assert report.results[0].error.etype == "NotEnded"
    assert report.counts == {"failed": 1}


def test_an_action_is_asked_to_end(plugins):
    begun = threading.Event()
    hooks = hooks_of(plugins, "stoppable", begun)
    hooks.look(0.0, 1)
    assert begun.wait(PATIENCE_S)

    hooks.stop()

    assert settled(hooks).counts == {"success": 1}


def test_an_action_that_is_asked_to_end_before_it_began_does_not_run(plugins):
    config = {"go on": threading.Event(), "ran": False}
    hooks = hooks_of(plugins, "slow", config)
    hooks.look(0.0, 1)

    hooks.stop()
    config["go on"].set()

    report = settled(hooks)
    assert report.results[0].error.etype == "NotRun"
    assert report.counts == {"failed": 1}
    assert not config["ran"]


def test_a_flood_of_firings_is_bounded_and_counted(plugins):
    threads = threading.active_count()
    hooks = hooks_of(plugins, "waits", step=1)

    hooks.look(0.0, 10_000_000)
    report = so_far(hooks)

    assert threading.active_count() - threads <= AT_ONCE
    assert report.counts == {"failed": 10_000_000}
    # a report shows `KEPT` of them
    assert len(report.results) == KEPT + AT_ONCE
    assert report.results[AT_ONCE].error.etype == "NotRun"


def test_a_result_is_handed_out_once(plugins):
    hooks = hooks_of(plugins, "does", "answer")
    hooks.look(0.0, 1)
    until(lambda: not hooks.running())

    ((result, times),) = hooks.take()

    assert (result.status, times) == ("success", 1)
    assert hooks.take() == hooks.pending() == []


def test_a_result_comes_back_as_it_was(plugins):
    hooks = hooks_of(plugins, "does", "raise", unit="time", at=[0])
    hooks.look(0.0, 0)
    (result,) = settled(hooks).results

    assert Result.of(json.loads(json.dumps(asdict(result)))) == result


def test_the_sample_hook(tmp_path):
    file = tmp_path / "alive"
    file.touch()
    plugins = Plugins([str(SAMPLE)])
    hooks = hooks_of(plugins, "withdraw", {"file": str(file), "seconds": 0.05})

    hooks.look(0.0, 1)
    report = settled(hooks)

    assert file.exists()
    assert report.counts == {"success": 1}
    assert "was unreachable at iteration 1" in report.results[0].output["complete"][0]["data"][0]
