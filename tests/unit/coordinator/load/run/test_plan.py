"""The plan of a run: computed once, before the first connection."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from osbench.common.config.config import load
from osbench.common.errors import TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.load.fleet.worker_request import ANY_NUMBER
from osbench.coordinator.load.run import plan
from osbench.coordinator.load.run.plan import RunOptions, RunPlan, plan_run
from osbench.coordinator.plugins.runners.constant import Constant
from osbench.coordinator.task.taskfile import parse

PLUGINS = Plugins()


def workload(users: int = 1, **keys: Any) -> dict[str, Any]:
    runner = {"constant": {"times": 50, "concurrency": users}}
    return {"scenario": {"Dummy.dummy": {}}, "runner": runner, **keys}


def planned(*subtasks: dict[str, Any], options: RunOptions | None = None) -> RunPlan:
    titled = [{"title": f"part {at}", **one} for at, one in enumerate(subtasks)]
    document = {"version": 2, "title": "t", "tags": ["nightly"], "subtasks": titled}
    task = parse(document, "-")
    return plan_run(task, PLUGINS, None, load([]), options or RunOptions())


def test_workloads_are_numbered_over_subtasks_and_grouped_by_when_they_run():
    plan = planned(
        {"workloads": [workload(4), workload(9)], "run_in_parallel": True},
        {"workloads": [workload(2), workload(3)]},
    )

    assert [[one.number for one in group] for group in plan.groups] == [[0, 1], [2], [3]]
    assert [one.subtask.title for one in plan.workloads] == ["part 0", "part 0", "part 1", "part 1"]
    assert (plan.needs.workers, plan.needs.users, plan.needs.threads_alone) == (2, 13, 9)


def test_workloads_of_one_scenario_are_told_apart():
    plan = planned({"workloads": [workload(), workload(), workload(name="mine")]})

    assert [one.name for one in plan.workloads] == ["Dummy.dummy [0]", "Dummy.dummy [1]", "mine"]
    assert [one.title for one in plan.workloads] == ["part 0 [0]", "part 0 [1]", "mine"]


def test_each_workload_has_its_runner_and_scenario_ready():
    (one,) = planned({"workloads": [workload(4)]}).workloads

    assert isinstance(one.runner, Constant)
    assert (one.runner.concurrency, one.name, one.scenario.method) == (4, "Dummy.dummy", "dummy")
    # no deployment: no key to sign trace headers with
    assert (one.sampling.state, one.profiled) == ("no key", False)


def test_a_plan_does_not_change():
    plan = planned({"workloads": [workload()]})

    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.run_id = "another"  # type: ignore[misc]


def test_an_id_that_was_given_out_is_kept_and_tags_come_once():
    options = RunOptions(run_id="r1", tags=("mine", "nightly"))
    plan = planned({"workloads": [workload()]}, options=options)

    assert (plan.run_id, plan.tags) == ("r1", ("nightly", "mine"))


@pytest.mark.parametrize(
    ("users", "processes", "at_most"), [(1, None, 1), (1000, None, 1000), (4, 3, 3)]
)
def test_local_mode_has_no_more_processes_than_users_and_room_for_all_users(
    users, processes, at_most
):
    plan = planned({"workloads": [workload(users)]}, options=RunOptions(workers=processes))

    assert 1 <= plan.local_processes <= at_most
    assert plan.local_processes * plan.local_users >= users
    assert plan.request(private=True).count == plan.local_processes
    assert plan.request(private=False).count == processes


@pytest.mark.parametrize(
    ("workers", "join", "most", "wanted"),
    [
        (None, None, ANY_NUMBER, 1),
        (3, None, 0, 3),
        (3, True, 3, 1),
        (None, True, ANY_NUMBER, 1),
        (None, False, 0, 1),
    ],
)
def test_workers_join_a_run_without_a_number_of_workers_or_as_asked(workers, join, most, wanted):
    options = RunOptions(workers=workers, join=join)
    plan = planned({"workloads": [workload()]}, options=options)

    assert plan.most_workers == most
    assert plan.request(private=False).wanted == wanted


def test_by_configuration_nobody_joins():
    plan = planned({"workloads": [workload()]})
    plan.conf.set_override("join", False, "coordinator")

    assert plan.most_workers == 0


def test_a_data_file_that_cannot_be_used_is_refused_before_any_connection(tmp_path):
    missing = str(Path(tmp_path) / "users.csv")

    with pytest.raises(TaskError, match="users"):
        planned({"workloads": [workload(args_from=missing)]})


def test_ids_of_runs_of_one_second_sort_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    instants = [1_775_000_000 + at / 100 for at in (0, 2, 31, 50, 99, 100, 161)]
    left = iter(instants)
    monkeypatch.setattr(plan.time, "time", lambda: next(left))

    ids = [plan.new_run_id() for _ in instants]

    assert ids == sorted(ids)
    assert all(re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{4}", one) for one in ids)


def test_workers_of_local_mode_share_the_modules_of_their_scenarios():
    flow = {"scenario": {"HttpFlow.run": {"steps": [{"path": "http://a.example/"}]}}}
    plan = planned({"workloads": [workload(), {**workload(), **flow}]})

    assert plan.worker_modules == [
        "osbench.edges.flows.grouped_http_flow",
        "osbench.edges.flows.step_groups",
        "osbench.worker.http.user.http_session",
        "osbench.worker.scenarios.dummy",
    ]
