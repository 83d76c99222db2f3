"""Throughput: iterations that ended well, per second of the load's window."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import result_rows
from osbench.coordinator.plugins.runners.rps import Rps
from osbench.coordinator.plugins.runners.stages import StagedRate
from osbench.coordinator.results.accounting.load_profile import LoadProfile, arrival_window
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

SECOND = 10**9


def milliseconds(seconds) -> list[int]:
    return [round(1e3 * one) for one in seconds]


def load(starts_s, lasts_s, *, is_open=True, planned_s=None) -> WorkloadStatistics:
    """Iterations that start at some instants and last as long, all well."""
    found = WorkloadStatistics(is_open=is_open, planned_s=planned_s)
    lengths = np.broadcast_to(lasts_s, np.shape(starts_s))
    rows = [
        result_rows.row(n, due=start, started=start, ended=start + length)
        for n, (start, length) in enumerate(
            zip(milliseconds(starts_s), milliseconds(lengths), strict=True), 1
        )
    ]
    found.add(result_rows.block(*rows), worker="w")
    return found


def test_the_window_of_arrivals_ends_where_the_next_one_would_be_due():
    assert arrival_window(0, 9 * SECOND, 10) == 10 * SECOND
    # a ramp: the last gap is shorter than most
    assert arrival_window(0, 9 * SECOND, 10, 9 * SECOND + SECOND // 2) == 9.5 * SECOND
    # cut short: the plan went on
    assert arrival_window(0, 9 * SECOND, 10, 60 * SECOND) == 10 * SECOND
    assert arrival_window(0, 0, 1) is None


def test_a_single_iteration_has_no_rate():
    for is_open in (True, False):
        one = load([0.0], 0.001, is_open=is_open)

        assert one.ok_per_s is one.span_s is one.rate_started is None


def test_long_iterations_of_an_open_load_end_as_often_as_they_begin():
    ten_a_second = load(np.arange(50) / 10, 5.0)

    assert ten_a_second.ok_per_s == pytest.approx(10.0)
    assert ten_a_second.rate_started == pytest.approx(10.0)


def test_one_answer_that_comes_late_changes_the_rate_of_an_open_load_by_one():
    lasts = np.full(3000, 0.01)
    lasts[-10] = 10.0

    assert load(np.arange(3000) / 50, lasts).ok_per_s == pytest.approx(50.0, rel=1 / 2000)


def test_an_overloaded_service_has_the_throughput_of_its_own():
    # 100 arrivals a second, 50 answers a second
    starts = np.arange(2500) / 100
    ends = 0.02 * np.arange(1, 2501)

    overloaded = load(starts, ends - starts)

    assert overloaded.ok_per_s == pytest.approx(50.0, rel=0.001)


def test_a_closed_load_counts_from_its_first_start_to_its_last_end():
    # ten users, five rounds of 5 s
    rounds = np.repeat(5.0 * np.arange(5), 10)

    assert load(rounds, 5.0, is_open=False).ok_per_s == pytest.approx(2.0)


def test_a_ramp_has_the_rate_of_its_plan():
    ramp = Rps({"times": 60, "rps": {"start": 10, "end": 30, "step": 10, "duration": 1}})
    starts = [*np.arange(10) / 10, *1 + np.arange(20) / 20, *2 + np.arange(30) / 30]

    assert ramp.planned_s == pytest.approx(3.0)
    assert ramp.lasts_s is None
    assert load(starts, 0.01, planned_s=ramp.planned_s).ok_per_s == pytest.approx(20.0)


def test_the_plan_of_other_runners_is_over_when_they_are():
    stages = StagedRate({"stages": [{"target": 10, "duration": 5}]})

    assert stages.planned_s == stages.lasts_s == 5.0


def test_what_ended_well_before_an_instant_counts_a_bin_in_part():
    profile = LoadProfile()
    ends = np.arange(1, 101) * SECOND // 10
    profile.add(np.zeros(100, np.int64), ends, ends[:10])

    assert profile.ended_well(20 * SECOND) == 90
    assert profile.ended_well(5.05 * SECOND) == pytest.approx(40, abs=1)
