"""Plans and staircases are in reports if the packages that compute them are installed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.sample_loads import stages_workload
from helpers.sample_reports import constant_workload
from osbench.common.errors import PluginError
from osbench.common.plugin import entry_points
from osbench.common.task import Task
from osbench.coordinator.report.report_section import plan_section
from osbench.coordinator.report.staircase.stage_steps import staircase_of_load
from osbench.coordinator.report.staircase.staircase import StaircaseStep, staircase_of

TASK = Task(source="task.yaml", version=2, title="t", subtasks=())
STEP = StaircaseStep(
    load=10, throughput=10, p50_s=0.1, p95_s=0.2, p99_s=0.3, concurrency=1, count=100
)


def test_a_task_that_was_never_planned_has_nothing_to_compare(tmp_path: Path) -> None:
    section = plan_section(TASK, str(tmp_path))

    assert section is not None
    assert section(0, constant_workload()) is None


def test_without_the_package_reports_do_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_points, "installed_points", lambda kinds: defaultdict(list))

    assert plan_section(TASK, str(tmp_path)) is None
    assert staircase_of_load(stages_workload()) is None
    with pytest.raises(PluginError, match=r"'staircase' of the group osbench\.report_section"):
        staircase_of([STEP, replace(STEP, load=20)], is_open=True)
