"""What the web server adds to a report: a bar above it, and the policy for both."""

from __future__ import annotations

from osbench.coordinator.report.html.page_assets import PageFrame
from osbench.coordinator.web import web_pages


def framed(bar: str = "", *, live: bool = False) -> PageFrame:
    """The frame of a page of the server; the bar of a live page needs a script."""
    script = "/static/live.js" if live else ""
    return PageFrame(style="/static/web.css", script=script, bar=web_pages.markup(bar))


def merged(policy: str) -> str:
    """What a page's policy allows, and what the pages of the server need in addition.

    One header has both: two policies would each have to allow everything.
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
