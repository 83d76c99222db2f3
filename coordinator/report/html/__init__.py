"""The HTML report: one file that opens offline, and the same page while a run goes on."""

from osbench.coordinator.report.html.page import live_parts, render_page

__all__ = ["live_parts", "render_page"]
