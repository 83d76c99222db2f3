"""Parts of a report that edges make: entry points `osbench.report_section`, by key of the JSON."""

from __future__ import annotations

from collections.abc import Callable

from osbench.common.plugin import entry_points
from osbench.common.task import Task
from osbench.coordinator.report.model.plan_figures import PlanComparison
from osbench.coordinator.results.outcome import WorkloadOutcome

#: Gets the number of a workload and its outcome; None if there is nothing to say of it.
ReportSection = Callable[[int, WorkloadOutcome], PlanComparison | None]


def plan_section(task: Task, data_dir: str) -> ReportSection | None:
    """Return the key `plan` of workloads; None if no installed package makes it.

    Raises PluginError.
    """
    if "plan" not in entry_points.names("report_section"):
        return None
    section: ReportSection = entry_points.loaded("report_section", "plan")(task, data_dir)
    return section
