"""Results in the form of another tool, which are read as runs and written; found by entry point."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TextIO

from osbench.common.plugin import entry_points
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.storage.run_directory import RunDirectory


class ForeignResults(Protocol):
    """A form of results: a class without arguments, an entry point `osbench.foreign_results`."""

    def read(self, path: Path, data_dir: str, lag_limit_s: float) -> list[str]:
        """Create a run from each task in a file; return their ids. Raises UsageError.

        `data_dir`: folder of runs; `lag_limit_s`: as in ReportBuilder.
        """

    def write(self, directory: RunDirectory, report: Report, file: TextIO) -> None:
        """Write a finished run to `file`."""

    def task_results(self, directory: RunDirectory, report: Report) -> list[dict[str, Any]]:
        """Return a finished run in the form that the tool gives to its own exporters."""


def foreign_results(name: str) -> ForeignResults:
    """Return the form `name`, such as "rally". Raises PluginError if none is installed."""
    made: ForeignResults = entry_points.loaded("foreign_results", name)()
    return made
