"""The search for the capacity: which rates it tries, and how often it brackets a known one."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from helpers.examples import examples
from osbench.common.plugin.runner import Capacity, Trial
from osbench.edges.capacity.search import Search
from osbench.edges.capacity.threshold import ThresholdFit

#: Judges a rate.
Judge = Callable[[float], bool]


def searched(judge: Judge, **config: float) -> tuple[Capacity, list[float]]:
    """Search to the end; what was found, and the rates that were tried."""
    runner = Search({"low": 10, "high": 1000, **config})
    trials: list[Trial] = []
    while (rate := runner.next_rate(trials)) is not None:
        trials.append(Trial(rate=rate, held=judge(rate)))
    return runner.found(trials), [trial.rate for trial in trials]


def test_the_rate_doubles_until_it_breaks_and_is_never_above_that():
    found, rates = searched(lambda rate: rate < 123)

    assert rates[:5] == [10, 20, 40, 80, 160]
    assert max(rates) == 160
    assert found.kind == "found"
    assert found.precise
    assert found.low < 123 < found.high <= 1.1 * found.low
    assert found.held < 123 <= found.broke


def test_a_finer_search_takes_more_trials():
    coarse, few = searched(lambda rate: rate < 123, precision=0.5)
    fine, many = searched(lambda rate: rate < 123, precision=0.05)

    assert len(few) < len(many)
    assert fine.high / fine.low <= 1.05 < coarse.high / coarse.low <= 1.5


def test_each_rate_is_tried_as_often_as_asked_for():
    _, rates = searched(lambda rate: rate < 123, repeats=3)

    assert len(rates) % 3 == 0
    assert all(len(set(rates[at : at + 3])) == 1 for at in range(0, len(rates), 3))


def test_where_even_the_lowest_rate_breaks_it_is_tried_again_and_no_other():
    found, rates = searched(lambda rate: False)

    assert rates == [10, 10]
    assert (found.kind, found.rate, found.held, found.broke) == ("below", None, None, 10)


def test_one_chance_failure_of_the_lowest_rate_is_no_answer():
    tried = []

    def judge(rate: float) -> bool:
        tried.append(rate)
        return len(tried) > 1 and rate < 123

    found, _ = searched(judge)

    assert found.kind == "found"
    assert found.low < 123 < found.high


def test_where_the_highest_rate_holds_it_is_tried_again():
    found, rates = searched(lambda rate: True)

    assert rates == [10, 20, 40, 80, 160, 320, 640, 1000, 1000]
    assert (found.kind, found.rate, found.held, found.broke) == ("above", None, 1000, None)


def test_a_search_ends_after_its_most_trials_and_says_how_precise_it_is():
    found, rates = searched(lambda rate: rate < 123, max_trials=7, precision=0.01)

    assert len(rates) == 7
    assert (found.kind, found.precise) == ("found", False)
    assert found.low < 123 < found.high


def test_without_a_rate_that_broke_or_one_that_held_there_is_only_a_bound():
    above, _ = searched(lambda rate: True)
    cut_off, _ = searched(lambda rate: True, max_trials=4)
    below, _ = searched(lambda rate: False)
    runner = Search({"low": 10, "high": 1000})
    one_held = runner.found([Trial(rate=10, held=True)])
    one_broke = runner.found([Trial(rate=10, held=False)])

    assert (above.kind, above.held, above.advice) == ("above", 1000, "raise `high`")
    assert (cut_off.kind, cut_off.held, cut_off.advice) == ("above", 80, "raise `max_trials`")
    assert (below.kind, below.broke, below.advice) == ("below", 10, "lower `low`")
    assert (one_held.kind, one_held.held) == ("unfinished", 10)
    assert (one_broke.kind, one_broke.broke) == ("unfinished", 10)
    for found in (above, cut_off, below, one_held, one_broke):
        assert (found.rate, found.low, found.high) == (None, None, None)


def test_a_search_that_was_stopped_says_what_is_known():
    runner = Search({"low": 10, "high": 1000})

    assert runner.found([]) == Capacity(kind="unfinished")
    found = runner.found([Trial(rate=10, held=True), Trial(rate=20, held=False)])
    assert found.kind == "unfinished"
    assert (found.held, found.broke) == (10, 20)


def test_an_empty_range_is_refused():
    assert Search.check({"low": 10, "high": 10}) == ["low must be less than high, got 10 and 10"]
    assert Search.check({"low": 10, "high": 11}) == []
    with pytest.raises(ValueError, match="the lowest rate must be above 0"):
        ThresholdFit(2, 1)


def test_a_fifth_of_a_trial_settles_where_the_task_does_not_say():
    assert Search({"low": 1, "high": 2, "hold": 20}).settle_s == 4
    assert Search({"low": 1, "high": 2, "hold": 20, "settle": 0}).settle_s == 0


# queues whose capacity is known: Poisson arrivals, exponential service, c servers, one line


def response_times(
    generator: np.random.Generator, rate: float, service: float, servers: int, length_s: float
) -> tuple[Sequence[float], Sequence[float]]:
    """Arrival instants and response times of a queue that is empty at first."""
    count = generator.poisson(rate * length_s)
    arrivals = np.sort(generator.uniform(0, length_s, count))
    free = [0.0] * servers
    times = []
    for at, lasts in zip(arrivals, generator.exponential(1 / service, count), strict=True):
        done = max(heapq.heappop(free), at) + lasts
        heapq.heappush(free, done)
        times.append(done - at)
    return arrivals, np.array(times)


def tail(rate: float, service: float, servers: int, limit_s: float) -> float:
    """The probability that a response takes longer (Erlang C; Kleinrock 1975, 3.5 and 5.7)."""
    load = rate / service
    below = sum(load**k / math.factorial(k) for k in range(servers))
    full = load**servers / math.factorial(servers) * servers / (servers - load)
    waits, spare = full / (below + full), servers * service - rate
    alone = math.exp(-service * limit_s)
    return alone + waits * service / (spare - service) * (alone - math.exp(-spare * limit_s))


def knee(service: float, servers: int, limit_s: float) -> float:
    """The rate at which 5 % of the responses take longer."""
    low, high = 1e-6, servers * service * (1 - 1e-9)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if tail(middle, service, servers, limit_s) < 0.05 else (low, middle)
        )
    return low


@pytest.mark.parametrize(("service", "servers", "limit_s"), [(100.0, 1, 0.1), (25.0, 4, 0.2)])
def test_the_capacity_of_a_queue_is_bracketed_in_19_of_20_searches(service, servers, limit_s):
    capacity = knee(service, servers, limit_s)
    if servers == 1:
        # the response time of M/M/1 is exponential
        assert capacity == pytest.approx(service - math.log(20) / limit_s)
    hold_s, settle_s = 60.0, 12.0
    searches, bracketed, wide = examples(20), 0, 0
    for seed in range(searches):
        generator = np.random.default_rng(seed)

        def judge(rate: float, generator: np.random.Generator = generator) -> bool:
            arrivals, times = response_times(generator, rate, service, servers, hold_s + settle_s)
            return float(np.quantile(times[arrivals >= settle_s], 0.95)) <= limit_s

        found, _ = searched(judge, low=capacity / 7.3, high=3 * capacity)
        bracketed += found.low <= capacity <= found.high
        wide += not found.precise

    assert bracketed >= searches - 1
    # the interval is not right by being wide
    assert wide <= 2
