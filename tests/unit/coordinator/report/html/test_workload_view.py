"""A workload's section: the load in words, also of runners that are plug-ins."""

from __future__ import annotations

from typing import Any

import pytest

from osbench.coordinator.report.html.workload_facts import WorkloadFacts
from osbench.coordinator.report.html.workload_view import load_words
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.model.workload_parts import RunnerChoice


def words_of(config: Any) -> str:
    report = WorkloadReport(name="one", runner=RunnerChoice(type="waves", config=config))
    return load_words(WorkloadFacts(0, "one", report, {}, {})).replace("\u202f", " ")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"concurrency": 2, "times": 1000}, "2 virtual users, 1,000 times"),
        ({"rps": {"start": 1, "end": 9}, "duration": 30}, "start 1, end 9 /s, for 30 s"),
        (
            {
                "start": 5,
                "stages": [{"target": 12, "duration": 60}, {"target": 12, "duration": 30}],
            },
            "5 → 12 /s over 90 s",
        ),
        ({"stages": [{"users": 3, "duration": 60}]}, "0 → 3 virtual users over 60 s"),
    ],
)
def test_the_load_is_told_in_words(config: Any, words: str) -> None:
    assert words_of(config) == f"waves, {words}"


@pytest.mark.parametrize(
    "config",
    [
        None,
        [],
        {"waves": 3},
        {"stages": []},
        {"stages": "steep"},
        {"stages": [1, 2]},
        {"stages": [{"height": 3}]},
        {"stages": [{"target": "high", "duration": 3}]},
        {"start": None, "stages": [{"target": 3, "duration": 3}]},
        {"concurrency": "many"},
        {"concurrency": {"least": 1}},
        {"times": None},
        {"times": 1e400},
        {"duration": "until noon"},
        {"duration": [1]},
    ],
)
def test_settings_of_a_plug_in_may_have_any_type(config: Any) -> None:
    assert words_of(config) == "waves"
