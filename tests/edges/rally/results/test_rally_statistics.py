"""Our table of durations against Rally's own, on any iterations."""

import importlib
import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from helpers.iterations import Action, Iteration, as_rally, columns
from osbench.common.values.outcomes import Outcome
from osbench.edges.rally import importing
from osbench.edges.rally.adapters.records import records
from osbench.edges.rally.results.rally_statistics import Durations

NAMES = st.sampled_from(["boot", "list", "delete"])
TICKS = st.integers(0, 3000)


def actions(inner):
    return st.builds(
        Action,
        name=NAMES,
        ticks=TICKS,
        failed=st.booleans(),
        within=st.lists(inner, max_size=2).map(tuple),
    )


LEAVES = st.builds(Action, name=NAMES, ticks=TICKS)
ITERATIONS = st.lists(
    st.builds(
        Iteration,
        ticks=TICKS,
        outcome=st.sampled_from([Outcome.OK, Outcome.OK, Outcome.FAILED, Outcome.TIMED_OUT]),
        idle=st.integers(0, 50),
        actions=st.lists(actions(actions(actions(LEAVES))), max_size=3).map(tuple),
    ),
    max_size=20,
)


@pytest.fixture(scope="module")
def charts():
    if not importing.load():
        pytest.skip("the extra osbench[rally] is not installed")
    return importlib.import_module("rally.task.processing.charts")


def ours(iterations):
    durations = Durations()
    for one in iterations:
        durations.add(one)
    return durations


@given(ITERATIONS)
def test_durations_are_those_that_rally_finds(charts, iterations):
    found = as_rally(iterations)
    theirs = charts.MainStatsTable({"total_iteration_count": len(found)})
    for one in found:
        theirs.add_iteration(one)

    durations = ours(found)

    assert durations.shown() == json.loads(json.dumps(theirs.to_dict()))
    assert durations.count == len(found)
    assert durations.failed == sum(bool(one["error"]) for one in found)


def test_result_rows_become_what_rallys_runners_hand_on():
    one = Iteration(
        ticks=512,
        idle=256,
        outcome=Outcome.FAILED,
        actions=(Action(name="boot", ticks=100, within=(Action(name="list", ticks=50),)),),
    )

    ((number, record),) = records(columns([one]), {1: ("KeyError", "no", "f()")}, 1000.0)

    assert number == 1
    assert (record["timestamp"], record["duration"], record["idle_duration"]) == (1000, 1, 0.5)
    assert record["error"] == ["KeyError", "no", "f()"]
    (boot,) = record["atomic_actions"]
    assert (boot["name"], boot["children"][0]["name"]) == ("boot", "list")
    assert boot["finished_at"] - boot["started_at"] == pytest.approx(100 / 512)


def test_an_action_that_the_timeout_cut_short_has_failed_at_the_end_of_its_iteration():
    one = Iteration(ticks=512, outcome=Outcome.TIMED_OUT, actions=(Action(name="wait", ticks=-1),))

    ((_, record),) = records(columns([one]), {}, 0.0)

    (wait,) = record["atomic_actions"]
    assert (wait["finished_at"], wait["failed"]) == (1, True)
    assert record["error"][:2] == ["IterationTimeout", "had not ended at its timeout"]


def test_a_load_lasts_from_the_first_start_to_the_last_end():
    found = as_rally([Iteration(ticks=512), Iteration(ticks=1024, idle=512)])
    found[1]["timestamp"] = 2.5

    durations = ours(found)

    assert (durations.begun, durations.load_s) == (0, 4.5)
    assert (durations.least, durations.most) == (1, 2)
