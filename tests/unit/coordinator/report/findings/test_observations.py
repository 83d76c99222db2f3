"""The course of a load in sentences: each is said when it is so, and not otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers.result_rows import row_of
from helpers.sample_reports import constant_workload
from osbench.common.protocol.columns import decode_rows, encode_rows
from osbench.coordinator.report.findings.observations import observations
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.totals import Accounting, Offered
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

CLOSED = Offered(duration_s=30.0, concurrency=10, concurrency_held=1.0)
OPEN = Offered(duration_s=60.0, rate_planned=50.0, rate_offered=50.0)


def outcome(starts_s, lasts_s, offered: Offered = OPEN) -> WorkloadOutcome:
    """A load of iterations that were due when they started, all well."""
    statistics = WorkloadStatistics(is_open=offered.is_open)
    starts = np.round(np.asarray(starts_s) * 1e9).astype(np.int64)
    ends = starts + np.round(np.broadcast_to(lasts_s, starts.shape) * 1e9).astype(np.int64)
    rows = [
        row_of(number, 1, begun, begun, ended, 0, 0, (), None)
        for number, (begun, ended) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True), 1)
    ]
    statistics.add(decode_rows(encode_rows(rows, (), 0)), worker="w1")
    return replace(
        constant_workload(),
        statistics=statistics,
        offered=offered,
        accounting=Accounting(planned=len(rows), ok=len(rows)),
    )


def closed_load(users: int, think_s: float, until_s: float, length_s) -> WorkloadOutcome:
    """Users that think between iterations; `length_s` gives how long one that begins lasts."""
    starts, lasts = [], []
    for user in range(users):
        at = user * think_s / users
        while at < until_s:
            starts.append(at)
            lasts.append(length_s(at))
            at += lasts[-1] + think_s
    return outcome(starts, lasts, CLOSED)


def stall(at: float) -> float:
    return max(0.008, 15.0 - at) if at >= 10 else 0.008


def test_a_closed_load_that_stood_still_says_for_how_long_and_what_it_leaves_out():
    (said,) = [one for one in observations(closed_load(10, 0.05, 30, stall)) if "began" in one]

    assert said.startswith("no iteration began for 4.9")
    assert "from 10.1 s on" in said
    assert "coordinated omission" in said
    assert "about 8" in said


@pytest.mark.parametrize(
    ("users", "think_s", "lasts_s"),
    [
        # one user that waits long, and many that wait at once, are as they should be
        (1, 0.0, 5.0),
        (10, 0.0, 5.0),
        # nobody runs while all think
        (2, 4.0, 0.01),
        (10, 0.05, 0.008),
    ],
)
def test_a_closed_load_that_goes_on_says_nothing(users, think_s, lasts_s):
    assert list(observations(closed_load(users, think_s, 60, lambda _: lasts_s))) == []


def test_an_open_load_counts_what_waited():
    starts = np.arange(3000) / 100

    found = list(observations(outcome(starts, [stall(at) for at in starts])))

    assert not [said for said in found if "began" in said]


@pytest.mark.parametrize(("factor", "verb"), [(5.8, "rose"), (1 / 5.8, "fell")])
def test_a_service_that_changes_through_the_load_is_told_from_when_to_when(factor, verb):
    starts = np.arange(3000) / 50
    noise = np.random.default_rng(1).lognormal(0, 0.3, len(starts))
    times = 0.010 * factor ** (starts / 60) * noise

    (said,) = observations(outcome(starts, times))

    assert said.startswith(f"the median of service time {verb} from ")
    assert said.endswith("percentiles of the whole load mix both")


def test_noise_is_no_drift():
    starts = np.arange(3000) / 50
    random = np.random.default_rng(2)

    for _ in range(20):
        times = 0.010 * random.lognormal(0, 1.0, len(starts))
        assert not [said for said in observations(outcome(starts, times)) if "median" in said]


def test_one_answer_of_ten_seconds_is_told_with_its_instant_and_the_next():
    times = np.random.default_rng(3).uniform(0.010, 0.012, 3000)
    times[1500] = 10.0

    (said,) = observations(outcome(np.arange(3000) / 50, times))

    assert said.startswith("1 iteration took 10.0 s, scheduled 30")
    assert "the next slowest of 3,000 12.0 ms" in said


def test_a_few_that_stand_out_are_told_together():
    times = np.full(3000, 0.010)
    times[[7, 1500]] = 8.0, 10.0

    (said,) = observations(outcome(np.arange(3000) / 50, times))

    assert said.startswith("2 iterations took 8.00 s to 10.0 s, the next slowest")


def test_a_long_tail_has_no_outliers():
    times = 0.005 * np.random.default_rng(4).pareto(1.5, 3000) + 0.005

    assert list(observations(outcome(np.arange(3000) / 50, times))) == []


def test_a_load_of_few_iterations_has_no_course():
    assert list(observations(outcome([0.0, 1.0, 2.0], [0.1, 0.1, 9.0]))) == []
    assert list(observations(constant_workload())) == []
