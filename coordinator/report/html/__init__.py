"""The HTML report of one run or several: files that open offline, or pages of the live view."""

from osbench.coordinator.report.html.page import live_parts, render_page
from osbench.coordinator.report.html.runs_page import RunOnPage, reports_folder, write_runs_page

__all__ = ["RunOnPage", "live_parts", "render_page", "reports_folder", "write_runs_page"]
