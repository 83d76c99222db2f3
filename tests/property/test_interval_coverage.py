import math

import pytest

from bench.interval_coverage import coverage_of
from helpers.latency_processes import PROCESSES

RUNS = 60


@pytest.mark.dear
@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.name)
def test_intervals_hold_the_truth_as_often_as_they_say(process):
    found = coverage_of(process, RUNS, seed=3)

    # `make statistics` takes 1,000 runs
    for percent, one in found.items():
        assert not one.wrong(process), (percent, one.share)
        assert len(one.held) >= 0.9 * one.runs, percent


@pytest.mark.parametrize("number", [0, 3, 6, 7, 8, 9], ids=lambda number: PROCESSES[number].name)
def test_independent_latencies_and_a_queue_at_half_load_have_intervals_with_both_bounds(number):
    found = coverage_of(PROCESSES[number], 20)

    assert found[50].bounded == 1
    assert found[95].bounded >= 0.9
    assert math.isfinite(found[50].width)
