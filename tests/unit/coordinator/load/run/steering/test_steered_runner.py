"""Loads that are changed while they go on: which arrivals there are, and how many users."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.common.plugin.runner import Totals
from osbench.coordinator.load.run.steering.steered_runner import SteeredRunner, level_at
from osbench.coordinator.plugins.runners.constant import Constant
from osbench.coordinator.plugins.runners.constant_for_duration import ConstantForDuration
from osbench.coordinator.plugins.runners.rps import Rps
from osbench.coordinator.plugins.runners.stages import StagedRate
from osbench.coordinator.results.accounting.load_change import LoadChange
from osbench.edges.capacity.search import Search

FLAT = StagedRate({"start": 10, "stages": [{"duration": 60, "target": 10}]})


class Load:
    """Plays a load: gives arrivals out as a dispatcher does, up to the present and no further."""

    def __init__(self, planned):
        self.changes = []
        self.runner = SteeredRunner(planned, self.changes)
        self.dues = []

    def until(self, instant_s):
        """Give out what is due before an instant."""
        while True:
            step = self.runner.step(instant_s, Totals(allotted=len(self.dues), settled=0), ())
            due = [one for one in step.arrivals if one < instant_s]
            self.dues += due
            if not due:
                return self

    def change(self, at_s, level):
        """Ask for something else from an instant on."""
        self.until(at_s)
        made = LoadChange(request="r", at_s=at_s, level=level, number=len(self.dues))
        if level is None:
            skipped, late_s = self.runner.back_to_plan(at_s, len(self.dues))
            made = replace(made, skipped=skipped, late_s=late_s)
        self.changes.append(made)
        return self

    def counts(self, *edges):
        """Arrivals between instants."""
        return np.histogram(self.dues, edges)[0].tolist()

    @property
    def done(self):
        """Whether the load is over once all that was given out is settled."""
        known = len(self.dues)
        return self.runner.step(1e6, Totals(allotted=known, settled=known), ()).done


def test_a_load_that_nobody_changes_is_as_planned():
    load = Load(FLAT).until(99)

    assert load.dues == [at / 10 for at in range(600)]
    assert load.runner.planned == 600
    assert load.done


def test_a_changed_rate_holds_until_the_last_stage_ends():
    load = Load(FLAT).change(20, 50.0).until(99)

    assert load.counts(0, 20, 40, 60, 99) == [200, 1000, 1000, 0]
    assert load.runner.planned == len(load.dues) == 2200
    assert load.done


def test_a_number_of_iterations_stays_the_number_whatever_the_rate():
    load = Load(Rps({"times": 500, "rps": 10})).change(10, 40.0).until(99)

    assert load.counts(0, 10, 20, 99) == [100, 400, 0]
    assert load.runner.planned == 500
    assert load.done


def test_a_pause_starts_nothing_and_the_plan_of_stages_goes_on_in_time():
    load = Load(FLAT).change(20, 0.0).until(30)
    assert load.runner.planned == 200

    load.change(30, None).until(99)

    assert load.counts(0, 20, 30, 60, 99) == [200, 0, 300, 0]
    assert load.runner.planned == 500
    assert load.done


def test_a_number_of_iterations_goes_on_after_a_pause_where_it_was_left():
    load = Load(Rps({"times": 500, "rps": 10})).change(20, 0.0).change(30, None).until(99)

    assert load.counts(0, 20, 30, 60, 99) == [200, 0, 300, 0]
    assert load.done


def test_a_pause_of_stages_is_not_the_end_while_they_last():
    load = Load(FLAT).change(20, 0.0)
    settled = Totals(allotted=200, settled=200)

    assert not load.runner.step(59.9, settled, ()).done
    assert load.runner.step(60.0, settled, ()).done


def test_a_pause_at_the_end_of_stages_ends_the_load_with_them():
    load = Load(FLAT).change(20, 0.0).until(99)

    assert len(load.dues) == load.runner.planned == 200
    assert load.done


def test_a_pause_of_a_number_of_iterations_is_not_the_end():
    assert not Load(Rps({"times": 500, "rps": 10})).change(20, 0.0).until(99).done


def test_back_to_the_plan_of_a_number_of_iterations_those_of_another_rate_count():
    load = Load(Rps({"times": 500, "rps": 10})).change(10, 30.0).change(20, None).until(99)

    assert load.counts(0, 10, 20, 30, 99) == [100, 300, 100, 0]
    assert load.done


def test_ramps_go_on_at_the_rate_of_the_time():
    ramp = StagedRate({"stages": [{"duration": 40, "target": 40}]})
    load = Load(ramp).change(10, 1.0).change(30, None).until(40)

    assert load.counts(0, 10, 30, 40) == [50, 20, 350]


def test_arrivals_left_from_before_a_change_are_given_out_as_they_were_planned():
    load = Load(FLAT).change(20, 50.0)
    del load.dues[150:]

    load.until(21)

    assert load.counts(0, 15, 20, 21) == [150, 50, 50]
    assert load.dues[150] == 15.0


def test_poisson_arrivals_stay_random_at_the_new_rate():
    load = Load(Rps({"times": 99_999, "rps": 10, "arrivals": "poisson"}))
    load.change(10, 2000.0).until(20)

    gaps = np.diff([due for due in load.dues if due > 10])
    assert load.counts(10, 20)[0] == pytest.approx(20_000, rel=0.05)
    assert gaps.std() / gaps.mean() == pytest.approx(1, rel=0.05)


@given(
    st.lists(
        st.tuples(st.floats(0.1, 20), st.sampled_from([None, 0.0, 0.5, 7.0, 33.0])),
        max_size=6,
    ),
    st.booleans(),
)
def test_whatever_is_changed_arrivals_ascend_and_are_as_many_as_planned(changes, timed):
    load, now_s = Load(FLAT if timed else Rps({"times": 120, "rps": 10})), 0.0
    for passed_s, level in changes:
        now_s += passed_s
        load.change(now_s, level)
    load.until(2000)

    assert load.dues == sorted(load.dues)
    for change in load.changes:
        assert all(due <= change.at_s for due in load.dues[: change.number])
        assert all(due >= change.at_s - 1e-6 for due in load.dues[change.number :])
    paused = bool(load.changes) and load.changes[-1].level == 0
    if timed or not paused:
        assert len(load.dues) == load.runner.planned
        assert load.done


@pytest.mark.parametrize(
    "planned",
    [
        Constant({"times": 99, "concurrency": 4}),
        ConstantForDuration({"duration": 9, "concurrency": 4}),
    ],
)
def test_users_are_those_asked_for_last_and_the_rest_is_as_planned(planned):
    changes = []
    runner = SteeredRunner(planned, changes)
    totals = Totals(allotted=9, settled=9)
    before = runner.step(5, totals, [10, 10])
    for level, users in ((12.0, 12), (0.0, 0), (None, 4)):
        changes.append(LoadChange(request="r", at_s=1.0, level=level))

        step = runner.step(5, totals, [10, 10])

        assert (runner.users(5), sum(step.users)) == (users, users)
        assert replace(step, users=before.users) == before
    assert runner.concurrency == 12


def test_charts_show_what_was_asked_for():
    changes = [
        LoadChange(request="a", at_s=20.0, level=50.0, asked=((20.0, 50.0),)),
        LoadChange(request="b", at_s=30.0, level=None, asked=((30.0, 10.0), (60.0, 10.0))),
    ]

    assert SteeredRunner(FLAT, changes).asked() == [
        (0.0, 10.0),
        (20.0, 10.0),
        (20.0, 50.0),
        (30.0, 50.0),
        (30.0, 10.0),
        (60.0, 10.0),
    ]


def test_a_level_lies_on_the_line_between_two_points():
    points = [(1.0, 0.0), (3.0, 10.0), (3.0, 4.0), (5.0, 4.0)]

    found = [level_at(points, at) for at in (0, 2, 3, 4, 9)]

    assert found == [0, 5, 4, 4, 4]
    assert level_at([], 3) == 0


def test_a_search_is_not_paused_between_two_trials():
    searching = Load(Search({"low": 10, "high": 20})).change(1, 10).change(2, 0)
    changed = Load(FLAT).change(1, 0)

    assert not searching.runner.is_paused
    assert changed.runner.is_paused
