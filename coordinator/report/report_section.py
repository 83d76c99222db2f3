"""Sections of a report that optional packages provide by entry points `osbench.report_section`."""

from __future__ import annotations

from collections.abc import Callable

from osbench.common.plugin import entry_points
from osbench.common.task import Task
from osbench.coordinator.report.model.plan_figures import PlanComparison
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome

#: Gets the number of a workload and its outcome; None if there is nothing to say of it.
ReportSection = Callable[[int, WorkloadOutcome], PlanComparison | None]


def plan_section(task: Task, data_dir: str) -> ReportSection | None:
    """Return a function that computes the key `plan` of a workload's report.

    It compares the run with a prediction. None if no package provides it. Raises PluginError if it
    cannot be loaded.
    """
    if "plan" not in entry_points.names("report_section"):
        return None
    section: ReportSection = entry_points.load_object("report_section", "plan")(task, data_dir)
    return section
