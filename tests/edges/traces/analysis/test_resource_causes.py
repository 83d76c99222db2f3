"""Counters beside slow iterations: planted ones are named, and chance is not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from helpers.planted_counters import counters_of, queue, share, wandering
from osbench.edges.traces.analysis.resource_causes import (
    ResourceCause,
    resource_causes,
    resource_sentence,
)
from osbench.edges.traces.counters.counter_series import CounterSeries

RUNS = 20
POINTS = 120
HOSTS = ("db1", "db2", "api1", "api2", "mq1")

Times = tuple[np.ndarray, np.ndarray]


def background(chance: np.random.Generator) -> list[CounterSeries]:
    """Counters of five hosts that move without a cause, some of them near their limit."""
    found = []
    for number, host in enumerate(HOSTS):
        cpu = 0.3 + 0.15 * number + 0.1 * wandering(chance, POINTS)
        memory = 0.6 + 0.05 * number + 0.01 * wandering(chance, POINTS, 0.99)
        disk = np.abs(0.3 * wandering(chance, POINTS, 0.7))
        found += [
            share("CPU", host, np.clip(cpu, 0, 1)),
            share("memory", host, memory),
            share("disk", host, np.clip(disk, 0, 1)),
            queue("messages ready", host, np.exp(wandering(chance, POINTS))),
        ]
    return found


def iterations(chance: np.random.Generator, slow: np.ndarray, count: int = 3000) -> list[Times]:
    """Slow iterations, mostly at the instants `slow`, and others at any."""
    begins = chance.uniform(0, POINTS - 1, count)
    at_slow = np.isin(np.rint(begins).astype(int), slow)
    is_slow = chance.random(count) < np.where(at_slow, 0.5, 0.002)
    lasts = np.where(is_slow, 0.4, 0.02)
    return [(begins[one], (begins + lasts)[one]) for one in (is_slow, ~is_slow)]


def raised(series: Sequence[CounterSeries], label: str, at: np.ndarray, to: float) -> None:
    for one in series:
        if one.label == label:
            one.values[at] = to


def bursts(chance: np.random.Generator, number: int = 3, length: int = 3) -> np.ndarray:
    begins = np.zeros(number, int) if number > 1 else chance.integers(5, POINTS - 8 - length, 1)
    # apart from each other
    while len(begins) > 1 and np.diff(np.sort(begins)).min() < 2 * length:
        begins = chance.integers(5, POINTS - 8 - length, number)
    return np.concatenate([np.arange(one, one + length) for one in begins])


@pytest.mark.parametrize(
    ("label", "to"), [("CPU of db1", 0.98), ("disk of api2", 1.0), ("messages ready of mq1", 90)]
)
def test_a_planted_resource_is_named_and_no_other(label: str, to: float) -> None:
    right, wrong = 0, []
    for seed in range(RUNS):
        chance = np.random.default_rng(seed)
        series, slow = background(chance), bursts(chance)
        raised(series, label, slow, to)
        found = resource_causes(counters_of(*series), *iterations(chance, slow))
        names = {f"{one.name} of {one.host}" for one in found}
        right += label in names
        wrong += sorted(names - {label})

    assert right == RUNS
    assert len(wrong) <= 1


def test_of_runs_without_a_cause_hardly_any_names_one() -> None:
    named = 0
    for seed in range(RUNS):
        chance = np.random.default_rng(1000 + seed)
        found = resource_causes(
            counters_of(*background(chance)), *iterations(chance, bursts(chance))
        )
        named += bool(found)

    assert named <= 1


def test_bursts_of_a_resource_at_other_times_are_no_cause() -> None:
    named = 0
    for seed in range(RUNS):
        chance = np.random.default_rng(2000 + seed)
        series = background(chance)
        for host in HOSTS:
            raised(series, f"CPU of {host}", bursts(chance), 1.0)
        found = resource_causes(counters_of(*series), *iterations(chance, bursts(chance)))
        named += bool(found)

    assert named <= 1


def test_a_resource_that_is_full_all_the_time_is_no_cause() -> None:
    chance = np.random.default_rng(1)
    slow = bursts(chance)
    series = [share("CPU", "db1", 0.97 + 0.01 * wandering(chance, POINTS))]
    series[0].values[slow] = 1.0

    assert resource_causes(counters_of(*series), *iterations(chance, slow)) == ()


def test_few_values_give_no_verdict() -> None:
    values = np.full(30, 0.4)
    values[10:12] = 1.0
    slow = (np.array([10.0, 10.5, 11.0]), np.array([10.1, 10.6, 11.1]))
    others = (np.arange(0, 29, 0.5), np.arange(0, 29, 0.5) + 0.1)

    assert resource_causes(counters_of(share("CPU", "db1", values)), slow, others) == ()


@pytest.mark.parametrize("times", [np.array([]), np.array([np.nan]), np.array([5000.0])])
def test_iterations_at_unknown_instants_give_no_verdict(times: np.ndarray) -> None:
    values = np.linspace(0, 1, POINTS)
    others = (np.array([1.0]), np.array([2.0]))
    counters = counters_of(share("CPU", "db1", values))

    assert resource_causes(counters, (times, times), others) == ()


def test_counters_with_many_gaps_or_of_another_kind_are_left_out() -> None:
    chance = np.random.default_rng(4)
    slow = bursts(chance)
    gaps, same = np.full(POINTS, 0.3), np.full(POINTS, 0.5)
    gaps[slow] = 1.0
    gaps[::3] = np.nan

    found = resource_causes(
        counters_of(share("CPU", "db1", gaps), share("disk", "db1", same)),
        *iterations(chance, slow),
    )

    assert found == ()
    assert resource_causes(counters_of(), *iterations(chance, slow)) == ()


def test_long_iterations_count_for_all_the_time_that_they_ran() -> None:
    chance = np.random.default_rng(5)
    values = 0.3 + 0.01 * wandering(chance, POINTS)
    values[40:60] = 0.99
    values[50:53] = 0.3
    begins = np.arange(0, POINTS - 1, 0.25)
    slow = (np.array([40.0] * 40), np.array([59.0] * 40))

    (one,) = resource_causes(counters_of(share("CPU", "db1", values)), slow, (begins, begins + 0.1))

    assert one.slow == pytest.approx((17 * 0.99 + 3 * 0.3) / 20, abs=0.01)
    assert one.others == pytest.approx((17 * 0.99 + 103 * 0.3) / 120, abs=0.03)


def cause(host: str, name: str = "CPU", slow: float = 0.98) -> ResourceCause:
    return ResourceCause(
        name=name, host=host, kind="share", unit="share", slow=slow, others=0.41, p=0.01
    )


def test_the_sentence_has_both_values_and_the_host_of_the_span_first() -> None:
    causes = (cause("api1"), cause("db1.example.org", "disk", 1.0), cause("mq1"))

    assert resource_sentence(causes, "db1") == (
        " While they ran, disk of db1.example.org, the host of that span, was at 100 %"
        " (others: 41 %); CPU of api1 was at 98 % (others: 41 %)."
    )
    assert resource_sentence(causes[:1], "db1") == (
        " While they ran, CPU of api1 was at 98 % (others: 41 %)."
    )
    assert resource_sentence((), "db1") == ""


@pytest.mark.parametrize("pair", [("10.0.0.5", "10.0.0.6"), ("db1.a.org", "db1.b.org"), ("", "")])
def test_hosts_that_differ_are_not_taken_for_one(pair: tuple[str, str]) -> None:
    assert "the host of that span" not in resource_sentence((cause(pair[0]),), pair[1])
