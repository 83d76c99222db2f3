"""Criteria as rows: found, asked, and how close."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from helpers.report_facts import facts_of
from helpers.shown_page import page_of
from osbench.coordinator.report.html.criterion_rows import (
    CriterionRow,
    criterion_rows,
    limit_of,
    succeeded_text,
)
from osbench.coordinator.report.html.workload_facts import WorkloadFacts, workloads_of
from osbench.coordinator.report.page_facts import gather


def first(
    tmp_path: Path,
    sla: Mapping[str, Any],
    *verdicts: Mapping[str, Any],
    p99: tuple[float | None, ...] = (),
    **accounting: int,
) -> WorkloadFacts:
    """The first workload; `p99` has the bounds of that of response time."""
    facts = facts_of(tmp_path, sla=(sla, {}))
    workload = facts.summary["workloads"][0]
    workload["sla"] = list(verdicts)
    workload["accounting"].update(accounting)
    if p99:
        workload["latency"]["response"]["ok"]["ci"]["p99"] = p99
    return workloads_of(gather(facts))[0]


def verdict(criterion: str, detail: str, success: bool = True) -> dict[str, Any]:
    return {"criterion": criterion, "success": success, "detail": detail, "source": "native"}


def row_of(tmp_path: Path, criterion: str, config: Any, detail: str = "") -> CriterionRow:
    (row,) = criterion_rows(first(tmp_path, {criterion: config}, verdict(criterion, detail)))
    return row


def test_each_limit_of_a_percentile_is_a_row(tmp_path: Path) -> None:
    config = [
        {"p": 95, "max_s": 0.04, "of": "response"},
        {"p": 99, "max_s": 0.1, "of": "response"},
        {"p": 99, "max_s": 0.15},
    ]
    said = verdict("percentile", "one; two; three", success=False)

    held, failed, other = criterion_rows(first(tmp_path, {"percentile": config}, said))

    assert (held.ok, held.key, held.criterion) == (True, "p95", "p95 of response time")
    assert held.share is not None
    assert 0.7 < held.share < 0.8
    assert (failed.ok, failed.key) == (False, "p99")
    assert (other.key, other.kind, other.limit_s) == ("p99", "service", None)


@pytest.mark.parametrize(("max_s", "close"), [(0.15, True), (2.0, False)])
def test_an_interval_without_upper_bound_is_close_to_no_limit_far_above_the_value(
    tmp_path: Path, max_s: float, close: bool
) -> None:
    limit = {"p": 99, "max_s": max_s, "of": "response"}
    workload = first(tmp_path, {"percentile": limit}, verdict("percentile", ""), p99=(0.12, None))

    (row,) = criterion_rows(workload)

    assert (row.ok, row.close) == (True, close)
    assert row.basis == "at least 120\u202fms (95\u202f%), no upper bound"


def test_a_limit_within_the_interval_is_close(tmp_path: Path) -> None:
    limit = {"p": 99, "max_s": 0.15, "of": "response"}
    said = verdict("percentile", "")
    workload = first(tmp_path, {"percentile": limit}, said, p99=(0.12, 0.2))

    (row,) = criterion_rows(workload)

    assert row.ok
    assert row.close


def test_another_percentile_is_read_from_the_verdict(tmp_path: Path) -> None:
    said = "p42 of service time 18.0ms, allowed 20.0ms"

    row = row_of(tmp_path, "percentile", {"p": 42, "max_s": 0.02}, said)

    assert row.found == "18.0\u202fms"
    assert row.share is None


def test_throughput_and_mean_and_lag_are_told_with_their_share(tmp_path: Path) -> None:
    assert row_of(tmp_path, "throughput", {"min": 50}).asked == "at least 50\u202f/s"
    assert row_of(tmp_path, "max_avg_duration", 0.1).share is not None
    lag = row_of(tmp_path, "start_lag", {"max_s": 0.1})
    assert (lag.key, lag.ok) == ("start_lag", True)


def test_a_criterion_of_a_plug_in_stands_as_its_sentence(tmp_path: Path) -> None:
    said = "3 bursts http://me:hunter2@shop/"

    row = row_of(tmp_path, "bursts", {"max": 3}, said)

    assert row.found.startswith("3 bursts")
    assert "hunter2" not in row.found


def test_the_limit_of_a_search_is_found_in_its_task(tmp_path: Path) -> None:
    limits = [
        {"p": 95, "max_s": 0.02, "of": "response"},
        {"p": 99, "max_s": 0.03, "of": "response", "action": "buy"},
    ]

    workload = first(tmp_path, {"percentile": limits})

    assert (limit_of(workload, "p95"), limit_of(workload, "p99")) == (0.02, None)


def test_several_clauses_stay_one_sentence(tmp_path: Path) -> None:
    said = "capacity 30.0/s; at 33.5/s percentile: p95 of response time 179ms, allowed 150ms"

    row = row_of(tmp_path, "search", None, said)

    assert (row.found, row.asked) == (said.replace("ms", "\u202fms"), "")


def test_not_all_is_never_rounded_to_all(tmp_path: Path) -> None:
    workload = first(tmp_path, {}, ok=9_999_999, failed=1, timed_out=0)

    assert succeeded_text(workload.report) == "99.99"


def test_a_percentile_of_nothing_does_not_repeat_its_name(tmp_path: Path) -> None:
    config = {"p": 95, "max_s": 0.25, "action": "none such"}

    row = row_of(tmp_path, "percentile", config, "p95 of none such: no iteration succeeded")

    assert (row.criterion, row.found) == ("p95 of none such", "no iteration succeeded")
    assert row.share is None


def test_failures_beyond_a_limit_of_0_are_no_share_of_it(tmp_path: Path) -> None:
    facts = first(
        tmp_path,
        {"failure_rate": {"max": 0}},
        verdict("failure_rate", "6 of 998 iterations failed", success=False),
    )

    (row,) = criterion_rows(facts)

    assert (row.asked, row.share) == ("at most 0\u202f%", None)


def test_a_run_without_success_has_no_empty_charts(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    accounting = facts.summary["workloads"][0]["accounting"]
    accounting.update(failed=accounting["failed"] + accounting["ok"], ok=0)

    page = page_of(facts)

    assert "No iteration succeeded, so there is no percentile curve." in page
    for chart in ("rates", "bands", "heat", "curve", "hist"):
        assert f'id="w1-{chart}"' not in page
    assert 'id="w1-fails"' in page
