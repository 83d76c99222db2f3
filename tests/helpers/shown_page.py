"""Pages of runs, and what is not the same on every page, for golden files."""

from __future__ import annotations

import re

from osbench.coordinator.report.html import render_page
from osbench.coordinator.report.page_facts import gather
from osbench.coordinator.report.run_facts import RunFacts

_POLICY = re.compile(r'(http-equiv="Content-Security-Policy" content=")[^"]*')
_OURS = re.compile(r"<(style|script)>.*?</\1>", re.S)


def page_of(facts: RunFacts, *, live: bool = False) -> str:
    """The page of a run."""
    return render_page(gather(facts, live=live))


def shown_page(html: str) -> str:
    """The page but its policy, style and scripts, a tag a line."""
    return _OURS.sub(r"<\1></\1>", _POLICY.sub(r"\1", html)).replace("><", ">\n<")
