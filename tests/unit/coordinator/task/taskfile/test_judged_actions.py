"""Limits on actions that a scenario cannot have are refused before the load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from osbench.common.errors import TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.task.taskfile.loading import checked_task

STEPS = [{"name": "place", "path": "/orders"}, {"name": "see", "path": "/orders/1"}]
MIX = [{"name": "browse", "steps": [{"name": "list", "path": "/items"}]}]


def problems(sla: dict[str, Any], **args: Any) -> list[str]:
    flow = {"base": "http://127.0.0.1:1", "steps": STEPS, **args}
    workload = {"scenario": {"HttpFlow.run": flow}, "runner": {"serial": {}}, "sla": sla}
    document = {"version": 2, "title": "t", "subtasks": [{"title": "s", **workload}]}
    try:
        checked_task(document, "task", Plugins())
    except TaskError as error:
        return [f"{one.place}: {one.message}" for one in error.problems]
    return []


def limit(action: str) -> dict[str, Any]:
    return {"percentile": [{"p": 95, "max_s": 1}, {"p": 95, "max_s": 1, "action": action}]}


@pytest.mark.parametrize(
    ("action", "args"),
    [
        ("place", {}),
        ("browse", {"mix": MIX}),
        ("browse > list", {"mix": MIX}),
        ("relogin > login", {"on_start": [{"name": "login", "path": "/login"}]}),
        # made by the client of a service of the deployment
        ("see > re-authentication", {}),
        ("see > retry", {}),
        ("Home > Cart", {"steps": [{"name": "Home > Cart", "path": "/cart"}]}),
        ("GET /orders/{iteration}", {"steps": [{"path": "/orders/{iteration}"}]}),
    ],
)
def test_an_action_that_may_be_there_is_accepted(action: str, args: dict[str, Any]) -> None:
    assert problems(limit(action), **args) == []


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("plcae", "'plcae'; did you mean place?"),
        ("xyz", "'xyz'; it has place, see, relogin, re-authentication, retry"),
        ("browse > see", "'browse'; it has place, see, relogin, re-authentication, retry"),
    ],
)
def test_an_action_that_cannot_be_there_is_refused(action: str, said: str) -> None:
    assert problems(limit(action)) == [
        f"subtasks[0].sla.percentile: HttpFlow.run has no action {said}"
    ]


def test_other_criteria_on_actions_are_checked_too() -> None:
    found = problems({"max_avg_duration_per_atomic": {"place": 1, "seee": 1}})

    assert found == [
        "subtasks[0].sla.max_avg_duration_per_atomic: "
        "HttpFlow.run has no action 'seee'; did you mean see?"
    ]


def test_a_scenario_whose_actions_are_not_known_takes_any() -> None:
    workload = {"scenario": {"Dummy.dummy": {}}, "runner": {"serial": {}}, "sla": limit("any")}

    checked_task(
        {"version": 2, "title": "t", "subtasks": [{"title": "s", **workload}]}, "t", Plugins()
    )


def test_a_plugin_that_raises_is_a_problem_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        """
from osbench.plugin import scenario


class Own(scenario.Scenario):
    @scenario.configure()
    def go(self):
        pass

    @classmethod
    def action_names(cls, method, args):
        raise KeyError("planted")
"""
    )
    workload = {"scenario": {"Own.go": {}}, "runner": {"serial": {}}, "sla": limit("any")}
    document = {"version": 2, "title": "t", "subtasks": [{"title": "s", **workload}]}

    said = r"cannot be checked: own\.py: Own\.action_names raises KeyError"
    with pytest.raises(TaskError, match=said):
        checked_task(document, "t", Plugins([str(tmp_path / "own.py")]))
