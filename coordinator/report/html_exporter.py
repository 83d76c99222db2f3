"""Exporter `html`: the report of a run as a page that opens without a server."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from osbench.common.plugin.exporter import ExportedRun, Exporter
from osbench.coordinator.report.run_facts import read_facts
from osbench.coordinator.report.stored_run import StoredRun
from osbench.coordinator.results.storage.run_directory import RunDirectory


class HtmlPage(Exporter):
    """Writes report.html: verdict, charts, errors and traces in one file without links to others.

    A run that is under load, or whose coordinator was killed, has one as well.
    """

    NAME: ClassVar[str] = "html"
    FILE: ClassVar[str] = "report.html"

    def export(self, run: ExportedRun, path: Path) -> None:
        """Write the page of a finished run to `path`."""
        assert isinstance(run, StoredRun)
        self.render(run.directory, path)

    def render(self, directory: RunDirectory, path: Path) -> None:
        """Write the page of a run in any state to `path`. Raises DamagedRun or UsageError."""
        # exports of other formats do without templates
        from osbench.coordinator.report.html import render_page  # noqa: PLC0415 - see above
        from osbench.coordinator.report.page_facts import gather  # noqa: PLC0415 - see above

        path.write_text(render_page(gather(read_facts(directory))), "utf-8")
