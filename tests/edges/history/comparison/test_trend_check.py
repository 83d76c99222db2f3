"""The newest run of a trend is called worse where it is, and seldom where it is not."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from osbench.edges.history.comparison import trend_check
from osbench.edges.history.comparison.trend_check import check_trend
from osbench.edges.history.comparison.trends import RunsTrend, TrendRun, TrendSeries

SERIES = 200
#: How much runs differ anyway, of a logarithm.
SPREAD = 0.03
PERCENTS = (50.0, 95.0, 99.0)


def series_of(logs) -> TrendSeries:
    return TrendSeries(
        workload="shop",
        action="",
        percent=95.0,
        values_s=tuple(None if value is None else math.exp(value) for value in logs),
        changes=(),
    )


@pytest.fixture
def check(monkeypatch):
    """Checks a trend by the logarithms of its percentiles."""

    class Run:
        def __init__(self, number: int) -> None:
            self.run_id = f"r{number}"

    def checked(*series):
        trend = RunsTrend(
            fingerprint="f",
            task="Nightly",
            deployment=None,
            runs=tuple(
                TrendRun(run_id=f"r{at}", started_at="", tags=(), osbench="", exit_code=0)
                for at in range(len(series[0]))
            ),
            series=tuple(map(series_of, series)),
            sentence="",
        )
        monkeypatch.setattr(trend_check, "trend_of", lambda _: trend)
        monkeypatch.setattr(trend_check, "changed_calls", lambda *_, **__: "")
        return check_trend([Run(at) for at in range(len(series[0]))])

    return checked


def nights(seed: int, runs: int = 20, spread: float = SPREAD):
    """Three percentiles that go up and down together, as those of one run do."""
    random = np.random.default_rng(seed)
    whole = random.normal(0, spread, runs)
    return [whole + random.normal(0, spread / 2, runs) for _ in PERCENTS]


@pytest.mark.dear
def test_of_200_series_without_a_change_hardly_any_is_worse(check):
    worse = [check(*nights(seed)).worse for seed in range(SERIES)]

    # 1 % are to be expected
    assert sum(bool(one) for one in worse) <= 5


def first_night(check, seed: int, step: float, nights_after: int) -> int:
    """The night after a change in which it is found, from 1; 0 if it is not."""
    logs = nights(seed, 20 + nights_after)
    for one in logs:
        one[20:] += step
    for night in range(1, nights_after + 1):
        if check(*(one[: 20 + night] for one in logs)).worse:
            return night
    return 0


@pytest.mark.dear
def test_of_200_series_with_a_planted_change_it_is_found_in_the_first_night(check):
    found = [first_night(check, seed, 0.25, 1) for seed in range(SERIES)]

    assert sum(found) >= 0.95 * SERIES


@pytest.mark.dear
def test_a_change_too_small_for_one_night_is_found_by_several(check):
    found = [first_night(check, seed, 0.1, 4) for seed in range(20)]

    assert sum(night == 1 for night in found) < 15
    assert sum(night > 0 for night in found) >= 18


@pytest.mark.dear
def test_a_level_that_stays_is_no_news(check):
    worse = 0
    for seed in range(8):
        logs = nights(seed, 40)
        for one in logs:
            one[20:] += 0.3
        worse += bool(check(*logs).worse)

    assert worse <= 1


def test_better_is_not_worse(check):
    logs = nights(1)
    for one in logs:
        one[-1] -= 1

    found = check(*logs)

    assert found.worse == ()
    assert found.sentence.startswith("Run r19 is like the runs before it. A change of ")


def test_a_change_that_would_have_been_found_is_told_and_is_found_so_often(check):
    shares, found = [], 0
    for seed in range(60):
        logs = nights(seed)[:1]
        like = check(*logs)
        if like.worse:
            continue
        told = re.search(r"A change of ([\d.]+) % of p95 of shop would", like.sentence)
        shares.append(float(told[1]) / 100)
        logs[0][-1] += math.log1p(shares[-1]) - (logs[0][-1] - logs[0][:-1].mean())
        # the newest night has its own deviation again
        logs[0][-1] += np.random.default_rng(1000 + seed).normal(0, math.hypot(SPREAD, SPREAD / 2))
        found += bool(check(*logs).worse)

    assert 0.05 < np.median(shares) < 0.3
    assert found >= 0.65 * len(shares)


def test_the_sentence_has_the_figure_and_its_predecessors(check):
    logs = [0.0] * 10 + [math.log(1.5)]

    found = check(logs)

    assert found.sentence == (
        "Run r10 is worse: p95 of shop takes 1.50s, 50 % more than in the 10 runs before it"
        " (1.00s on average)."
    )
    assert (found.worse[0].runs, found.enough) == (10, True)


def test_too_few_runs_are_no_verdict(check):
    found = check([0.0] * 6 + [1.0])

    assert (found.worse, found.enough) == ((), False)
    assert "too few to check" in found.sentence


def test_a_newest_run_without_the_percentile_is_not_judged_by_an_older_one(check):
    assert check([0.0] * 10 + [1.0, None]).worse == ()
