"""Searches of a service whose capacity is known, by a load generator that is stopped meanwhile."""

from __future__ import annotations

import random
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from helpers.result_rows import MS, row_of
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.columns import decode_rows, encode_rows
from osbench.common.task import Named
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.load_change import LoadChange
from osbench.coordinator.results.accounting.search.trials import DISTURBED, SearchOutcome, Trials
from osbench.edges.capacity.search import Search
from osbench.edges.capacity.search_control import MOST_DISTURBED

CONFIG = {"low": 20, "high": 300, "precision": 0.15, "hold": 5, "settle": 1, "max_trials": 12}
SLAS = (
    Named(name="percentile", config={"p": 90, "max_s": 0.06, "of": "response"}),
    Named(name="failure_rate", config={"max": 0}),
)
#: From one wake-up of a watchdog to the next, and from one block of results to the next, ns.
BEAT, BLOCK = 5 * MS, 500 * MS
S = 1000 * MS


@dataclass(frozen=True)
class World:
    """A service that answers one request after another, and stops of the load generator."""

    capacity: float
    #: When stops begin, and how long they are, nanoseconds; the first one, and how far apart.
    first: int
    apart: int
    lasts: int

    def resumed(self, at: int) -> int:
        """The instant itself, or the end of the stop that it lies in."""
        into = (at - self.first) % self.apart if self.lasts else self.lasts
        return at + self.lasts - into if into < self.lasts else at

    def rows(self, rate: float, from_ns: int, to_ns: int) -> list[Any]:
        made, free = [], 0
        count = int((to_ns - from_ns) / S * rate)
        for number in range(count):
            due = from_ns + int(number * S / rate)
            started = self.resumed(due + 200_000)
            free = max(free, started) + int(S / self.capacity)
            ended = self.resumed(free + 5 * MS)
            made.append(row_of(number + 1, Outcome.OK, due, started, ended, 0, 0, (), None))
        return made


def search(world: World) -> Trials:
    """The whole search, as the coordinator makes it."""
    plugins = Plugins()
    trials = Trials(Search(CONFIG), lambda: SlaEvaluator(SLAS, plugins), 0.1)
    at = S
    while True:
        rate = trials.runner.next_rate(trials.made())
        if rate is None or trials.disturbed >= MOST_DISTURBED:
            trials.change(LoadChange(request="s", at_s=at / 1e9, level=0.0, last=True))
            return trials
        trials.change(LoadChange(request="s", at_s=at / 1e9, level=rate))
        end = at + 6 * S
        rows = world.rows(rate, at, end)
        over = max(row[4] for row in rows) if rows else end
        sent = at
        for begin in range(at, max(over, end) + BLOCK, BLOCK):
            mine = [row for row in rows if begin <= row[4] < begin + BLOCK]
            # a process that is stopped sends nothing, and later tells of all of it
            if mine:
                add(trials, world, mine, range(sent, begin + BLOCK, BEAT))
                sent = begin + BLOCK
        trials.change(LoadChange(request="s", at_s=end / 1e9, level=0.0))
        at = max(over, end) + S


def add(trials: Trials, world: World, rows: list[Any], beats: range) -> None:
    columns = decode_rows(encode_rows(rows, (), 0))
    trials.add(columns, "w", {}, 0.0)
    lags = [world.resumed(beat) - beat for beat in beats]
    none = np.zeros(0, np.int64)
    trials.add_delays(
        SimpleNamespace(  # type: ignore[arg-type]
            columns=columns,
            lags=np.array(lags, np.int64),
            blocked={},
            thread_lags=none,
            stalls={},
        )
    )


def stopped_world(seed: int) -> World:
    chance = random.Random(seed)
    apart = int(chance.uniform(5, 15) * S)
    return World(
        capacity=chance.uniform(40, 250),
        first=int(chance.random() * apart),
        apart=apart,
        lasts=int(chance.uniform(0.2, 1.2) * S),
    )


def is_right(world: World, outcome: SearchOutcome) -> bool:
    """Whether the interval covers the truth, or no figure is told, but the generator's name."""
    found = outcome.capacity
    if found.rate is None:
        return bool(outcome.limit)
    covers = found.low is not None and found.high is not None
    # an interval is as wide as its rates are apart, and even arrivals hardly queue below
    return covers and found.low <= 1.03 * world.capacity and found.high >= 0.97 * world.capacity  # type: ignore[operator]


@pytest.mark.dear
def test_stops_of_the_generator_are_not_the_capacity_of_the_service() -> None:
    worlds = [stopped_world(seed) for seed in range(20)]
    outcomes = [search(world).outcome() for world in worlds]

    assert sum(map(is_right, worlds, outcomes)) >= 18
    # and most of them are found in spite of all
    assert sum(one.capacity.rate is not None for one in outcomes) >= 10


def test_a_trial_that_the_generator_disturbed_says_so_and_is_made_again() -> None:
    trials = search(World(capacity=100, first=0, apart=int(9.5 * S), lasts=800 * MS))

    disturbed = [one for one in trials.figures() if one.cause == DISTURBED]
    assert disturbed
    assert disturbed[0].detail.startswith(
        "the load generator disturbed it: its processes were late by up to 800 ms, in "
    )
    assert not any(one.held for one in disturbed)


def test_a_generator_that_is_never_left_alone_gives_no_figure() -> None:
    trials = search(World(capacity=100, first=0, apart=1 * S, lasts=400 * MS))

    outcome, verdict = trials.outcome(), trials.verdict()
    assert "the load generator disturbed" in outcome.limit
    assert outcome.capacity.rate is None
    assert verdict.disputed


@pytest.mark.parametrize("capacity", [60, 100, 170])
def test_without_stops_no_trial_is_made_again(capacity: float) -> None:
    world = World(capacity=capacity, first=0, apart=S, lasts=0)

    trials = search(world)

    assert trials.disturbed == 0
    assert is_right(world, trials.outcome())
    assert not trials.outcome().limit
