"""What each runner asks for, and which configurations it refuses."""

import jsonschema
import pytest

from osbench.common.runner import Totals
from osbench.coordinator.runners.constant import Constant
from osbench.coordinator.runners.constant_for_duration import ConstantForDuration
from osbench.coordinator.runners.rps import HORIZON_S, Rps
from osbench.coordinator.runners.schedule import MOST
from osbench.coordinator.runners.serial import Serial

NOTHING = Totals(allotted=0, settled=0)
RAMP = {"times": 100, "rps": {"start": 5, "end": 20, "step": 5, "duration": 3}}


def accepts(runner, config):
    schema = jsonschema.Draft7Validator(runner.CONFIG_SCHEMA)
    return schema.is_valid(config) and not runner.check(config)


@pytest.mark.parametrize("runner", [Constant, ConstantForDuration, Rps, Serial])
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
        (Rps, {"times": 1, "rps": 0}),
        (Rps, {"times": 1, "rps": 1e-300}),
        (Rps, {"times": 1, "rps": float("inf")}),
        (Rps, {"times": 1, "rps": {"start": 1, "end": 1}}),
        (Rps, {"times": 1, "rps": {"start": 2, "end": 1, "step": 1}}),
        (Rps, {"times": 1, "rps": {"start": 1, "end": float("inf"), "step": 1}}),
        (Rps, {"times": 1, "rps": {"start": 1, "end": 2, "step": 1, "duration": 0.5}}),
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

    assert (begin.shares, begin.budget, begin.stop_s) == ((3, 2), 10, None)
    assert (begin.done, running.done, over.done) == (False, False, True)
    assert runner.concurrency == 5
    assert not runner.OPEN


def test_constant_for_duration_stops_starting_and_waits_for_what_was_allotted():
    runner = ConstantForDuration({"duration": 2, "concurrency": 3})

    begin = runner.step(0.0, NOTHING, [8])
    early = runner.step(1.9, Totals(allotted=40, settled=40), [8])
    waiting = runner.step(2.0, Totals(allotted=40, settled=38), [8])
    over = runner.step(2.1, Totals(allotted=40, settled=40), [8])

    assert (begin.shares, begin.budget, begin.stop_s) == ((3,), None, 2.0)
    assert [early.done, waiting.done, over.done] == [False, False, True]


def test_a_duration_of_nothing_runs_once_per_virtual_user():
    runner = ConstantForDuration({"duration": 0, "concurrency": 3})

    begin = runner.step(0.0, NOTHING, [2, 2])
    over = runner.step(0.1, Totals(allotted=3, settled=3), [2, 2])

    assert (begin.shares, begin.budget, begin.stop_s, begin.done) == ((2, 1), 3, None, False)
    assert over.done


def test_serial_has_one_user_whatever_the_task_says():
    runner = Serial({"times": 4, "concurrency": 9})

    step = runner.step(0.0, NOTHING, [8, 8])

    assert runner.concurrency == 1
    assert (sum(step.shares), step.budget) == (1, 4)
    assert Serial.notes(runner.config) == [
        "concurrency has no effect: serial runs iterations one after another"
    ]


@pytest.mark.parametrize(
    ("runner", "timeout_s"),
    [
        (Constant({}), 0.0),
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
