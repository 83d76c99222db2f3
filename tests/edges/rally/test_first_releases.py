"""Plug-ins and tasks as the documents of Rally's first releases have them: run, or told what to do.

The texts are those of "Main concepts of Rally" (Rally 0.1, doc/source, Apache License 2.0) and of
"Scenario runner as a plugin" (Rally 5.1, doc/source/plugins/implementation/runner_plugin.rst).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from osbench.common.errors import PluginError, TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.task.taskfile.loading import checked_task

pytest.importorskip("rally")

SCENARIO = '''\
from rally.task import atomic
from rally.task import scenario


class {name}(scenario.Scenario):
    """My class that contains benchmark scenarios."""

    @atomic.action_timer("action_1")
    def _action_1(self, **kwargs):
        """Do something with the cloud."""

    @atomic.action_timer("action_2")
    def _action_2(self, **kwargs):
        """Do something with the cloud."""

    @scenario.configure()
    def scenario(self, **kwargs):
        self._action_1()
        self._action_2()
'''

RUNNER = '''\
from rally.task import runner
from rally import consts

class {name}(runner.ScenarioRunner):
    """My scenario runner."""

    __execution_type__ = "my_scenario_runner"

    CONFIG_SCHEMA = {{
        "type": "object",
        "$schema": consts.JSON_SCHEMA,
        "properties": {{
            "type": {{
                "type": "string"
            }},
            "some_specific_property": {{...}}
        }}
    }}

    def _run_scenario(self, cls, method_name, ctx, args):
        """Run the scenario 'method_name' from scenario class 'cls'"""
        results = ...

        return runner.ScenarioRunnerResult(results)
'''

RANDOM_TIMES = '''\
import random

from rally.task import runner
from rally import consts


@runner.configure(name="{name}")
class RandomTimesScenarioRunner(runner.ScenarioRunner):
    """Sample scenario runner plugin."""

    CONFIG_SCHEMA = {{
        "type": "object",
        "$schema": consts.JSON_SCHEMA,
        "properties": {{
            "type": {{"type": "string"}},
            "min_times": {{"type": "integer", "minimum": 1}},
            "max_times": {{"type": "integer", "minimum": 1}}
        }},
        "additionalProperties": True
    }}

    def _run_scenario(self, cls, method_name, context, args):
        # runners settings are stored in self.config
        min_times = self.config.get('min_times', 1)
        max_times = self.config.get('max_times', 1)

        for i in range(random.randrange(min_times, max_times)):
            run_args = (i, cls, method_name,
                        runner._get_scenario_context(context), args)
            result = runner._run_scenario_once(run_args)
            # use self.send_result for result of each iteration
            self._send_result(result)
'''

CONTEXT = '''\
from rally.task import context
from rally import consts

@context.configure(name="{name}", # Corresponds to the context field name
                   order=100500,        # a number specifying the priority
                   hidden=False)        # True if the context cannot be configured
class YourContext(context.Context):
    """Yet another context class."""

    # The schema of the context configuration format
    CONFIG_SCHEMA = {{
        "type": "object",
        "$schema": consts.JSON_SCHEMA,
        "additionalProperties": False,
        "properties": {{
            "property_1": {schema},
            "property_2": {schema}
        }}
    }}

    def __init__(self, context):
        super(YourContext, self).__init__(context)
        # Initialize the necessary stuff

    def setup(self):
        """Prepare the environment in the desired way"""

    def cleanup(self):
        """Cleanup the environment properly"""
'''

IMAGE = "73257560-c59b-4275-a1ec-ab140e5b9979"


def written(folder: Path, text: str, name: str = "mine.py") -> str:
    """A plug-in file; returns its path."""
    file = folder / name
    file.write_text(text)
    return str(file)


def problems(document: Any, *paths: str) -> list[str]:
    """Problems of a task."""
    try:
        checked_task(document, "task", Plugins(paths))
    except TaskError as error:
        return [problem.message for problem in error.problems]
    return []


def dummy(**more: Any) -> dict[str, Any]:
    return {"Dummy.dummy": [{"args": {}, **more}]}


def test_arguments_that_were_ids_are_told_what_they_are_now():
    document = {
        "NovaServers.boot_server": [
            {"args": {"flavor_id": 42, "image_id": IMAGE}, "runner": {"times": 3}}
        ],
        "CinderVolumes.create_volume": [{"args": {"size": 42}, "runner": {"times": 3}}],
    }

    said = problems(document)

    assert said == [
        "argument 'image' of NovaServers.boot_server is missing: write image: {id: ...} instead "
        "of image_id",
        "argument 'flavor' of NovaServers.boot_server is missing: write flavor: {id: ...} instead "
        "of flavor_id",
    ]


def test_a_class_with_a_marked_method_is_told_two_ways_to_write_it(tmp_path):
    path = written(tmp_path, SCENARIO.format(name="MyScenarioA"))

    (said,) = problems({"MyScenarioA.scenario": [{"runner": {"times": 3}}]}, path)

    assert f"{path}:16: class MyScenarioA: TypeError: configure() missing 1 required" in said
    assert "@scenario.configure(name=...) above the class and a method run" in said
    assert "write `from osbench.plugin import atomic, scenario` instead" in said


def test_what_it_is_told_to_write_works(tmp_path):
    text = SCENARIO.format(name="MyScenario").replace("from rally.task", "from osbench.plugin")
    path = written(tmp_path, text)

    assert problems({"MyScenario.scenario": [{"runner": {"times": 3}}]}, path) == []


def test_a_runner_without_a_name_is_told_what_to_write(tmp_path):
    path = written(tmp_path, RUNNER.format(name="MyScenarioRunner"))

    (said,) = problems(dummy(runner={"type": "my_scenario_runner"}), path)

    assert f"{path}: class MyScenarioRunner is a runner for Rally without a name" in said
    assert "__execution_type__ = 'my_scenario_runner' is of early releases" in said
    assert said.endswith('put @runner.configure(name="my_scenario_runner") above it')


def test_a_runner_that_starts_iterations_itself_runs_as_it_is(tmp_path):
    path = written(tmp_path, RANDOM_TIMES.format(name="random_times_a"))

    assert problems(dummy(runner={"type": "random_times_a", "min_times": 10}), path) == []


def test_a_context_runs_as_it_is(tmp_path):
    text = CONTEXT.format(name="your_context_a", schema='{"type": "string"}')
    path = written(tmp_path, text)

    assert problems(dummy(context={"your_context_a": {"property_1": "x"}}), path) == []


def test_a_gap_that_the_reader_is_to_fill_is_shown(tmp_path):
    path = written(tmp_path, CONTEXT.format(name="your_context_b", schema="<SCHEMA>"))

    (said,) = problems(dummy(context={"your_context_b": {}}), path)

    assert f'{path}:16: SyntaxError: invalid syntax: "property_1": <SCHEMA>,' in said


@pytest.mark.parametrize("kind", ["runner", "context", "scenario", "hook", "trigger", "exporter"])
def test_where_a_path_was_given_a_message_says_what_it_holds(tmp_path, kind):
    path = written(tmp_path, CONTEXT.format(name=f"held_by_{kind}", schema="{}"))
    plugins = Plugins([path])

    with pytest.raises(PluginError) as refusal:
        plugins.scenario("Nobody.knows") if kind == "scenario" else plugins.get(kind, "zzzzzzzz")

    assert str(refusal.value).endswith(f"; {path} holds context held_by_{kind}")


def test_where_a_path_holds_nothing_the_message_says_so(tmp_path):
    path = written(tmp_path, "import osbench\n")

    with pytest.raises(PluginError, match=f"'zzzzzzzz'; known .*; there is no plug-in in {path}"):
        Plugins([path]).get("runner", "zzzzzzzz")


@pytest.mark.parametrize("after", [False, True])
def test_a_class_that_rally_refuses_costs_no_other_one_and_is_told_once(tmp_path, caplog, after):
    names = [f"Good{after}.one", f"Good{after}.two"]
    good = [
        f"@scenario.configure(name='{name}')\n"
        f"class Good{number}(scenario.Scenario):\n"
        "    def run(self, **kwargs):\n        pass\n"
        for number, name in enumerate(names)
    ]
    bad = f"Bad{after}"
    # of the bad one another is derived, which is no fault of its own
    text = SCENARIO.format(name=bad) + f"class More({bad}):\n    pass\n"
    text = "from rally.task import scenario\n" + good[0] + text + good[1]
    path = written(tmp_path, text)

    said = problems({name: [{}] for name in (*names, f"{bad}.scenario", f"{bad}.other")}, path)

    assert [one.startswith("there is no scenario") for one in said] == [True, True]
    assert sum("TypeError" in one for one in said) == 1
    assert said[1].endswith("not all plug-in files can be used: as said above")
    assert "More" not in "".join(said)
    assert not caplog.messages


def test_a_class_that_osbench_refuses_costs_no_other_one(tmp_path, caplog):
    path = written(
        tmp_path,
        "from osbench.plugin import scenario\n"
        "class One(scenario.Scenario):\n"
        "    @scenario.configure()\n    def go(self): pass\n"
        "class Two(scenario.Scenario):\n"
        "    @scenario.configure()\n    def go(): pass\n"
        "class Three(scenario.Scenario):\n"
        "    value = {}['absent']\n"
        "    @scenario.configure()\n    def go(self): pass\n"
        "class Four(scenario.Scenario):\n"
        "    @scenario.configure()\n    def go(self): pass\n",
    )

    assert problems({"One.go": [{}], "Four.go": [{}]}, path) == []

    assert [text.partition(path)[2][:40] for text in caplog.messages] == [
        ":9: class Three: KeyError: 'absent'",
        ":6: scenario Two.go is called with the s",
    ]
