"""The HTML report: one file that opens offline, and the same page while a run goes on."""

from osbench.coordinator.report.html.page import (
    chart_data,
    overview_fragment,
    render_page,
    render_report,
)

__all__ = ["chart_data", "overview_fragment", "render_page", "render_report"]
