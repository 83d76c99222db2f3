"""Settings that a runner with its own code refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from osbench.common.errors import TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.task.taskfile.loading import checked_task

EU = {"zone": "eu", "share": 30}
PLUGIN = """
from osbench.common.plugin.scripted_runner import ScriptedRunner
from osbench.plugin import scenario


class Own(ScriptedRunner):
    NAME = "scripted_own"


class Living(scenario.Scenario):
    @scenario.configure()
    def go(self):
        pass

    def on_stop(self):
        pass


class Looping(scenario.Scenario):
    @scenario.configure()
    async def go(self):
        pass
"""


@pytest.fixture
def problems(tmp_path: Path) -> Any:
    (tmp_path / "own.py").write_text(PLUGIN)
    plugins = Plugins([str(tmp_path / "own.py")])

    def found(name: str, **more: Any) -> list[str]:
        workload = {"scenario": {name: {}}, "runner": {"scripted_own": {}}, **more}
        document = {"version": 2, "title": "t", "subtasks": [{"title": "s", **workload}]}
        try:
            checked_task(document, "task", plugins)
        except TaskError as error:
            return [f"{one.place}: {one.message}" for one in error.problems]
        return []

    return found


def test_most_scenarios_run(problems):
    assert problems("Dummy.dummy") == []


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("Living.go", {}, "Living.go has on_stop for virtual users, and the runner scripted_own"),
        ("Looping.go", {}, "Looping.go is `async def`, and the runner scripted_own starts"),
        ("Dummy.dummy", {"think": {"min": 1}}, "think: has no effect: the runner scripted_own"),
        ("Dummy.dummy", {"users": {"max_rate": 5}}, "users: has no effect: the runner scripted"),
        ("Dummy.dummy", {"workers": EU}, "workers: has no effect: the runner scripted_own"),
    ],
)
def test_what_needs_virtual_users_is_refused(problems, name, more, said):
    (problem,) = problems(name, **more)

    assert said in problem
    assert problem.endswith("use a runner of osbench")
