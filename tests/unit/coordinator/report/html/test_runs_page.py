"""One page for several runs."""

from __future__ import annotations

import re
from pathlib import Path

from helpers.report_facts import facts_of
from osbench.coordinator.report.html import RunOnPage, write_runs_page
from osbench.coordinator.report.page_facts import gather


def page(tmp_path: Path, *runs: RunOnPage, code: int = 0) -> str:
    path = tmp_path / "night.html"
    write_runs_page(path, "<b>nightly</b>", runs, code)
    return path.read_text("utf-8")


def test_anchors_are_unique_and_links_lead_to_the_reports(tmp_path: Path) -> None:
    facts = gather(facts_of(tmp_path))

    found = page(
        tmp_path,
        RunOnPage(file="a.yaml", exit_code=0, facts=facts),
        RunOnPage(file="b.yaml", exit_code=1, facts=facts),
        code=1,
    )

    ids = re.findall(r'\bid="([^"]+)"', found)
    assert len(ids) == len(set(ids))
    links = set(re.findall(r'href="([^"]+)"', found))
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    report = (tmp_path / "night-runs" / f"{facts.run_id}.html").read_text("utf-8")
    for link in links:
        name, _, anchor = link.partition("#")
        if name:
            assert name == f"night-runs/{facts.run_id}.html"
            assert not anchor or f'id="{anchor}"' in report


def test_a_task_without_a_run_is_named_with_the_reason(tmp_path: Path) -> None:
    found = page(
        tmp_path,
        RunOnPage(file="<i>.yaml", exit_code=2, error="<i>.yaml: 1 problem\n  line 3: <script>"),
        RunOnPage(file="b.yaml", exit_code=None, error="not run: <i>.yaml ended with exit code 2"),
        code=2,
    )

    assert "&lt;i&gt;.yaml: 1 problem line 3: &lt;script&gt;" in found
    assert "not run: " in found
    assert "2 of 2 tasks did not end well." in found
    assert "<script" not in found
    assert "<b>nightly" not in found
    assert not (tmp_path / "night-runs").exists()


def test_a_night_without_failures_is_good(tmp_path: Path) -> None:
    facts = gather(facts_of(tmp_path))

    found = page(tmp_path, RunOnPage(file="a.yaml", exit_code=0, facts=facts))

    assert "✓ All tasks ended well." in found


def test_dropped_arrivals_are_not_called_a_run_of_everything(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    facts.summary["exit_code"] = 0
    facts.summary["exit_meaning"] = "every SLA holds, but 3 arrivals did not run: dropped"
    facts.summary["workloads"][0]["accounting"]["dropped"] = 3

    found = page(tmp_path, RunOnPage(file="a.yaml", exit_code=0, facts=gather(facts)))

    assert "everything ran" not in found
    assert "did not run: dropped" in found
