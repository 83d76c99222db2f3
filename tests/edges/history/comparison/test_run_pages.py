"""Pages of the web server with a comparison or a trend: links, bar, colours, refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from helpers.made_runs import made_run
from helpers.queue_runs import Queue, side
from helpers.web import TOKENS, serving
from osbench.coordinator.front.web.report_views import page_frame
from osbench.coordinator.report.html import page_assets
from osbench.edges.history.comparison import compared_run
from osbench.edges.history.comparison.comparing import compare_sides
from osbench.edges.history.comparison.comparison_page import compare_page
from osbench.edges.history.comparison.evidence import Evidence

BEARER = {"Authorization": f"Bearer {TOKENS.token}"}
BAR = '<section id="live"></section>'
SCRIPT = '<script src="/static/live.js" defer></script>'


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    with (
        serving(tmp_path) as server,
        httpx.Client(base_url=server.url, timeout=60) as found,
    ):
        yield found


@pytest.fixture
def comparison() -> str:
    """A page that compares two runs."""
    chance = np.random.default_rng(1)
    before, after = (side(Queue(duration_s=60), chance, name, 1) for name in "AB")
    return compare_page(
        compare_sides(Evidence(before=before, after=after)), page_frame(BAR, live=True)
    )


def test_a_comparison_stands_below_the_bar_and_has_no_policy_of_its_own(comparison: str) -> None:
    assert "Content-Security-Policy" not in comparison
    assert f"<body>\n{BAR}\n" in comparison
    assert comparison.rstrip().endswith(f"{SCRIPT}\n</body>\n</html>")
    assert comparison.index('href="/static/web.css"') < comparison.index("<style>")


def test_every_colour_that_a_comparison_uses_has_a_value(comparison: str) -> None:
    used = set(re.findall(r"var\(--([\w-]+)\)", comparison))

    assert used
    assert used <= set(json.loads(page_assets.text("tokens.json")))
    assert all(f"--{name}:#" in comparison for name in used)


def test_a_report_leads_to_the_trend_of_its_task(client: httpx.Client, tmp_path: Path) -> None:
    names = [f"2026040{day}-101500-abcd" for day in (1, 2, 3)]
    for seed, name in enumerate(names, 1):
        made_run(tmp_path, 300, run=name, seed=seed)

    page = client.get(f"/runs/{names[1]}", headers=BEARER).text
    trend = client.get(f"/runs/{names[1]}/trends", headers=BEARER)

    assert f'<a href="/runs/{names[1]}/trends">trend of this task</a>' in page
    assert trend.status_code == 200
    assert "<h1>Nightly: tokens</h1>" in trend.text
    assert "3 of at least 8 runs" in trend.text
    places = [trend.text.index(f'<a href="/runs/{name}">{name}</a>') for name in names]
    assert places == sorted(places)
    assert '<a href="/">All runs</a>' in trend.text
    assert "style-src 'sha256-" in trend.headers["content-security-policy"]


def test_a_trend_says_which_damaged_run_it_leaves_out(client: httpx.Client, tmp_path: Path) -> None:
    whole = made_run(tmp_path, 300, run="20260401-101500-abcd")
    cut = made_run(tmp_path, 300, run="20260402-101500-abcd", seed=2)
    assert client.get("/", headers=BEARER).status_code == 200
    summary = cut.path / "summary.json"
    summary.write_text(summary.read_text()[:-1])

    page = client.get(f"/runs/{whole.path.name}/trends", headers=BEARER)

    assert page.status_code == 200
    assert re.search(f"left out: .*{cut.path.name}", page.text)
    assert f'<a href="/runs/{cut.path.name}">' not in page.text


def test_a_run_without_a_trend_says_why(
    client: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made_run(tmp_path, 30)
    # no exit code says that the load was the one requested
    monkeypatch.setattr(compared_run, "_SOUND", ())

    found = client.get(f"/runs/{run.path.name}/trends", headers=BEARER)
    unknown = client.get("/runs/20990101-000000-none/trends", headers=BEARER)

    assert found.status_code == 409
    assert "has no trend: no run of this task" in found.text
    assert unknown.status_code == 404
