"""Dummy scenarios take Rally's arguments and leave Rally's atomic actions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgpack
import pytest
import yaml

from helpers.corpus import corpus
from osbench.common.plugin import scenario
from osbench.common.plugin.atomic import WIDTH
from osbench.common.plugin.plugins import Plugins


class Iteration:
    """One iteration of a scenario, and its actions as (name, parent, failed)."""

    def __init__(self, scenario_name: str, number: int = 1, **args: Any) -> None:
        self.args = args
        self.plugin = Plugins().scenario(scenario_name)
        self.instance = self.plugin.cls({"iteration": number})

    def run(self) -> Iteration:
        assert self.plugin.check_args(self.args) == []
        getattr(self.instance, self.plugin.method)(**self.args)
        return self

    @property
    def actions(self) -> list[tuple[str, int, int]]:
        recorder = self.instance._recorder
        names, flat = recorder.names.names, recorder.actions
        steps = range(0, len(flat), WIDTH)
        return [(names[flat[at]], flat[at + 1], flat[at + 4]) for at in steps]


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were asked for, instead of sleeping them."""
    asked: list[float] = []
    monkeypatch.setattr("osbench.worker.scenarios.dummy.pause", asked.append)
    return asked


def test_dummy_sleeps_in_an_action_within_an_action(slept):
    iteration = Iteration("Dummy.dummy", sleep=0.25, anything="else").run()

    assert iteration.actions == [("foo", -1, 0), ("bar", 0, 0)]
    assert slept == [0.25]


def test_dummy_exception(slept):
    with pytest.raises(Exception, match=r"^MMMMM$"):
        Iteration("Dummy.dummy_exception", size_of_message=5).run()
    with pytest.raises(Exception, match=r"^my own$"):
        Iteration("Dummy.dummy_exception", message="my own", sleep=2).run()

    assert slept == [1, 2]


def test_dummy_exception_probability():
    Iteration("Dummy.dummy_exception_probability", exception_probability=0).run()

    with pytest.raises(Exception, match="probability is 1"):
        Iteration("Dummy.dummy_exception_probability", exception_probability=1).run()


def test_dummy_random_fail_in_atomic():
    actions = Iteration("Dummy.dummy_random_fail_in_atomic", exception_probability=0).run().actions

    pair = ["dummy_fail_test", "dummy_fail_inner_test"]
    assert [name for name, _, _ in actions] == pair * 2
    assert [parent for _, parent, _ in actions] == [-1, 0, -1, 2]
    failing = Iteration("Dummy.dummy_random_fail_in_atomic", exception_probability=1)
    with pytest.raises(KeyError):
        failing.run()
    assert failing.actions == [("dummy_fail_test", -1, 1)]


def test_dummy_random_action(slept):
    actions = (
        Iteration("Dummy.dummy_random_action", actions_num=3, sleep_min=1, sleep_max=2)
        .run()
        .actions
    )

    assert [name for name, _, _ in actions] == ["action_0", "action_1", "action_2"]
    assert all(1 <= seconds <= 2 for seconds in slept)


def test_dummy_timed_atomic_actions(slept):
    actions = (
        Iteration("Dummy.dummy_timed_atomic_actions", number_of_actions=3, sleep_factor=0.5)
        .run()
        .actions
    )

    assert [name for name, _, _ in actions] == ["action_0", "action_1", "action_2"]
    assert slept == [0, 0.5, 1]


@pytest.mark.parametrize(("iteration", "fails"), [(4, 0), (5, 0), (6, 1), (7, 0), (10, 1), (12, 0)])
def test_failure_in_a_range_of_iterations(slept, iteration, fails):
    args = {"sleep": 0, "from_iteration": 6, "to_iteration": 10, "each": 2}

    if fails:
        with pytest.raises(Exception, match="on purpose"):
            Iteration("Dummy.failure", iteration, **args).run()
    else:
        Iteration("Dummy.failure", iteration, **args).run()


def test_failure_never_fails_by_default_or_with_each_0(slept):
    Iteration("Dummy.failure").run()
    Iteration("Dummy.failure", each=0, to_iteration=5).run()

    assert slept == [0.1, 0.1]


def test_dummy_output_shows_every_kind_of_chart():
    iteration = Iteration("Dummy.dummy_output", random_range=3).run()

    made = [msgpack.unpackb(packed) for packed in iteration.instance._outputs]
    charts = [(one["kind"], one["item"]["chart_plugin"]) for one in made]
    assert charts == [
        *(("additive", name) for name in ("StatsTable", "StackedArea", "Lines", "Pie")),
        *(("complete", name) for name in ("Lines", "StackedArea", "Pie", "TextArea", "Table")),
    ]
    assert {type(one["item"]["data"]) for one in made} == {list, dict}
    assert all(1 <= value <= 3 for _, value in made[0]["item"]["data"])


def test_long_sleeps_are_slept_in_pieces(monkeypatch):
    slept: list[float] = []
    clock = iter(range(100))
    monkeypatch.setattr("osbench.common.plugin.scenario.time.sleep", slept.append)
    monkeypatch.setattr("osbench.common.plugin.scenario.time.monotonic", lambda: float(next(clock)))

    scenario.pause(0)
    scenario.pause(0.5)
    scenario.pause(3.5)

    assert slept == [0.5, 1.0, 1.0, 0.5]


def test_every_dummy_workload_of_rally_fits():
    plugins, seen = Plugins(), set()
    for path in sorted(corpus().glob("rally*/**/*.*")):
        text = path.read_text()
        # a template is not YAML yet; Dummy.openstack is rally-openstack's own, for the bridge
        if "Dummy." not in text or "{%" in text or "Dummy.openstack" in text:
            continue
        # JSON is YAML
        for workload in workloads(yaml.safe_load(text)):
            for name, args in workload["scenario"].items():
                if name.startswith("Dummy."):
                    assert plugins.scenario(name).check_args(args) == [], path
                    seen.add((path, name))

    assert len(seen) >= 60
    assert {name for _, name in seen} == {
        name for name in plugins.scenario_names() if name.startswith("Dummy.")
    }


def workloads(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for subtask in task["subtasks"]:
        yield from subtask.get("workloads", [subtask])
