"""Steps of runners sum to the plan, however and whenever they are asked."""

from fractions import Fraction
from itertools import pairwise
from math import ceil

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from osbench.common.plugin.runner import Totals, split
from osbench.coordinator.plugins.runners.constant import Constant
from osbench.coordinator.plugins.runners.constant_for_duration import ConstantForDuration
from osbench.coordinator.plugins.runners.rps import Rps
from osbench.coordinator.plugins.runners.runner_schema import HORIZON_S
from osbench.coordinator.plugins.runners.stages import StagedRate

NOTHING = Totals(allotted=0, settled=0)
CAPACITIES = st.lists(st.integers(0, 300), min_size=1, max_size=12)
RATES = st.one_of(
    st.integers(1, 50_000),
    st.floats(0.01, 50_000, allow_nan=False),
    st.builds(
        lambda start, climb, step, duration: {
            "start": start,
            "end": start + climb,
            "step": step,
            "duration": duration,
        },
        st.integers(1, 400) | st.floats(1, 400),
        st.integers(0, 400) | st.floats(0, 400),
        st.integers(1, 50) | st.floats(1, 50),
        st.integers(1, 20) | st.floats(1, 20),
    ),
)
PAUSES = st.lists(st.floats(0.001, 40), max_size=20)


def play(runner, pauses, times):
    """All arrivals of a run that asks after each pause, then often enough to end."""
    arrivals = []
    elapsed_s = -2.0
    for pause_s in [*pauses, *[1e9] * 40]:
        totals = Totals(allotted=len(arrivals), settled=len(arrivals))
        step = runner.step(elapsed_s, totals, [1])
        assert all(due <= elapsed_s + HORIZON_S for due in step.arrivals[-1:])
        assert step.done == (len(arrivals) == times)
        arrivals.extend(step.arrivals)
        elapsed_s += pause_s
    return arrivals


@given(st.integers(0, 4000), CAPACITIES)
def test_shares_sum_to_the_concurrency_where_capacity_suffices(total, capacity):
    shares = split(total, capacity)

    assert sum(shares) == min(total, sum(capacity))
    assert all(share <= room for share, room in zip(shares, capacity, strict=True))


@given(st.integers(1, 10_000), st.data(), CAPACITIES, st.integers(1, 64))
def test_constant_allots_exactly_its_times(times, data, capacity, batch):
    concurrency = data.draw(st.integers(1, times))
    runner = Constant({"times": times, "concurrency": concurrency})
    done = 0

    for instant in range(times // batch + 2):
        step = runner.step(float(instant), Totals(allotted=done, settled=done), capacity)
        if step.done:
            break
        done = min(done + batch, step.budget)

    assert done == times
    assert sum(step.users) == min(concurrency, sum(capacity))


@given(st.floats(0, 1e6), st.floats(-10, 2e6), st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_duration_ends_only_when_nothing_is_open(duration, elapsed_s, allotted, settled):
    runner = ConstantForDuration({"duration": duration, "concurrency": 2})

    step = runner.step(elapsed_s, Totals(allotted=allotted, settled=min(allotted, settled)), [2])

    assert (step.stop_s is None) == (step.budget is not None) == (duration == 0)
    if duration > 0:
        assert step.done == (elapsed_s >= duration and settled >= allotted)


@given(RATES, st.integers(1, 3000), PAUSES)
def test_every_arrival_is_planned_once_whatever_the_pattern_of_steps(rate, times, pauses):
    runner = Rps({"times": times, "rps": rate})

    arrivals = play(runner, pauses, times)
    at_once = play(runner, [], times)

    assert len(arrivals) == times
    assert arrivals == at_once
    assert all(one < next_ for one, next_ in pairwise(arrivals))


@given(RATES, st.integers(0, 300), st.integers(0, 4000))
def test_arrivals_follow_the_integral_of_the_rate(rate, instant, eighths):
    runner = Rps({"times": 10**9, "rps": rate})
    instant_s = Fraction(instant) + Fraction(eighths, 8000)
    planned = runner.ramp

    stage = min(int(instant_s / planned.duration), planned.last)
    begin_s = stage * planned.duration
    integral = sum((planned.rate(k) * planned.duration for k in range(stage)), Fraction(0))
    integral += planned.rate(stage) * (instant_s - begin_s)
    number = ceil(integral)
    due = runner.step(
        float(instant_s) + 1000, Totals(allotted=max(number - 1, 0), settled=0), [1]
    ).arrivals

    # the last arrival before the instant, and the first that is not: rounding apart
    assert number == 0 or due[0] < float(instant_s) + 1e-9
    assert due[min(number, 1)] >= float(instant_s) - 1e-9


STAGES = st.lists(
    st.fixed_dictionaries(
        {
            "duration": st.integers(0, 20) | st.floats(0.001, 20),
            "target": st.integers(0, 400) | st.floats(1e-9, 400),
        }
    ),
    min_size=1,
    max_size=6,
)
STARTS = st.integers(0, 300) | st.floats(1e-9, 300)
KINDS = st.sampled_from(["even", "poisson"])


def staged(start, stages, **more):
    config = {"start": start, "stages": stages, **more}
    assume(not StagedRate.check(config))
    return StagedRate(config)


@given(STARTS, STAGES, KINDS, PAUSES)
def test_stages_plan_every_arrival_once_whatever_the_pattern_of_steps(start, stages, kind, pauses):
    runner = staged(start, stages, arrivals=kind, seed=7)

    arrivals = play(runner, pauses, runner.planned)

    assert len(arrivals) == runner.planned
    assert arrivals == play(runner, [], runner.planned)
    assert arrivals == sorted(arrivals)
    assert all(0 <= due <= runner.lasts_s + 1e-9 for due in arrivals)


@given(STARTS, STAGES, st.floats(0, 120))
def test_stages_follow_the_integral_of_the_rate(start, stages, instant_s):
    runner = staged(start, stages)

    arrivals = np.array(play(runner, [], runner.planned))
    integral, rate, begin_s = 0.0, float(start), 0.0
    for stage in stages:
        length_s = min(max(0.0, instant_s - begin_s), stage["duration"])
        slope = (stage["target"] - rate) / stage["duration"] if stage["duration"] else 0.0
        integral += rate * length_s + slope * length_s**2 / 2
        begin_s, rate = begin_s + stage["duration"], stage["target"]

    # arrival k is due where the integral reaches k; the first at the very beginning
    assert int((arrivals < instant_s - 1e-6).sum()) <= integral + 1
    assert int((arrivals <= instant_s + 1e-6).sum()) >= integral - 1e-3


@given(RATES, st.integers(1, 3000), PAUSES)
def test_poisson_arrivals_at_a_rate_depend_on_the_seed_alone(rate, times, pauses):
    config = {"times": times, "rps": rate, "arrivals": "poisson", "seed": 3}

    arrivals = play(Rps(config), pauses, times)

    assert arrivals == play(Rps(config), [], times)
    assert arrivals != play(Rps({**config, "seed": 4}), [], times)
    assert arrivals == sorted(arrivals)


@given(st.integers(1, 500), st.floats(0.01, 100), st.lists(st.floats(-1, 101), max_size=20))
def test_users_rise_one_after_another_and_are_all_there_at_the_end(users, ramp_up_s, instants):
    config = {"duration": 100, "concurrency": users, "ramp_up": ramp_up_s}
    runner = ConstantForDuration(config)

    requested = [sum(runner.step(at, NOTHING, [1000, 1000]).users) for at in sorted(instants)]

    assert requested == sorted(requested)
    assert all(1 <= each <= users for each in requested)
    assert sum(runner.step(ramp_up_s, NOTHING, [1000, 1000]).users) == users
    assert sum(runner.step(ramp_up_s / 2, NOTHING, [1000]).users) == pytest.approx(users / 2, abs=1)
