"""Resources in the staircases of stages and trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers.planted_counters import counters_of, queue, share
from helpers.sample_loads import search_workload, stages_workload
from osbench.coordinator.report.staircase.stage_steps import staircase_of_load
from osbench.coordinator.report.staircase.staircase_text import staircase_lines


def test_each_stage_has_the_means_of_its_time() -> None:
    staircase = staircase_of_load(stages_workload())

    assert staircase is not None
    assert [one.load for one in staircase.steps] == [4, 8]
    assert [one.resources["CPU of [b]db1"] for one in staircase.steps] == pytest.approx(
        [0.72, 0.96], abs=0.03
    )
    # queues have no limit
    assert all("messages ready of mq1" not in one.resources for one in staircase.steps)
    lines = list(staircase_lines(staircase))
    assert "fullest" in lines[0]
    assert "CPU of [b]db1 96 %" in lines[2]
    assert lines[-1].startswith("CPU of [b]db1 is the first resource above 90 %: 96 %")


def test_trials_of_a_rate_are_taken_together() -> None:
    points = np.zeros(61)
    points[12:21] = 0.8
    found = counters_of(share("CPU", "db1", points), queue("jobs", "mq1", points))

    staircase = staircase_of_load(replace(search_workload(), counters=found))

    assert staircase is not None
    by_load = {one.load: one.resources["CPU of db1"] for one in staircase.steps}
    assert by_load[20] == 0
    assert by_load[40] == pytest.approx(0.8)


def test_a_load_without_counters_has_a_staircase_all_the_same() -> None:
    staircase = staircase_of_load(replace(stages_workload(), counters=None))

    assert staircase is not None
    assert staircase.resources_sentence == ""
    assert not any("fullest" in one for one in staircase_lines(staircase))
