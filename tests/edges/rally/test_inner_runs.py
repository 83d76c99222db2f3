"""Runners that a scenario of Rally starts itself: as in Rally, and told as not accounted for."""

from __future__ import annotations

import copy
import multiprocessing
import threading
from collections import Counter
from typing import Any

import pytest

from osbench.common.plugin.atomic import Names, Recorder
from osbench.common.plugin.context import ContextEnvironment
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.scenario import TELL_KEY

pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")

from osbench.edges.rally.adapters.inner_runs import IterationTask
from osbench.edges.rally.adapters.thread_processes import ThreadProcesses

PLUGIN = '''
import copy
import os
import threading

from rally.task import scenario
from rally.task.runner import ScenarioRunner

PROCESSES = set()
FOUND, STARTED, GO = {}, threading.Event(), threading.Event()


@scenario.configure(name="OsbenchInner.noted")
class Noted(scenario.Scenario):
    def run(self, fail=False, wait=False):
        PROCESSES.add(os.getpid())
        if wait:
            STARTED.set()
            GO.wait()
        if fail:
            raise KeyError("inner")


@scenario.configure(name="OsbenchInner.run")
class Run(scenario.Scenario):
    """As public plug-ins do it."""

    def run(self, runner, args):
        made = ScenarioRunner.get(runner["type"])(task=self.context["task"], config=runner)
        made.run("OsbenchInner.noted", copy.deepcopy(self.context), args)
        FOUND["results"] = [one for batch in made.result_queue for one in batch]
        FOUND["events"] = len(made.event_queue)


@scenario.configure(name="OsbenchInner.left")
class Left(scenario.Scenario):
    """Ends before its runner does."""

    def run(self):
        made = ScenarioRunner.get("serial")(task=self.context["task"], config={"times": 9})
        inner = (("OsbenchInner.noted", copy.deepcopy(self.context), {"wait": True}))
        FOUND["runner"] = made
        FOUND["thread"] = threading.Thread(target=made.run, args=inner)
        FOUND["thread"].start()
        STARTED.wait()
        raise RuntimeError("told to")


@scenario.configure(name="OsbenchInner.look")
class Look(scenario.Scenario):
    def run(self):
        FOUND["task"] = self.context["task"]
        FOUND["env"] = self.context["env"]["uuid"]
'''


class Iterations:
    """Iterations of a scenario, and what they told of themselves."""

    def __init__(self, plugins: Plugins, name: str, args: Any = None) -> None:
        self.plugin = plugins.scenario(name)
        assert self.plugin.prepare is not None
        environment = ContextEnvironment(run="r", scenario=name)
        self.args, self.context = self.plugin.prepare(args or {}, environment)
        self.plugin.cls.warm_up(self.context)
        self.told: list[str] = []
        self.context |= {"scenario": name, TELL_KEY: self.told.append}
        self.found: Any = self.plugin.cls.RALLY.run.__globals__["FOUND"]

    def run(self, iteration: int = 1) -> None:
        scenario: Any = object.__new__(self.plugin.cls)
        scenario._recorder = Recorder(Names())
        scenario.__init__({**self.context, "iteration": iteration})
        getattr(self.plugin.cls, self.plugin.method)(scenario, **self.args)


@pytest.fixture
def plugins(tmp_path):
    file = tmp_path / "osbench_inner_test.py"
    file.write_text(PLUGIN, "utf-8")
    return Plugins([str(file)])


@pytest.mark.parametrize(
    "runner",
    [
        {"type": "serial", "times": 5},
        {"type": "constant", "times": 5, "concurrency": 2},
        {"type": "rps", "times": 5, "rps": 1000},
    ],
)
@pytest.mark.parametrize("fail", [False, True])
def test_inner_iterations_run_and_are_told(plugins, runner, fail):
    runs = Iterations(plugins, "OsbenchInner.run", {"runner": runner, "args": {"fail": fail}})

    runs.run()

    assert [one["error"][:1] for one in runs.found["results"]] == [["KeyError"] * fail] * 5
    assert runs.found["events"] == 5
    said = (
        "iterations of OsbenchInner.noted that OsbenchInner.run started itself by a runner of "
        "Rally: not accounted for"
    )
    assert Counter(runs.told) == {said: 5}


def test_iterations_that_start_runners_at_once_have_no_processes(plugins):
    runner = {"type": "constant", "times": 8, "concurrency": 4}
    runs = Iterations(plugins, "OsbenchInner.run", {"runner": runner, "args": {}})
    threads = [threading.Thread(target=runs.run, args=(number,)) for number in range(1, 9)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(runs.told) == 64
    assert runs.plugin.cls.RALLY.run.__globals__["PROCESSES"] == {
        multiprocessing.current_process().pid
    }


def test_a_runner_ends_with_the_iteration_that_started_it(plugins):
    runs = Iterations(plugins, "OsbenchInner.left")

    with pytest.raises(RuntimeError, match="told to"):
        runs.run()
    runs.plugin.cls.RALLY.run.__globals__["GO"].set()
    runs.found["thread"].join()

    assert len(runs.found["runner"].result_queue) == 1


def test_a_scenario_finds_a_task_as_rallys(plugins):
    runs = Iterations(plugins, "OsbenchInner.look")

    runs.run()

    task = runs.found["task"]
    assert len(task["uuid"]) == 36
    assert task["status"] == "running"
    assert task["env_uuid"] == task["deployment_uuid"] == runs.found["env"]
    assert copy.deepcopy({"task": task})["task"] is task
    with pytest.raises(LookupError, match="the task's title is in Rally's database"):
        task["title"]


def test_a_result_of_another_form_is_refused_as_in_rally():
    task = IterationTask({"uuid": "u"}, lambda _: None)
    result: dict[str, Any] = {
        "duration": 1.0,
        "timestamp": 1.0,
        "idle_duration": 0.0,
        "output": {"additive": [], "complete": []},
        "atomic_actions": [],
        "error": [],
    }

    assert task.result_has_valid_schema(result)
    assert not task.result_has_valid_schema(result | {"duration": 1})
    assert not task.result_has_valid_schema({})


def test_modules_see_threads_until_the_last_runner_has_ended():
    constant = pytest.importorskip("rally.plugins.task.runners.constant")
    rps = pytest.importorskip("rally.plugins.task.runners.rps")
    first = ThreadProcesses(constant.ConstantScenarioRunner, lambda value: value)
    second = ThreadProcesses(rps.RPSScenarioRunner, lambda value: value)

    with first:
        with second:
            assert constant.multiprocessing.Process is not multiprocessing.Process
            assert rps.multiprocessing.Process is not multiprocessing.Process
        assert constant.multiprocessing.Process is not multiprocessing.Process
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert rps.multiprocessing.Process is not multiprocessing.Process
    second.__exit__()

    assert constant.multiprocessing is rps.multiprocessing is multiprocessing
