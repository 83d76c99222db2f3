"""The criterion `growth` in task files and in usual runs."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.iterations import columns, ok, statistics
from osbench.common.errors import TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.task.taskfile import checked_task


def checked(limits: Any) -> None:
    """Check a task with the criterion."""
    subtask = {
        "title": "Shop",
        "scenario": {
            "HttpFlow.run": {"base": "http://127.0.0.1:1", "steps": [{"name": "list", "path": "/"}]}
        },
        "runner": {"constant": {"times": 1, "concurrency": 1}},
        "sla": {"growth": limits},
    }
    checked_task({"version": 2, "title": "Shop", "subtasks": [subtask]}, "task.yaml", Plugins())


@pytest.mark.parametrize(
    "limits",
    [
        {"spans": {"exponent": {"max": 0.1}}},
        {"sql": {"law": "n log n"}, "time": {"exponent": {"max": 1}, "law": "linear"}},
        [{"bytes": {"law": "constant"}}, {"calls": {"law": "constant"}}],
    ],
)
def test_limits_are_accepted(limits: Any) -> None:
    checked(limits)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({}, "there is no limit; add one of time, spans"),
        ([], "growth"),
        ({"action": "list"}, "there is no limit"),
        ({"span": {"exponent": {"max": 0.1}}}, "span"),
        ({"spans": {"exponent": 0.1}}, "exponent"),
        ({"spans": {"exponent": {"maximum": 0.1}}}, "maximum"),
        ({"spans": {"exponent": {"max": "0.1"}}}, "0.1"),
        ({"spans": {"exponent": {}}}, "max"),
        ({"spans": {"law": "cubic"}}, "cubic"),
        ({"spans": {}}, "spans"),
        ({"action": "lits", "spans": {"law": "constant"}}, "lits"),
    ],
)
def test_wrong_limits_are_refused_with_their_place(limits: Any, said: str) -> None:
    with pytest.raises(TaskError) as caught:
        checked(limits)

    assert said in str(caught.value)
    assert "growth" in str(caught.value)


def test_a_usual_run_says_that_another_command_judges_it() -> None:
    made = Plugins().get("sla", "growth")({"spans": {"exponent": {"max": 0.1}}})

    verdict = made.check(statistics(columns(ok(0, 1))))

    assert verdict.success
    assert "osbench-coord grow" in verdict.detail
    # it has no verdict on a load that goes on, and judges no failures
    assert (made.AT_END, made.JUDGES_FAILURES) == (True, False)
