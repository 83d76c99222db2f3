"""What `plan` said of a task is in reports if the package that says so is installed."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from helpers.sample_reports import constant_workload
from osbench.common.plugin import entry_points
from osbench.common.task import Task
from osbench.coordinator.report.report_section import plan_section

TASK = Task(source="task.yaml", version=2, title="t", subtasks=())


def test_a_task_that_was_never_planned_has_nothing_to_compare(tmp_path: Path) -> None:
    section = plan_section(TASK, str(tmp_path))

    assert section is not None
    assert section(0, constant_workload()) is None


def test_without_the_package_reports_do_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_points, "installed_points", lambda kinds: defaultdict(list))

    assert plan_section(TASK, str(tmp_path)) is None
