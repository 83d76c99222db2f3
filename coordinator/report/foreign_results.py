"""Interface to results of other tools, such as Rally: read as runs of osbench, or written."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TextIO

from osbench.common.plugin import entry_points
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.results.storage.run_directory import RunDirectory


class ForeignResults(Protocol):
    """Results in the form of another tool, such as Rally: read as runs, or written.

    The class has no arguments; it is an entry point `osbench.foreign_results`.
    """

    def read(self, path: Path, data_dir: str, lag_limit_s: float) -> list[str]:
        """Create a run directory from each task in a file; return the ids of the runs.

        `data_dir`: folder of runs; `lag_limit_s`: p99 start lag in seconds above which the
        generator was the limit. Raises UsageError.
        """

    def write(self, directory: RunDirectory, report: Report, file: TextIO) -> None:
        """Write a finished run to the open `file`, in the tool's form."""

    def task_results(self, directory: RunDirectory, report: Report) -> list[dict[str, Any]]:
        """Return a finished run in the form that the tool passes to its own exporters."""


def foreign_results(name: str) -> ForeignResults:
    """Return a new reader and writer of a tool's results; `name` is the tool, such as "rally".

    Raises PluginError if none is installed.
    """
    made: ForeignResults = entry_points.load_object("foreign_results", name)()
    return made
