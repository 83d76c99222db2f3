"""Entry point for Rally's form of results: `rally task report --json`, `task import`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TextIO

from osbench.coordinator.report.foreign_results import ForeignResults
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.edges.rally.results import rally_json
from osbench.edges.rally.results.rally_import import import_file


class RallyResults(ForeignResults):
    """Reads and writes results in Rally's form, for the entry point `osbench.foreign_results`."""

    def read(self, path: Path, data_dir: str, lag_limit_s: float) -> list[str]:
        """Make a run in the data directory of each task in a file from Rally; return their ids.

        `lag_limit_s` and errors are as for `import_file`.
        """
        return import_file(path, data_dir, lag_limit_s)

    def write(self, directory: RunDirectory, report: Report, file: TextIO) -> None:
        """Write a finished run to `file` as JSON in Rally's form, iteration by iteration."""
        rally_json.write(directory, report, file)

    def task_results(self, directory: RunDirectory, report: Report) -> list[dict[str, Any]]:
        """Return a finished run in the form in which Rally passes task results to its exporters.

        A list with one task. It has all iterations in memory.
        """
        return rally_json.task_results(directory, report)
