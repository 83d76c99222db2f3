"""Steps of runners sum to the plan, however and whenever they are asked."""

from fractions import Fraction
from itertools import pairwise
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from osbench.common.runner import Totals, split
from osbench.coordinator.runners.constant import Constant
from osbench.coordinator.runners.constant_for_duration import ConstantForDuration
from osbench.coordinator.runners.rps import HORIZON_S, Rps

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
    assert sum(step.shares) == min(concurrency, sum(capacity))


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
