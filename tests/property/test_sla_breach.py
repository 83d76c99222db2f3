"""A breach is final, and how results are cut into blocks changes no verdict."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import event, example, given

from helpers.iterations import Iteration, columns, ok, statistics
from osbench.common.plugin.plugins import Plugins
from osbench.common.values.histogram import Histogram, rank
from osbench.common.values.outcomes import RAN
from osbench.coordinator.results.statistics.percentiles import least_percentile

PLUGINS = Plugins()
TICKS = st.one_of(st.integers(1, 4), st.integers(1, 3000))
ITERATION = st.builds(Iteration, ticks=TICKS, outcome=st.sampled_from(RAN), lag=st.integers(0, 300))
LIMIT_S = st.sampled_from([0.005, 0.05, 0.5, 1.5])
PERCENT = st.sampled_from([10, 50, 90, 99, 100])
CONFIGS = {
    "failure_rate": st.fixed_dictionaries({"max": st.sampled_from([0, 10, 40, 90])}),
    "max_seconds_per_iteration": LIMIT_S,
    "max_avg_duration": LIMIT_S,
    "outliers": st.fixed_dictionaries({"sigmas": st.sampled_from([0.7, 1.3])}),
    "performance_degradation": st.fixed_dictionaries({"max_degradation": st.just(500)}),
    "percentile": st.fixed_dictionaries(
        {"p": PERCENT, "max_s": LIMIT_S, "of": st.sampled_from(["service", "response"])}
    ),
    "start_lag": st.fixed_dictionaries({"p": PERCENT, "max_s": LIMIT_S}),
    "throughput": st.fixed_dictionaries({"min": st.just(1)}),
}


@pytest.mark.parametrize("name", CONFIGS)
@given(data=st.data())
def test_after_a_breach_no_end_is_a_success(name, data):
    config = data.draw(CONFIGS[name])
    before = columns(data.draw(st.lists(ITERATION, min_size=1, max_size=20)))
    rest = st.lists(st.one_of(ITERATION, st.just(Iteration(ticks=1))), max_size=20)
    after = columns(data.draw(rest.filter(bool)), first=len(before) + 1)
    endless = data.draw(st.booleans())
    plan = None if endless else len(before) + len(after)
    criterion = PLUGINS.get("sla", name)(config)

    criterion.add(before)
    breached = criterion.breach(statistics(before), plan)
    criterion.add(after)
    ended = criterion.check(statistics(before, after))

    event(f"breached: {breached is not None}")
    assert breached is None or not (breached.success or ended.success)


@given(
    values=st.lists(st.integers(0, 1000), min_size=1, max_size=30),
    percent=st.sampled_from([1, 25, 50, 90, 99, 99.9, 100]),
    more=st.integers(0, 40),
)
def test_the_least_percentile_is_what_samples_of_no_time_make_of_it(values, percent, more):
    found = least_percentile(Histogram.of(values), percent, more)

    ended = sorted([0] * more + values)
    assert found == ended[rank(len(ended), percent) - 1]


@example(ticks=[*[1] * 8, 3, 4, 4], cuts=[])
@given(ticks=st.lists(TICKS, min_size=1, max_size=60), cuts=st.lists(st.integers(0, 60)))
def test_outliers_are_found_one_by_one_whatever_the_blocks(ticks, cuts):
    kind = PLUGINS.get("sla", "outliers")
    config = {"max": 0, "sigmas": 1.23}
    criterion = kind(config)

    for low, high in zip([0, *sorted(cuts)], [*sorted(cuts), len(ticks)], strict=True):
        if ticks[low:high]:
            criterion.add(columns(ok(*ticks[low:high])))

    verdict = criterion.check(statistics())
    assert verdict.detail.startswith(f"{outliers(ticks, 1.23)} outliers among {len(ticks)} ")


def outliers(ticks, sigmas):
    """The rule as one would write it down."""
    found = 0
    for at, value in enumerate(ticks[2:], 2):
        before = np.array(ticks[:at], float)
        limit = math.fsum(before) / at + sigmas * before.std(ddof=1)
        found += bool(value > limit)
    return found
