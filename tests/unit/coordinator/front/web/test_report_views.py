"""A report served with a bar above it: its policy allows what both need, and no more."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from helpers.report_facts import facts_of
from osbench.coordinator.front.web import report_views, web_pages
from osbench.coordinator.front.web.report_views import merged_policy
from osbench.coordinator.report.html import page_assets
from osbench.coordinator.report.model.model import RUNNING

BAR = '<section id="live"></section>'
SCRIPT = '<script src="/static/live.js" defer></script>'


@pytest.fixture
def live(tmp_path: Path) -> str:
    """The page of a run that goes on."""
    return report_views.live(facts_of(tmp_path, state=RUNNING), BAR)


@pytest.fixture
def over(tmp_path: Path) -> str:
    """The page of a run that is over."""
    return report_views.report(facts_of(tmp_path), BAR)


@pytest.mark.parametrize("name", ["live", "over"])
def test_the_policy_is_in_the_header_alone(request: pytest.FixtureRequest, name: str) -> None:
    page = request.getfixturevalue(name)

    assert "Content-Security-Policy" not in page


@pytest.mark.parametrize("live", [False, True])
def test_the_header_allows_the_page_s_own_blocks_and_the_server_s_files(live: bool) -> None:
    policy = report_views.report_policy(live)

    blocks = [*page_assets.scripts(live), page_assets.style()]
    assert all(page_assets.hashes([block]) in policy for block in blocks)
    assert re.search(r"script-src 'sha256-[^;]* 'self'", policy)
    assert re.search(r"style-src 'sha256-[^;]* 'self'", policy)


def test_the_bar_stands_first_and_its_script_last(live: str) -> None:
    assert f"<body>\n{BAR}\n" in live
    assert live.rstrip().endswith(f"{SCRIPT}\n</body>\n</html>")


def test_a_page_that_does_not_change_has_no_script_of_the_server(over: str) -> None:
    assert f"<body>\n{BAR}\n" in over
    assert SCRIPT not in over


@pytest.mark.parametrize("name", ["live", "over"])
def test_the_style_of_the_page_comes_after_that_of_the_bar(
    request: pytest.FixtureRequest, name: str
) -> None:
    page = request.getfixturevalue(name)

    assert page.index('href="/static/web.css"') < page.index("<style>")


def test_every_colour_that_a_page_uses_has_a_value(over: str) -> None:
    tokens = set(json.loads(page_assets.text("tokens.json")))
    for styled in (web_pages.static("web.css"), over):
        used = set(re.findall(r"var\(--([\w-]+)\)", styled))
        assert used
        assert used <= tokens
        assert all(f"--{name}:#" in styled for name in used)


def test_nothing_is_allowed_but_what_one_of_them_needs() -> None:
    rules = dict(
        rule.split(" ", 1)
        for rule in merged_policy("default-src 'none'; style-src 'sha256-d='; img-src data:").split(
            "; "
        )
    )

    assert rules == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'sha256-d=' 'self'",
        "img-src": "data:",
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
