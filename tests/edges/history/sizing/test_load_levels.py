from osbench.coordinator.plugins.runners.constant import Constant
from osbench.coordinator.plugins.runners.constant_for_duration import ConstantForDuration
from osbench.coordinator.plugins.runners.rps import Rps
from osbench.coordinator.plugins.runners.serial import Serial
from osbench.coordinator.plugins.runners.stages import StagedRate
from osbench.coordinator.plugins.runners.user_stages import StagedUsers
from osbench.edges.capacity.search import Search
from osbench.edges.history.sizing.load_levels import load_levels
from osbench.plugin import runner


def spans(levels):
    return [(one.from_s, one.to_s, one.begin, one.end) for one in levels]


class Bursts(runner.Runner):
    """Ten arrivals at once every other second, three times; it does not say so beforehand."""

    OPEN = True

    def step(self, elapsed_s, totals, capacity):
        due = [second for second in (0.0, 2.0, 4.0) if second <= elapsed_s + 2 for _ in range(10)]
        return runner.Step(arrivals=due[totals.allotted :], done=totals.allotted >= 30)


def test_a_rate_lasts_until_the_last_arrival():
    levels = load_levels(Rps({"rps": 50, "times": 200}))

    assert spans(levels) == [(0, 4, 50, 50)]


def test_a_ramp_ends_where_its_arrivals_are_used_up():
    levels = load_levels(Rps({"rps": {"start": 10, "end": 30, "step": 10}, "times": 25}))

    assert spans(levels) == [(0, 1, 10, 10), (1, 1.75, 20, 20)]


def test_stages_have_a_level_each_and_jumps_none():
    stages = [
        {"target": 100, "duration": 10},
        {"target": 0, "duration": 0},
        {"target": 0, "duration": 5},
        {"target": 20, "duration": 5},
    ]

    levels = load_levels(StagedRate({"stages": stages}))

    assert spans(levels) == [(0, 10, 0, 100), (10, 15, 0, 0), (15, 20, 0, 20)]
    assert [one.peak for one in levels] == [100, 0, 20]


def test_a_search_has_its_highest_rate():
    levels = load_levels(Search({"low": 10, "high": 5000}))

    assert spans(levels) == [(0, None, 5000, 5000)]


def test_closed_loads_have_users_for_as_long_as_is_known():
    stages = {"stages": [{"users": 8, "duration": 4}, {"users": 8, "duration": 6}]}

    assert spans(load_levels(Serial({"times": 9}))) == [(0, None, 1, 1)]
    assert spans(load_levels(Constant({"times": 9, "concurrency": 3}))) == [(0, None, 3, 3)]
    assert spans(load_levels(StagedUsers(stages))) == [(0, 4, 0, 8), (4, 10, 8, 8)]
    closed = load_levels(ConstantForDuration({"duration": 30, "concurrency": 5}))
    assert [one.peak for one in closed] == [5]


def test_a_runner_that_does_not_say_its_load_is_asked_for_its_arrivals():
    levels = load_levels(Bursts({}))

    assert spans(levels) == [
        (0, 1, 10, 10),
        (1, 2, 0, 0),
        (2, 3, 10, 10),
        (3, 4, 0, 0),
        (4, 5, 10, 10),
    ]
