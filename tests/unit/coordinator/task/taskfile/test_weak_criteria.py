"""Notes on criteria that failing or slow services may meet."""

from __future__ import annotations

import pytest

from osbench.common.config.options import CRITERIA_NOTES
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.task.taskfile.parsing import parse
from osbench.coordinator.task.taskfile.semantics import criteria_notes, in_seconds, notes

OPEN = {"rps": {"rps": 10, "times": 200}}
CLOSED = {"constant": {"times": 150, "concurrency": 3}}
BY_TIME = {"constant_for_duration": {"duration": 20, "concurrency": 3}}
FAILURES = {"failure_rate": {"max": 0}}


def task_of(sla=None, runner=CLOSED, **keys):
    """Return a task of one workload."""
    workload = {"title": "w", "scenario": {"Dummy.dummy": {}}, "runner": runner, **keys}
    if sla is not None:
        workload["sla"] = sla
    return parse({"version": 2, "title": "t", "subtasks": [workload]}, "task.yaml")


def found(sla=None, runner=CLOSED, silenced=(), **keys):
    """Return the notes on the criteria of a task of one workload, as text."""
    plugins = Plugins()
    task = in_seconds(task_of(sla, runner, **keys), plugins)
    return [str(one) for one in criteria_notes(task, plugins, silenced)]


def percentile(p, **limit):
    """Return criteria with one percentile."""
    return {**FAILURES, "percentile": {"p": p, "max_s": 1, **limit}}


@pytest.mark.parametrize(
    ("sla", "runner", "name", "said"),
    [
        ({}, CLOSED, "no-criterion", "is empty"),
        ({"failure_rate": {"max": 100}}, CLOSED, "failures-allowed", "allows 100 %"),
        ({"failure_rate": {"max": 93.5}}, CLOSED, "failures-allowed", "allows 93.5 %"),
        ({"max_avg_duration": 3}, CLOSED, "failures-unjudged", "judges no failures"),
        (percentile(99.5), CLOSED, "few-iterations", "p99.5 of at most 150 iterations is"),
        (percentile(99, over_s=4), OPEN, "few-iterations", "of at most 40 iterations in 4 s is"),
        (percentile(50, of="response"), BY_TIME, "closed-response", "p50 of response time"),
    ],
)
def test_a_criterion_that_is_met_too_easily_is_noted_and_can_be_silenced(sla, runner, name, said):
    (note,) = found(sla, runner)
    assert said in note
    assert note.endswith(f"(to silence: silenced_notes = {name})")
    assert found(sla, runner, silenced=[name]) == []
    others = [one for one in CRITERIA_NOTES if one != name]
    assert found(sla, runner, silenced=others) == [note]


@pytest.mark.parametrize(
    ("sla", "runner"),
    [
        (None, CLOSED),
        ({"failure_rate": {"max": 89}}, CLOSED),
        ({"failure_rate": {"min": 95}}, CLOSED),  # they are to fail
        ({"throughput": {"min": 5}}, CLOSED),
        (percentile(99), CLOSED),
        (percentile(100), CLOSED),  # the longest on purpose
        (percentile(99.9, action="dummy"), CLOSED),  # the number of calls is not known
        (percentile(99.9), BY_TIME),  # neither is the number of iterations
        (percentile(99, of="response", over_s=10), OPEN),
        # its users are closed on purpose
        (percentile(95, of="response"), {"search": {"users": {"low": 1, "high": 9}}}),
    ],
)
def test_criteria_that_mean_something_have_no_note(sla, runner):
    assert found(sla, runner) == []


def test_iterations_of_the_warm_up_are_in_no_percentile():
    assert found(percentile(99), OPEN) == []
    (note,) = found(percentile(99), OPEN, warmup=11)
    assert "p99 of at most 90 iterations is the longest" in note


def test_a_criterion_of_a_plug_in_may_judge_failures(tmp_path):
    (tmp_path / "own.py").write_text(
        "from osbench.plugin import sla\n"
        "class Own(sla.Sla):\n"
        "    NAME = 'own'\n"
        "    def check(self, statistics):\n"
        "        return self.verdict(statistics.count('failed') == 0, '')\n"
    )
    plugins = Plugins((str(tmp_path),))
    plugins.import_files()
    assert criteria_notes(task_of({"own": {}}), plugins) == []


def test_they_are_among_the_notes_of_a_task():
    plugins = Plugins()
    assert [str(one) for one in notes(task_of({}), plugins)] == found({})
    assert notes(task_of({}), plugins, ["no-criterion"]) == []
