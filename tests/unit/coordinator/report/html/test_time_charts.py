"""The load over time: counts of fine bins become numbers a second in wider ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helpers.report_facts import facts_of
from helpers.sample_reports import constant_workload, run_report
from osbench.coordinator.report.html.time_charts import charts_of
from osbench.coordinator.report.html.workload_facts import WorkloadFacts, workloads_of
from osbench.coordinator.report.page_facts import gather

#: Bins of half a second, two of which are shown as one of a second.
LOAD: dict[str, Any] = {
    "bin_s": 0.5,
    "starts": [4, 6] * 60,
    "ends": [3, 5] * 60,
    "failures": [1, 0] * 60,
    "running": [2.0, 4.0] * 60,
    "due_bin_s": 0.25,
    "due": [1, 2, 3, 4] * 60,
}


def workload(folder: Path, *, is_open: bool = False, **timeline: Any) -> WorkloadFacts:
    """A workload of 60 s with another timeline."""
    facts = facts_of(folder, run_report(constant_workload()))
    if is_open:
        facts.summary["workloads"][0]["offered"]["concurrency"] = None
    assert facts.timeline is not None
    facts.timeline["workloads"][0].update({"elapsed_s": 60.0, **timeline})
    (found,) = workloads_of(gather(facts))
    return found


def test_bins_have_numbers_a_second_and_the_mean_of_what_ran(tmp_path: Path) -> None:
    load = charts_of(workload(tmp_path, load=LOAD)).load

    assert load.width_s == 1.0
    assert load.started == [10.0] * 60
    assert load.failed == [1.0] * 60
    # an end is one that went well, or a failure
    assert load.ok == [7.0] * 60
    assert load.running == [3.0] * 60
    assert load.due == [10.0] * 60


def test_a_load_of_an_hour_has_wider_bins_and_the_same_rates(tmp_path: Path) -> None:
    longer = {
        name: value * 60 if isinstance(value, list) else value for name, value in LOAD.items()
    }

    load = charts_of(workload(tmp_path, load=longer, elapsed_s=3600.0)).load

    assert load.width_s > 1.0
    assert load.started[0] == 10.0
    assert load.due[0] == 10.0
    assert load.running[0] == 3.0


def test_a_run_without_a_load_profile_has_no_bins(tmp_path: Path) -> None:
    load = charts_of(workload(tmp_path, load={})).load

    assert load.started == load.ok == load.due == []


@pytest.mark.parametrize(
    ("is_open", "asked", "shown"),
    [
        (True, [[0.0, 5.0]], [[0.0, 5.0], [60.0, 5.0]]),
        (True, [[0.0, 5.0], [30.0, 9.0]], [[0.0, 5.0], [30.0, 9.0]]),
        (False, [[0.0, 5.0], [30.0, 9.0]], [[0.0, 5.0], [30.0, 9.0], [60.0, 9.0]]),
        (False, [[0.0, 5.0], [60.0, 9.0]], [[0.0, 5.0], [60.0, 9.0]]),
        (True, [], []),
    ],
)
def test_users_stay_to_the_end_and_so_does_a_constant_rate(
    tmp_path: Path, is_open: bool, asked: list[list[float]], shown: list[list[float]]
) -> None:
    assert charts_of(workload(tmp_path, is_open=is_open, asked=asked)).asked == shown
