"""The web server's additions to a report page: a bar above it, and a merged content policy."""

from __future__ import annotations

from osbench.coordinator.front.web import web_pages
from osbench.coordinator.report.html.page_assets import PageFrame


def page_frame(bar: str = "", *, live: bool = False) -> PageFrame:
    """Return the server's additions to a report page: style sheet, `bar` (HTML above the report).

    `live`: also the script that updates a running run's page.
    """
    script = "/static/live.js" if live else ""
    return PageFrame(style="/static/web.css", script=script, bar=web_pages.markup(bar))


def merged_policy(policy: str) -> str:
    """Return `policy`, a Content-Security-Policy of a page, extended by all that the server's own
    allows.

    It has to be one header: of two, a browser allows only the intersection.
    """
    rules: dict[str, list[str]] = {}
    for text in (policy, web_pages.POLICY):
        for rule in text.split(";"):
            name, *values = rule.split()
            known = rules.setdefault(name, [])
            known += [value for value in values if value not in known]
    for values in rules.values():
        if len(values) > 1 and "'none'" in values:
            values.remove("'none'")
    return "; ".join(" ".join([name, *values]) for name, values in rules.items())
