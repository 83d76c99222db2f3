"""The `stages` runner: arrivals at a rate that ramps from one target to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from osbench.coordinator.plugins.runners import runner_schema
from osbench.coordinator.plugins.runners.possible_rates import FASTEST, MOST_PLANNED, SLOWEST
from osbench.coordinator.plugins.runners.rates import Stages, points
from osbench.coordinator.plugins.runners.schedule import Schedule, schedule
from osbench.plugin import runner

_RATE: Mapping[str, Any] = {"type": "number", "minimum": 0, "maximum": FASTEST}

#: Shortest stage, seconds; for a jump a stage has the duration 0.
SHORTEST_S = 1e-3


def _too_small(config: Mapping[str, Any]) -> list[str]:
    rates = {"start": config.get("start", 0)}
    lengths = {}
    for position, stage in enumerate(config["stages"]):
        rates[f"stages[{position}].target"] = stage["target"]
        lengths[f"stages[{position}].duration"] = stage["duration"]
    return [
        f"{name} must be 0 or at least {least:g} {unit}, got {value}"
        for values, least, unit in (
            (rates, SLOWEST, "arrivals per second"),
            (lengths, SHORTEST_S, "seconds"),
        )
        for name, value in values.items()
        if 0 < value < least
    ]


class StagedRate(runner.Runner):
    """Starts iterations at a rate that changes linearly from `start` through every `target`.

    `start` (0 unless given) and targets are arrivals per second over all workers; each stage
    takes `duration` seconds, 0 seconds is a jump. At most `max_concurrency` iterations (any
    number unless given) run at once; arrivals beyond that are dropped.
    """

    NAME: ClassVar[str] = "stages"
    OPEN: ClassVar[bool] = True
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "$schema": runner_schema.DRAFT,
        "type": "object",
        "properties": {
            "start": {**_RATE, "description": "arrivals per second at the beginning; 0 by default"},
            "stages": runner_schema.stages(
                "target",
                {**_RATE, "description": "arrivals per second at its end"},
                elsewhere={"users": "virtual users in stages are the runner user_stages"},
            ),
            "max_concurrency": runner_schema.MAX_CONCURRENCY,
            "timeout": runner_schema.TIMEOUT,
            "arrivals": runner_schema.ARRIVALS,
            "seed": runner_schema.SEED,
        },
        "required": ["stages"],
        "additionalProperties": False,
    }

    @classmethod
    def check(cls, config: Mapping[str, Any]) -> list[str]:
        """Return messages on rates or durations above 0 and too small, no arrivals, or too many."""
        problems = _too_small(config)
        if problems:
            return problems
        total = Stages.of(config).total
        if not total:
            return ["stages have no arrival: give a target above 0 and a duration"]
        if total > MOST_PLANNED:
            return [f"stages have {float(total):.3g} arrivals; the limit is {MOST_PLANNED:.0e}"]
        return []

    @classmethod
    def notes(cls, config: Mapping[str, Any]) -> list[str]:
        """Return a note if a seed is given for even arrivals."""
        return runner_schema.seed_without_effect(config)

    @property
    def lasts_s(self) -> float:
        """Return the sum of the durations of all stages, seconds."""
        return self._curve.lasts_s

    @property
    def planned(self) -> int | None:
        """Return the number of arrivals of all stages; with random arrivals, as `seed` gives it."""
        return self._schedule.count

    @cached_property
    def _curve(self) -> Stages:
        return Stages.of(self.config)

    @cached_property
    def _schedule(self) -> Schedule:
        return schedule(self._curve, self.config)

    def asked(self) -> Sequence[tuple[float, float]]:
        """Return the rate over time: (seconds after t0, arrivals per second), joined by lines."""
        return points(self._curve)

    def step(self, elapsed_s: float, totals: runner.Totals, capacity: Sequence[int]) -> runner.Step:
        """Return the due times of arrivals not planned yet, up to `HORIZON_S` seconds ahead.

        Seconds after t0; `capacity` is not used. Done when all arrivals of the stages are planned
        and settled.
        """
        count = self._schedule.count
        assert count is not None
        horizon_s = elapsed_s + runner_schema.HORIZON_S
        return runner.Step(
            arrivals=self._schedule.due(totals.allotted, count, horizon_s).tolist(),
            done=totals.allotted >= count and totals.settled >= count,
        )
