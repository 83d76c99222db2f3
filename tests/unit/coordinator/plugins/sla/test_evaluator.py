"""SlaEvaluator of a workload together, and those that break."""

import pytest

from helpers.iterations import columns, failed, ok, statistics
from osbench.common.errors import TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Named
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.task.taskfile import checked_task

BROKEN = """
from osbench.plugin import sla


class Broken(sla.Sla):
    NAME = "broken"
    CONFIG_SCHEMA = {"enum": ["__init__", "add", "check", "breach"]}

    def __init__(self, config):
        super().__init__(config)
        self.fail("__init__")

    def fail(self, where):
        if self.config == where:
            raise KeyError(where)

    def add(self, columns):
        self.fail("add")

    def check(self, statistics):
        self.fail("check")
        return self.verdict(True, "fine")

    def breach(self, statistics, plan):
        self.fail("breach")
        return None


class Unsure(sla.Sla):
    NAME = "unsure"

    @classmethod
    def check_config(cls, config):
        raise ValueError("what?")
"""


@pytest.fixture
def plugins(tmp_path):
    (tmp_path / "broken.py").write_text(BROKEN)
    return Plugins([str(tmp_path)])


def named(name, config):
    return Named(name=name, config=config)


@pytest.mark.parametrize("where", ["__init__", "add", "check", "breach"])
def test_a_criterion_that_raises_fails_and_the_others_are_judged(plugins, where):
    criteria = SlaEvaluator([named("broken", where), named("failure_rate", {"max": 0})], plugins)
    rows = columns(ok(1))

    criteria.add(rows)
    stop = criteria.breach(statistics(rows), 5)
    first, second = criteria.judge(statistics(rows))

    assert stop == (None if where == "check" else first)
    assert not first.success
    assert first.criterion == "broken"
    assert where in first.detail
    assert second.success
    assert criteria.failing(statistics(rows)) == (first,)


def test_the_first_breach_is_told(plugins):
    criteria = SlaEvaluator(
        [
            named("throughput", {"min": 1000}),
            named("failure_rate", {"max": 0}),
            named("max_seconds_per_iteration", 1e-6),
        ],
        plugins,
    )
    rows = columns(failed(1))
    criteria.add(rows)

    assert criteria.breach(statistics(), 5) is None
    verdict = criteria.breach(statistics(rows), 5)

    assert verdict.criterion == "failure_rate"
    assert [one.criterion for one in criteria.failing(statistics(rows))] == [
        "throughput",
        "failure_rate",
        "max_seconds_per_iteration",
    ]


def document(sla):
    return {
        "version": 2,
        "title": "t",
        "subtasks": [{"title": "s", "scenario": {"Dummy.dummy": {}}, "sla": sla}],
    }


def test_a_task_whose_criterion_cannot_be_met_is_refused_with_its_place(plugins):
    with pytest.raises(TaskError) as refused:
        checked_task(document({"failure_rate": {"min": 5, "max": 1}}), "task", plugins)

    (problem,) = refused.value.problems
    assert problem.place.endswith("sla.failure_rate")
    assert problem.message == "min must not be above max, got min 5 and max 1"


def test_a_criterion_that_cannot_check_its_configuration_is_a_problem(plugins):
    with pytest.raises(TaskError) as refused:
        checked_task(document({"unsure": {}}), "task", plugins)

    (problem,) = refused.value.problems
    assert "ValueError: what?" in problem.message


def test_a_drill_is_not_judged_before_its_end():
    criteria = SlaEvaluator(
        [named("drill", {"failed": {"max": 5}}), named("failure_rate", {"max": 0})], Plugins()
    )
    rows = columns(ok(1))

    during = criteria.judge(statistics(rows), running=True)
    after = criteria.judge(statistics(rows))

    assert [one.criterion for one in during] == ["failure_rate"]
    assert [one.criterion for one in after] == ["drill", "failure_rate"]
