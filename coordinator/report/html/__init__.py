"""The HTML report: one file that opens offline, live or of a run that ended; or of several runs."""

from osbench.coordinator.report.html.page import live_parts, render_page
from osbench.coordinator.report.html.runs_page import RunOnPage, write_runs_page

__all__ = ["RunOnPage", "live_parts", "render_page", "write_runs_page"]
