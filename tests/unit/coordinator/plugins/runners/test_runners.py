"""What each runner asks for, and which configurations it refuses."""

import jsonschema
import numpy as np
import pytest

from osbench.common.plugin.runner import Totals
from osbench.coordinator.plugins.runners.constant import Constant
from osbench.coordinator.plugins.runners.constant_for_duration import ConstantForDuration
from osbench.coordinator.plugins.runners.rps import Rps
from osbench.coordinator.plugins.runners.runner_schema import HORIZON_S
from osbench.coordinator.plugins.runners.schedule import MOST
from osbench.coordinator.plugins.runners.serial import Serial
from osbench.coordinator.plugins.runners.stages import StagedRate

NOTHING = Totals(allotted=0, settled=0)
RAMP = {"times": 100, "rps": {"start": 5, "end": 20, "step": 5, "duration": 3}}


def accepts(runner, config):
    schema = jsonschema.Draft7Validator(runner.CONFIG_SCHEMA)
    return schema.is_valid(config) and not runner.check(config)


@pytest.mark.parametrize("runner", [Constant, ConstantForDuration, Rps, Serial, StagedRate])
def test_schemas_are_schemas(runner):
    jsonschema.Draft7Validator.check_schema(runner.CONFIG_SCHEMA)


@pytest.mark.parametrize(
    ("runner", "config"),
    [
        (Constant, {}),
        (Constant, {"times": 3, "concurrency": 3, "timeout": 0.5, "max_cpu_count": 1}),
        (ConstantForDuration, {"duration": 0}),
        (ConstantForDuration, {"duration": 2.5, "concurrency": 4, "timeout": 1}),
        (Rps, {"times": 1, "rps": 0.1, "max_concurrency": 1, "max_cpu_count": 1, "timeout": 1}),
        (Rps, {"times": 1, "rps": {"start": 1, "end": 1, "step": 1}}),
        (Rps, {"duration": 0.1, "rps": 0.1}),
        (Constant, {"times": 3, "concurrency": 3, "ramp_up": 2.5}),
        (ConstantForDuration, {"duration": 2, "concurrency": 4, "ramp_up": 2}),
        (Rps, {"times": 1, "rps": 1, "arrivals": "poisson", "seed": 1}),
        (StagedRate, {"stages": [{"duration": 1, "target": 5}]}),
        (StagedRate, {"start": 5, "stages": [{"duration": 1, "target": 0}]}),
        (
            StagedRate,
            {
                "stages": [{"duration": 0, "target": 5}, {"duration": 1.5, "target": 5}],
                "max_concurrency": 3,
                "timeout": 1,
                "arrivals": "even",
            },
        ),
        (Serial, {}),
        (Serial, {"times": 2, "timeout": 3, "whatever": [1]}),
    ],
)
def test_configurations_that_are_accepted(runner, config):
    assert accepts(runner, config)


@pytest.mark.parametrize(
    ("runner", "config"),
    [
        (Constant, {"times": 0}),
        (Constant, {"times": 1.5}),
        (Constant, {"times": True}),
        (Constant, {"times": 2, "concurrency": 3}),
        (Constant, {"concurrency": 2}),
        (Constant, {"timeout": -1}),
        (Constant, {"type": "constant"}),
        (ConstantForDuration, {}),
        (ConstantForDuration, {"duration": -1}),
        (ConstantForDuration, {"duration": 1, "timeout": 0}),
        (ConstantForDuration, {"duration": 1, "max_cpu_count": 1}),
        (Rps, {"times": 1}),
        (Rps, {"rps": 1}),
        (Rps, {"times": 1, "duration": 1, "rps": 1}),
        (Rps, {"duration": 0, "rps": 1}),
        (Rps, {"duration": 1e9, "rps": 1e9}),
        (Rps, {"times": 1, "rps": 0}),
        (Rps, {"times": 1, "rps": 1e-300}),
        (Rps, {"times": 1, "rps": float("inf")}),
        (Rps, {"times": 1, "rps": {"start": 1, "end": 1}}),
        (Rps, {"times": 1, "rps": {"start": 2, "end": 1, "step": 1}}),
        (Rps, {"times": 1, "rps": {"start": 1, "end": float("inf"), "step": 1}}),
        (Rps, {"times": 1, "rps": {"start": 1, "end": 2, "step": 1, "duration": 0.5}}),
        (Constant, {"ramp_up": -1}),
        (ConstantForDuration, {"duration": 1, "ramp_up": 1.5}),
        (Rps, {"times": 1, "rps": 1, "arrivals": "random"}),
        (Rps, {"times": 1, "rps": 1, "seed": -1}),
        (StagedRate, {}),
        (StagedRate, {"stages": []}),
        (StagedRate, {"stages": [{"duration": 1}]}),
        (StagedRate, {"stages": [{"duration": 0, "target": 9}]}),
        (StagedRate, {"stages": [{"duration": 9, "target": 0}]}),
        (StagedRate, {"stages": [{"duration": 1, "target": -1}]}),
        (StagedRate, {"stages": [{"duration": 1, "target": 1e-12}, {"duration": 1, "target": 1}]}),
        (StagedRate, {"stages": [{"duration": 1e-9, "target": 1}, {"duration": 1, "target": 1}]}),
        (StagedRate, {"stages": [{"duration": 1e9, "target": 1e9}]}),
        (StagedRate, {"stages": [{"duration": 1, "target": 1}], "times": 3}),
        (Serial, {"times": 0}),
        (Serial, {"timeout": "1"}),
    ],
)
def test_configurations_that_are_refused(runner, config):
    assert not accepts(runner, config)


def test_constant_splits_its_users_and_is_done_when_all_are_settled():
    runner = Constant({"times": 10, "concurrency": 5})

    begin = runner.step(0.0, NOTHING, [4, 4])
    running = runner.step(1.0, Totals(allotted=10, settled=9), [4, 4])
    over = runner.step(2.0, Totals(allotted=10, settled=10), [4, 4])

    assert (begin.users, begin.budget, begin.stop_s) == ((3, 2), 10, None)
    assert (begin.done, running.done, over.done) == (False, False, True)
    assert runner.concurrency == 5
    assert not runner.OPEN


def test_constant_for_duration_stops_starting_and_waits_for_what_was_allotted():
    runner = ConstantForDuration({"duration": 2, "concurrency": 3})

    begin = runner.step(0.0, NOTHING, [8])
    early = runner.step(1.9, Totals(allotted=40, settled=40), [8])
    waiting = runner.step(2.0, Totals(allotted=40, settled=38), [8])
    over = runner.step(2.1, Totals(allotted=40, settled=40), [8])

    assert (begin.users, begin.budget, begin.stop_s) == ((3,), None, 2.0)
    assert [early.done, waiting.done, over.done] == [False, False, True]


def test_a_duration_of_nothing_runs_once_per_virtual_user():
    runner = ConstantForDuration({"duration": 0, "concurrency": 3})

    begin = runner.step(0.0, NOTHING, [2, 2])
    over = runner.step(0.1, Totals(allotted=3, settled=3), [2, 2])

    assert (begin.users, begin.budget, begin.stop_s, begin.done) == ((2, 1), 3, None, False)
    assert over.done


def test_serial_has_one_user_whatever_the_task_says():
    runner = Serial({"times": 4, "concurrency": 9})

    step = runner.step(0.0, NOTHING, [8, 8])

    assert runner.concurrency == 1
    assert (sum(step.users), step.budget) == (1, 4)
    assert Serial.notes(runner.config) == [
        "concurrency has no effect: serial runs iterations one after another"
    ]


@pytest.mark.parametrize(
    ("runner", "timeout_s"),
    [
        (Constant({}), 600.0),
        (Constant({"timeout": 0}), 0.0),
        (Constant({"timeout": 1.5}), 1.5),
        (ConstantForDuration({"duration": 1}), 600.0),
        (ConstantForDuration({"duration": 1, "timeout": 7}), 7.0),
        (Rps({"times": 1, "rps": 1, "timeout": 2}), 2.0),
        (Serial({"timeout": 3}), 3.0),
    ],
)
def test_every_runner_bounds_its_iterations(runner, timeout_s):
    assert runner.timeout_s == timeout_s


def test_max_cpu_count_is_named_as_without_effect():
    assert "max_cpu_count" in Constant.notes({"max_cpu_count": 2})[0]
    assert "max_cpu_count" in Rps.notes({"times": 1, "rps": 1, "max_cpu_count": 2})[0]
    assert Constant.notes({"times": 2}) == []


def test_a_steady_rate_is_even_and_exact():
    runner = Rps({"times": 1000, "rps": 0.1})

    arrivals = runner.step(100.0, NOTHING, [1]).arrivals

    assert arrivals == [10.0 * k for k in range(12)]
    assert runner.OPEN


def test_arrivals_are_planned_before_the_load_starts():
    runner = Rps({"times": 1000, "rps": 2})

    arrivals = runner.step(-5.0, NOTHING, [1]).arrivals

    assert arrivals[0] == 0.0
    assert arrivals[-1] == HORIZON_S - 5
    assert runner.step(-HORIZON_S - 1, NOTHING, [1]).arrivals == []


def test_the_ramp_climbs_as_documented():
    arrivals = Rps(RAMP).step(0.0, NOTHING, [1]).arrivals

    starts = [sum(second <= due < second + 1 for due in arrivals) for second in range(11)]

    assert starts == [5, 5, 5, 10, 10, 10, 15, 15, 15, 10, 0]


def test_the_rate_never_exceeds_the_end_of_the_ramp():
    runner = Rps({"times": 100, "rps": {"start": 1, "end": 4, "step": 2}})

    arrivals = runner.step(0.0, NOTHING, [1]).arrivals

    starts = [sum(second <= due < second + 1 for due in arrivals) for second in range(6)]
    assert starts == [1, 3, 4, 4, 4, 4]


def test_a_stage_goes_on_with_the_fraction_of_an_arrival_that_was_left():
    runner = Rps({"times": 5, "rps": {"start": 1, "end": 2, "step": 1, "duration": 1.5}})

    arrivals = runner.step(0.0, NOTHING, [1]).arrivals

    assert arrivals == [0.0, 1.0, 1.75, 2.25, 2.75]


@pytest.mark.parametrize(
    ("rate", "duration", "planned"),
    [
        (20, 30, 600),
        (0.1, 1, 1),
        (0.1, 30, 3),
        # at 0 s, 4 s and 8 s
        (0.25, 10, 3),
        (3, 0.5, 2),
        # 5 a second for 3 s, 10 for 3 s, 15 for 3 s, then 20
        ({"start": 5, "end": 20, "step": 5, "duration": 3}, 2, 10),
        ({"start": 5, "end": 20, "step": 5, "duration": 3}, 7, 60),
        ({"start": 5, "end": 20, "step": 5, "duration": 3}, 100, 1910),
    ],
)
def test_rps_for_a_duration_plans_the_arrivals_of_that_time(rate, duration, planned):
    runner = Rps({"rps": rate, "duration": duration})

    step = runner.step(1000.0, NOTHING, [1])

    assert (runner.planned, len(step.arrivals)) == (planned, planned)
    assert step.arrivals[-1] < duration
    assert runner.planned_s == runner.lasts_s == duration


@pytest.mark.parametrize("seed", range(50))
def test_random_arrivals_for_a_duration_end_with_it(seed):
    config = {"rps": 1, "arrivals": "poisson", "seed": seed}
    runner = Rps({**config, "duration": 10})

    found = runner.step(1000.0, NOTHING, [1]).arrivals

    others = Rps({**config, "times": 100}).step(1000.0, NOTHING, [1]).arrivals
    assert found == [due for due in others if due < 10]
    assert runner.planned == len(found)


def test_random_arrivals_that_a_duration_has_not_are_refused():
    config = {"rps": 0.001, "duration": 1, "arrivals": "poisson"}

    assert "no arrival of this seed is within duration" in Rps.check(config)[0]


def test_rps_is_done_when_all_arrivals_are_settled():
    runner = Rps({"times": 3, "rps": 1, "max_concurrency": 2})

    waiting = runner.step(9.0, Totals(allotted=3, settled=2), [1])
    over = runner.step(9.0, Totals(allotted=3, settled=3), [1])

    assert (waiting.arrivals, waiting.done) == ([], False)
    assert over.done
    assert runner.concurrency == 2
    assert Rps({"times": 3, "rps": 1}).concurrency == 3


def test_a_long_pause_is_caught_up_with_in_bounded_steps():
    runner = Rps({"times": 10 * MOST, "rps": 50_000})

    first = runner.step(1000.0, NOTHING, [1]).arrivals
    second = runner.step(1000.0, Totals(allotted=MOST, settled=0), [1]).arrivals

    assert len(first) == len(second) == MOST
    assert first[-1] < second[0]


def seconds(arrivals):
    return [sum(second <= due < second + 1 for due in arrivals) for second in range(12)]


def test_stages_climb_stay_fall_and_pause():
    config = {
        "start": 10,
        "stages": [
            {"duration": 2, "target": 10},
            {"duration": 2, "target": 30},
            {"duration": 2, "target": 0},
            {"duration": 2, "target": 0},
            {"duration": 0, "target": 5},
            {"duration": 2, "target": 5},
        ],
    }
    runner = StagedRate(config)

    arrivals = runner.step(0.0, NOTHING, [1]).arrivals

    assert seconds(arrivals) == [10, 10, 15, 25, 23, 7, 0, 0, 5, 5, 0, 0]
    assert runner.planned == len(arrivals) == 100
    assert runner.lasts_s == 10
    assert arrivals[:3] == [0.0, 0.1, 0.2]


def test_a_rate_that_rises_from_nothing_is_the_square_root_of_the_number():
    runner = StagedRate({"stages": [{"duration": 10, "target": 20}]})

    arrivals = runner.step(0.0, NOTHING, [1]).arrivals

    assert arrivals == pytest.approx([k**0.5 for k in range(100)])


def test_stages_are_done_when_all_arrivals_are_settled():
    runner = StagedRate({"start": 3, "stages": [{"duration": 1, "target": 3}]})

    waiting = runner.step(9.0, Totals(allotted=3, settled=2), [1])
    over = runner.step(9.0, Totals(allotted=3, settled=3), [1])

    assert (waiting.arrivals, waiting.done) == ([], False)
    assert over.done
    assert runner.concurrency == 0


def anderson_darling(gaps):
    """The statistic of unit-rate exponential gaps, nothing estimated.

    M. A. Stephens, EDF Statistics for Goodness of Fit, JASA 69 (1974), p. 730; above 3.857 in
    one of 100 samples.
    """
    uniform = np.sort(-np.expm1(-gaps))
    count = len(uniform)
    weights = 2 * np.arange(1, count + 1) - 1
    return -count - (weights * (np.log(uniform) + np.log1p(-uniform[::-1]))).mean()


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_poisson_gaps_pass_an_anderson_darling_test(seed):
    runner = Rps({"times": 40_000, "rps": 4_000, "arrivals": "poisson", "seed": seed})
    even = Rps({"times": 40_000, "rps": 4_000})

    gaps = np.diff(runner.step(0.0, NOTHING, [1]).arrivals, prepend=0.0) * 4_000
    others = np.diff(even.step(0.0, NOTHING, [1]).arrivals, append=10.0) * 4_000

    assert anderson_darling(gaps) < 3.857
    assert anderson_darling(others) > 1000
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 4 / 200


def test_poisson_arrivals_of_stages_have_unit_gaps_in_the_integral_of_the_rate():
    runner = StagedRate(
        {
            "stages": [{"duration": 10, "target": 4000}, {"duration": 5, "target": 0}],
            "arrivals": "poisson",
        }
    )

    arrivals = np.array(runner.step(0.0, NOTHING, [1]).arrivals)
    rising = 200 * arrivals**2
    falling = 30_000 - 400 * (15 - arrivals) ** 2
    levels = np.where(arrivals < 10, rising, falling)

    assert len(arrivals) == runner.planned == pytest.approx(30_000, abs=4 * 30_000**0.5)
    assert anderson_darling(np.diff(levels, prepend=0.0)) < 3.857


def test_a_seed_without_chance_is_named_as_without_effect():
    assert "seed" in Rps.notes({"times": 1, "rps": 1, "seed": 2})[0]
    assert "seed" in StagedRate.notes({"stages": [], "seed": 2, "arrivals": "even"})[0]
    assert StagedRate.notes({"stages": [], "seed": 2, "arrivals": "poisson"}) == []


def test_users_are_added_evenly():
    runner = Constant({"times": 100, "concurrency": 4, "ramp_up": 8})

    users = [sum(runner.step(at, NOTHING, [4, 4]).users) for at in (-1, 0, 1.9, 2, 5, 7.9, 8, 9)]

    assert users == [1, 1, 1, 2, 3, 4, 4, 4]
    assert [runner.users(at) for at in (0, 8)] == [1, 4]
