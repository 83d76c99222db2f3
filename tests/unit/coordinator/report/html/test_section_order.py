"""What explains the verdict of a run stands first, and every part has an address."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.report_facts import facts_of
from helpers.sample_loads import all_kinds
from helpers.sample_reports import full_report
from helpers.shown_page import page_of
from osbench.coordinator.report.html.section_order import Emphasis, emphasis_of
from osbench.coordinator.report.model.model import CRASHED, FINISHED, RUNNING, WorkloadReport
from osbench.coordinator.report.page_facts import gather

HELD = {"criterion": "failure_rate", "success": True, "detail": "0 of 9"}
FAILED = {"criterion": "failure_rate", "success": False, "detail": "6 of 998"}
SLOW = {"criterion": "percentile", "success": False, "detail": "p95 of service 30ms, allowed 10ms"}


def page_with(folder: Path, *verdicts: dict[str, Any], code: int = 0, state: str = FINISHED) -> str:
    """The page of a run whose first workload has these verdicts, and failures."""
    facts = facts_of(folder, full_report(), state=state)
    summary = json.loads(json.dumps(facts.summary))
    summary["workloads"][0]["sla"] = list(verdicts)
    summary["exit_code"] = code
    return page_of(replace(facts, summary=summary), live=state == RUNNING)


def places(html: str, *marks: str) -> Sequence[int]:
    """Where marks stand in a page; each has to be there."""
    return [html.index(mark) for mark in marks]


FIGURES, FAILURES = '<table class="figures', 'id="failed-h"'


@pytest.mark.parametrize(
    ("verdicts", "code", "state", "first", "second"),
    [
        ([FAILED], 1, FINISHED, FAILURES, FIGURES),
        ([FAILED, SLOW], 1, FINISHED, FAILURES, FIGURES),
        ([HELD], 3, FINISHED, FAILURES, FIGURES),
        ([HELD], 130, FINISHED, FAILURES, FIGURES),
        ([HELD], 0, CRASHED, FAILURES, FIGURES),
        ([SLOW], 1, FINISHED, FIGURES, FAILURES),
        ([HELD], 0, FINISHED, FIGURES, FAILURES),
        ([FAILED], 0, RUNNING, FAILURES, FIGURES),
    ],
)
def test_the_first_screen_begins_with_what_explains_the_verdict(
    tmp_path: Path,
    verdicts: list[dict[str, Any]],
    code: int,
    state: str,
    first: str,
    second: str,
) -> None:
    before, after = places(page_with(tmp_path, *verdicts, code=code, state=state), first, second)

    assert before < after


@pytest.mark.parametrize(
    ("verdict", "parts"),
    [
        (FAILED, ("errors", "criteria", "timeline", "slow")),
        (SLOW, ("slow", "criteria", "timeline", "errors")),
        (HELD, ("slow", "timeline", "criteria", "errors")),
    ],
    ids=["failed", "slow", "fine"],
)
def test_a_workload_begins_with_what_explains_its_verdict(
    tmp_path: Path, verdict: dict[str, Any], parts: tuple[str, ...]
) -> None:
    html = page_with(tmp_path, verdict)

    found = places(html, *(f'<h3 id="w1-{part}">' for part in parts))

    assert found == sorted(found)
    # figures of a run that is fine stand before its curve
    assert ("two mirrored" in html[: found[-1]]) == (verdict is HELD)


def workload(folder: Path, *verdicts: dict[str, Any]) -> WorkloadReport:
    facts = facts_of(folder, full_report())
    summary = json.loads(json.dumps(facts.summary))
    summary["workloads"][0]["sla"] = list(verdicts)
    return gather(replace(facts, summary=summary)).report.workloads[0]


def test_a_clear_cause_of_slowness_counts_unless_the_workload_failed(tmp_path: Path) -> None:
    held, failed = workload(tmp_path, HELD), workload(tmp_path, FAILED)

    assert emphasis_of(held, has_cause=True) is Emphasis.SLOW
    assert emphasis_of(held, has_cause=False) is Emphasis.FINE
    assert emphasis_of(failed, has_cause=True) is Emphasis.FAILED


@pytest.mark.parametrize("live", [False, True], ids=["report", "live"])
def test_every_section_has_an_address_and_links_to_it(tmp_path: Path, live: bool) -> None:
    html = page_of(facts_of(tmp_path, all_kinds(), state=RUNNING if live else FINISHED), live=live)
    # what stands within scripts is no part of the page
    html = re.sub(r"<script.*?</script>", "", html, flags=re.S)

    heads = re.findall(r"<h[23][^>]*>(.*?)</h[23]>", html)
    links = [re.match(r'<a class="anchor" href="#([^"]+)">', head) for head in heads]
    ids = Counter(re.findall(r'\bid="([^"]+)"', html))

    assert len(heads) > 20
    assert [head for head, link in zip(heads, links, strict=True) if link is None] == []
    assert [link[1] for link in links if link and link[1] not in ids] == []
    assert [one for one, count in ids.items() if count > 1] == []
