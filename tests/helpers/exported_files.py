"""The files that exporters write, and a run without rows for them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from helpers.summaries import to_json
from osbench.common.plugin.exporter import ExportedRun
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.report.run_outcome import RunOutcome


class SummaryRun(ExportedRun):
    """A run without rows."""

    def __init__(self, report: RunOutcome) -> None:
        self.summary = to_json(report)


def exported(name: str, run: ExportedRun, folder: Path, **options: Any) -> Path:
    """The file that an exporter writes."""
    path = folder / "exported"
    Plugins().get("exporter", name)(options).export(run, path)
    return path


def text_of(path: Path) -> io.StringIO:
    """A file with its line breaks as they are."""
    return io.StringIO(path.read_bytes().decode(), newline="")
