"""The report of a run as a page of the web server: the same page, with a bar above it."""

from __future__ import annotations

import re

from osbench.coordinator.web import web_pages

_POLICY_TAG = re.compile(
    r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"[^>]*>', re.IGNORECASE
)
_BODY = re.compile(r"<body[^>]*>", re.IGNORECASE)


def served(page: str, bar: str) -> tuple[str, str]:
    """A report's page with a bar at its top, and the policy for its header.

    The page's own policy moves to the header, where what the bar needs is added: two policies
    would both have to allow it.
    """
    found = _POLICY_TAG.search(page)
    policy = merged(found.group(1) if found else "default-src 'none'")
    page = _POLICY_TAG.sub("", page, count=1)
    # before the page's own style, whose colours of a theme that was chosen win
    page = page.replace("<head>", '<head>\n<link rel="stylesheet" href="/static/web.css">', 1)
    if bar:
        body = _BODY.search(page)
        at = body.end() if body else 0
        page = page[:at] + bar + page[at:]
        head, closing, rest = page.rpartition("</body>")
        page = f'{head}<script src="/static/live.js" defer></script>\n{closing}{rest}'
    return page, policy


def merged(policy: str) -> str:
    """What a page's policy allows, and what the pages of the server need in addition."""
    rules: dict[str, list[str]] = {}
    for text in (policy, web_pages.POLICY):
        for rule in text.replace("&#39;", "'").split(";"):
            name, *values = rule.split()
            known = rules.setdefault(name, [])
            known += [value for value in values if value not in known]
    for values in rules.values():
        if len(values) > 1 and "'none'" in values:
            values.remove("'none'")
    return "; ".join(" ".join([name, *values]) for name, values in rules.items())
