"""The headline of a search: the rate that held, and what broke above it."""

from __future__ import annotations

from typing import Any

import pytest

from osbench.coordinator.report.model.workload_parts import SearchReport
from osbench.coordinator.report.statements.search_statements import (
    search_headline,
    search_interval,
    search_statements,
)
from osbench.coordinator.results.accounting.search.trials import TrialFigures

P95 = "percentile: p95 of response time 31.0ms, allowed 20ms"


def trial(rate: float, detail: str = "", cause: str = "sla") -> TrialFigures:
    figures = dict.fromkeys(("p50_s", "p95_s", "p99_s"), 0.01)
    counts = dict.fromkeys(("failed", "timed_out", "dropped"), 0)
    return TrialFigures(
        rate=rate, held=not detail, cause=cause if detail else "", detail=detail, from_s=0, to_s=1,
        ok=9, ok_per_s=rate, concurrency=1, actions={}, **figures, **counts,
    )  # fmt: skip


def searched(*trials: TrialFigures, **found: Any) -> SearchReport:
    return SearchReport(**{"kind": "found", "trials": trials, **found})


def test_the_rate_that_held_stands_before_the_limit_that_the_next_one_broke() -> None:
    found = searched(trial(206), trial(260, P95), held=206, broke=260, rate=230, low=206, high=260)

    headline, interval, *_ = [one.text for one in search_statements(found)]

    assert headline == "206/s sustained with p95 <= 20ms; 260/s not: 31.0ms"
    assert interval == "capacity 230/s, with 95 % between 206 and 260/s"


def test_a_rate_too_low_to_hold_is_told_with_a_lower_one_to_try() -> None:
    detail = "percentile: p95 of response time 87.3ms, allowed 50ms"
    found = searched(trial(20, detail), broke=20, kind="below", advice="lower `low`")

    assert search_headline(found) == (
        "no rate was sustained; at 20/s, the lowest, p95 was 87.3ms (at most 50ms): try low: 5"
    )
    assert search_interval(found) == ""


def test_of_several_limits_the_broken_one_is_told() -> None:
    detail = f"percentile: p50 of response time 9.00ms, allowed 10ms; {P95.partition(': ')[2]}"

    found = searched(trial(10), trial(20, f"{detail} (KeyError: x)"), held=10, broke=20)

    assert search_headline(found) == "10/s sustained with p95 <= 20ms; 20/s not: 31.0ms"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            searched(trial(10), trial(20, "failure_rate: 2 of 9 failed"), held=10, broke=20),
            "10/s sustained; 20/s not: failure_rate: 2 of 9 failed",
        ),
        (
            searched(kind="above", held=40, advice="raise `high`"),
            "40/s sustained, the highest rate that was tried: raise `high`",
        ),
        (
            searched(trial(60, "no core"), kind="below", broke=60, advice="lower `low`"),
            "no rate was sustained; at 60/s, the lowest: no core; try low: 15",
        ),
        (
            searched(trial(60, "2 lost", "disturbed"), kind="unfinished", held=47.5),
            "47.5/s sustained, the highest rate that was tried; "
            "the search was stopped before its end",
        ),
        (searched(kind="unfinished"), "the search ended before its first trial"),
    ],
)
def test_other_ends_of_a_search_have_a_sentence_each(found: SearchReport, said: str) -> None:
    assert search_headline(found) == said


def test_users_have_their_own_words_and_the_throughput_that_they_make() -> None:
    found = searched(
        trial(12), trial(14, P95), held=12, broke=14, rate=12, low=11, high=13, unit="users"
    )

    headline, interval, first, second = [one.text for one in search_statements(found)]

    assert headline == "12 users sustained with p95 <= 20ms; 14 users not: 31.0ms"
    assert interval == (
        "capacity 12 users, with 95 % between 11 and 13 users; 12.0 ok/s at 12 users"
    )
    assert first.startswith("12 users sustained: ")
    assert second.startswith("14 users not sustained: ")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            searched(kind="above", held=1, advice="raise `high`", unit="users"),
            "1 user sustained, the highest number of users that was tried: raise `high`",
        ),
        (
            searched(
                trial(9, "no core"), kind="below", broke=9, advice="lower `low`", unit="users"
            ),
            "no number of users was sustained; at 9 users, the lowest: no core; try low: 2",
        ),
        (
            searched(trial(1, "no core"), kind="below", broke=1, unit="users"),
            "no number of users was sustained; at 1 user, the lowest: no core",
        ),
    ],
)
def test_other_ends_of_a_search_for_users(found: SearchReport, said: str) -> None:
    assert search_headline(found) == said
