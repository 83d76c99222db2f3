"""The runner `overload` in task files, and the load that it makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.common.errors import TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Task
from osbench.coordinator.task.taskfile import checked_task
from osbench.edges.overload.overload_runner import Overload
from osbench.plugin import runner as plugin


def checked(runner: Any, **keys: Any) -> Task:
    subtask = {"title": "Shop", "scenario": {"Dummy.dummy": {}}, "runner": runner, **keys}
    document = {"version": 2, "title": "Shop", "subtasks": [subtask]}
    return checked_task(document, "task.yaml", Plugins())


def problems(config: Any, **keys: Any) -> str:
    """The messages of a task with this runner; "" if it is accepted."""
    try:
        checked({"overload": config}, **keys)
    except TaskError as error:
        return str(error)
    return ""


def due(runner: Overload) -> list[float]:
    """All due times, in the steps in which a coordinator asks for them."""
    found: list[float] = []
    for second in range(0, int(runner.lasts_s) + 20, 5):
        totals = plugin.Totals(allotted=len(found), settled=len(found))
        found += runner.step(second, totals, [100]).arrivals
    return found


def test_the_share_is_held_then_a_multiple_of_the_capacity_and_the_share_again() -> None:
    runner = Overload(
        {"of": 100, "times": 3, "for": 4, "back_to": "60 %", "before": 5, "watch": 10}
    )

    found = due(runner)

    assert runner.asked() == [(0, 60), (5, 60), (5, 300), (9, 300), (9, 60), (19, 60)]
    assert len(found) == runner.planned == 5 * 60 + 4 * 300 + 10 * 60
    assert len([at for at in found if at < 5]) == 300
    assert len([at for at in found if 5 <= at < 9]) == 1200


def test_a_plain_backlog_has_time_to_drain_by_default() -> None:
    plan = Overload({"of": 100}).plan

    # a minute of 100/s too many, worked off with the 30/s that are free
    assert plan.drains_s == pytest.approx(60 * 100 / 30)
    assert plan.end_s - plan.return_s == pytest.approx(1.5 * plan.drains_s)
    assert plan.begin_s == 60


@given(
    st.floats(1, 5000), st.floats(1.01, 20), st.integers(1, 99), st.floats(1, 300), st.booleans()
)
def test_arrivals_are_as_many_as_the_rates_give(
    of: float, times: float, percent: int, for_s: float, is_text: bool
) -> None:
    share = f"{percent} %" if is_text else percent / 100
    runner = Overload({"of": of, "times": times, "for": for_s, "back_to": share})
    plan = runner.plan

    held = of * percent / 100 * (plan.end_s - float(plan.for_s))

    assert runner.planned == pytest.approx(held + of * times * for_s, abs=1.01, rel=1e-6)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "of"),
        ({"of": 0}, "of"),
        ({"of": "120/s"}, "of is a rate, arrivals per second, or search, got '120/s'"),
        ({"of": 1e308}, "of: must be at most 1000000000.0, got 1e+308"),
        ({"of": 10**400}, "of: must be at most"),
        ({"of": True}, "of"),
        ({"of": 10, "times": 1}, "times"),
        ({"of": 10, "times": 0.5}, "times"),
        ({"of": 10, "back_to": 1}, "back_to"),
        ({"of": 10, "back_to": 70}, "back_to"),
        ({"of": 10, "back_to": "170 %"}, "back_to"),
        ({"of": 10, "back_to": "0 %"}, "back_to must be more than 0, got '0 %'"),
        ({"of": 10, "for": 0}, "for"),
        ({"of": 10, "for": "long"}, "for"),
        ({"of": 10, "until": 5}, "until"),
        ({"of": 1, "before": 5}, "before has 3.5 arrivals, and 40 are needed"),
        ({"of": 1e9, "times": 2}, "of must give rates between"),
        ({"of": "search"}, "of: search needs `found_in`"),
        ({"of": 10, "found_in": "x.json"}, "found_in is for `of: search`"),
        ({"of": "search", "found_in": "missing.json"}, "missing.json cannot be read as JSON"),
    ],
)
def test_mistakes_are_refused_by_name(config: Any, message: str) -> None:
    assert message in problems(config)


def test_durations_and_shares_are_written_as_people_do() -> None:
    assert not problems({"of": 120, "times": 2, "for": "60s", "back_to": "70 %"})
    assert not problems({"of": 120.5, "for": "1m", "back_to": 0.7, "watch": "5m", "before": "90s"})


def results(*searches: Any) -> str:
    return json.dumps({"workloads": [{"name": "w", "search": one} for one in searches]})


def test_the_capacity_is_taken_from_the_results_of_a_search(tmp_path: Path) -> None:
    file = tmp_path / "capacity.json"
    file.write_text(results(None, {"kind": "found", "rate": 80.5}))

    runner = Overload({"of": "search", "found_in": str(file), "times": 2})

    assert float(runner.plan.overload_per_s) == 161


def test_a_run_and_its_resume_have_the_capacity_that_the_file_had_at_first(
    tmp_path: Path,
) -> None:
    file = tmp_path / "capacity.json"
    file.write_text(results({"kind": "found", "rate": 80.5}))
    config = {"of": "search", "found_in": str(file), "times": 3}

    (workload,) = checked({"overload": config}).workloads
    file.unlink()

    assert workload.runner.config == {"of": 80.5, "times": 3}
    assert float(Overload(workload.runner.config).plan.overload_per_s) == 241.5


def test_phases_and_the_criterion_of_hooks_are_refused_beside_the_load_that_is_the_fault() -> None:
    trigger = {"event": {"unit": "time", "at": [30]}}
    hook = {"description": "cut", "action": {"sys_call": "true"}, "trigger": trigger}
    phases = problems({"of": 100}, phases={"fault": "cut"}, hooks=[hook])
    drill = problems({"of": 100}, sla={"drill": {"recovery_s": 3}})

    assert "phases: cannot be combined with the runner overload, whose load changes" in phases
    assert "sla.drill: is not for the runner overload, whose load is the fault itself" in drill


def test_a_warm_up_leaves_some_time_before_the_overload() -> None:
    assert not problems({"of": 100, "before": 30}, warmup=29)
    said = problems({"of": 100, "before": 30}, warmup="30s")
    assert "warmup: must be less than the 30 s before the fault, got 30" in said


def test_recovers_is_refused_without_an_overload() -> None:
    sla = {"recovers": {"within": "30s"}}

    assert not problems({"of": 100}, sla=sla)
    with pytest.raises(TaskError) as caught:
        checked({"rps": {"rps": 10, "duration": 10}}, sla=sla)

    (problem,) = caught.value.problems
    assert str(problem) == "subtasks[0].sla.recovers: judges loads of the runner overload only"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "cannot be read as JSON"),
        ("[]", "has 0 searches, expected one"),
        ('{"workloads": 3}', "has 0 searches, expected one"),
        (results({"rate": 1}, {"rate": 2}), "has 2 searches, expected one"),
        (results({"kind": "above", "rate": None}), "without a capacity (its result is 'above')"),
        (results({"kind": "found", "rate": True}), "without a capacity"),
        (results({"kind": "found", "rate": "80"}), "without a capacity"),
        (results({"kind": "unfinished", "rate": 80}), "(its result is 'unfinished')"),
        (results({"kind": "found", "rate": 12, "unit": "users"}), "a search for users at once"),
        (results({"kind": "found", "rate": 12, "limit": "p99 start lag"}), "the load generator"),
        ("[" * 100_000, "cannot be read as JSON"),
    ],
)
def test_a_file_without_a_capacity_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "capacity.json"
    file.write_text(text)

    assert message in problems({"of": "search", "found_in": str(file)})
