"""The keys `workers` (shares of zones) and `http: {by: ...}` of a workload."""

from __future__ import annotations

from typing import Any

import pytest

from osbench.common.errors import TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Task
from osbench.coordinator.task.taskfile.loading import checked_task
from osbench.coordinator.task.taskfile.zone_shares import shares_of


def checked(subtask: dict[str, Any]) -> Task:
    scenario = {"scenario": {"Dummy.dummy": {}}} if "workloads" not in subtask else {}
    document = {"version": 2, "title": "t", "subtasks": [{"title": "s", **scenario, **subtask}]}
    return checked_task(document, "task", Plugins([]))


def problems(subtask: dict[str, Any]) -> list[str]:
    with pytest.raises(TaskError) as raised:
        checked(subtask)
    return [f"{one.place}: {one.message}" for one in raised.value.problems]


def test_a_share_is_a_text_in_percent_or_a_number() -> None:
    one = checked({"workers": {"zone": "eu", "share": "12.5%"}}).workloads[0]
    several = [{"zone": "eu", "share": 30}, {"zone": "us", "share": "70 %"}]

    assert one.zones == {"eu": 125_000}
    assert checked({"workers": several}).workloads[0].zones == {"eu": 300_000, "us": 700_000}
    assert shares_of([{"zone": "eu", "share": 30}, {"zone": "eu", "share": 5}]) == {"eu": 350_000}


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        ({"zone": "eu/1", "share": 30}, ".zone: must match"),
        ({"zone": "eu", "share": "30"}, ".share: must match"),
        ({"zone": "eu", "share": 0}, ".share: must be more than 0"),
        ({"zone": "eu", "share": 101}, ".share: must be at most 100"),
        ({"zone": "eu", "share": "0 %"}, ": has a zone with a share of 0"),
        ({"zone": "eu", "share": "101 %"}, ": has shares of 101 %"),
        ([{"zone": "eu", "share": 60}, {"zone": "us", "share": 50}], ": has shares of 110 %"),
        ({"zone": "eu"}, "share"),
        ({"zone": "eu", "share": 5, "shares": 5}, "shares"),
        ({"zone": "eu", "share": f"{'9' * 400} %"}, ": has shares of 1000 %"),
        ({"zone": "eu\n", "share": 5}, ".zone: must match"),
        ([], "workers"),
        ("eu", "workers"),
    ],
)
def test_shares_that_cannot_be_kept_are_refused(workers: Any, message: str) -> None:
    (found,) = problems({"workers": workers})

    assert message in found


def test_workloads_at_once_have_no_shares() -> None:
    workload = {"scenario": {"Dummy.dummy": {}}, "workers": {"zone": "eu", "share": 30}}
    both = [workload, {"scenario": {"Dummy.dummy": {}}}]

    (found,) = problems({"run_in_parallel": True, "workloads": both})

    assert "cannot be used with run_in_parallel" in found


@pytest.mark.parametrize(("by", "message"), [("Set-Cookie", "secret"), ("a b", "must match")])
def test_requests_are_not_counted_by_such_a_header(by: str, message: str) -> None:
    (found,) = problems({"http": {"by": by}})

    assert found.startswith("subtasks[0].http.by: ")
    assert message in found


def test_a_limit_of_iterations_below_the_number_of_zones_is_refused() -> None:
    runner = {"rps": {"rps": 1, "times": 9, "max_concurrency": 1}}

    (found,) = problems({"runner": runner, "workers": {"zone": "eu", "share": 30}})

    assert "has more zones than max_concurrency allows iterations (1)" in found
