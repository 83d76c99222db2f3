"""Exporter `rally`: a run in the format of Rally's `task report --json`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from osbench.common.plugin.exporter import ExportedRun, Exporter
from osbench.coordinator.report.stored_run import StoredRun
from osbench.edges.rally.results import rally_json


class Rally(Exporter):
    """Writes rally.json, which `rally task report`, `task trends` and `task import` read."""

    NAME: ClassVar[str] = "rally"
    FILE: ClassVar[str] = "rally.json"

    def export(self, run: ExportedRun, path: Path) -> None:
        """Write the run to `path`, iteration by iteration. `run` must be in a run directory."""
        assert isinstance(run, StoredRun)
        with path.open("w", encoding="utf-8") as file:
            rally_json.write(run.directory, run.report, file)
