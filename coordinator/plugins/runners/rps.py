"""The `rps` runner: arrivals at a rate, whether or not earlier iterations have finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from osbench.coordinator.plugins.runners.possible_rates import FASTEST, MOST_PLANNED, SLOWEST
from osbench.coordinator.plugins.runners.rates import Ramp, exact, points
from osbench.coordinator.plugins.runners.runner_schema import (
    ARRIVALS,
    DRAFT,
    HORIZON_S,
    MAX_CONCURRENCY,
    MAX_CPU_COUNT,
    SEED,
    TIMEOUT,
    TIMES,
    seed_without_effect,
    without_effect,
)
from osbench.coordinator.plugins.runners.schedule import BLOCK, Schedule, schedule
from osbench.plugin import runner
from osbench.plugin.durations import DURATION

_AT_LEAST_ONE: Mapping[str, Any] = {"type": "number", "minimum": 1}

_LENGTH: Mapping[str, Any] = {
    **DURATION,
    "exclusiveMinimum": 0,
    "maximum": 1e9,
    "description": "seconds of load, instead of `times`",
}

_RATE: Mapping[str, Any] = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {
            "type": "object",
            "properties": {
                "start": _AT_LEAST_ONE,
                "end": _AT_LEAST_ONE,
                "step": _AT_LEAST_ONE,
                "duration": {**_AT_LEAST_ONE, **DURATION},
            },
            "required": ["start", "end", "step"],
            "additionalProperties": False,
        },
    ],
    "description": "arrivals per second, or a ramp: from `start` by `step` every `duration` seconds"
    " (1 by default) up to `end`",
}


class Rps(runner.Runner):
    """Starts iterations at `rps` arrivals per second over all workers.

    It ends after `times` iterations, or after `duration`; a task has one or the other.
    `rps` is a rate, or a ramp: `start` arrivals per second, and `step` more after every `duration`
    seconds (1 unless given), up to `end`. `arrivals` are `even` or follow a `poisson` process with
    the seed `seed` (0 unless given). At most `max_concurrency` iterations (all unless given) run at
    once; arrivals beyond that are dropped. `max_cpu_count` is accepted for compatibility
    with Rally and has no effect.
    """

    NAME: ClassVar[str] = "rps"
    OPEN: ClassVar[bool] = True
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "$schema": DRAFT,
        "type": "object",
        "properties": {
            "times": TIMES,
            "duration": _LENGTH,
            "rps": _RATE,
            "timeout": TIMEOUT,
            "max_concurrency": MAX_CONCURRENCY,
            "max_cpu_count": MAX_CPU_COUNT,
            "arrivals": ARRIVALS,
            "seed": SEED,
        },
        "required": ["rps"],
        "examples": [{"rps": 20, "duration": 30}],
        "additionalProperties": False,
    }

    @classmethod
    def check(cls, config: Mapping[str, Any]) -> list[str]:
        """Return messages on a load with both or neither of its ends, and on impossible rates.

        The ends are `times` and `duration`. A ramp must not fall. If all this is right, arrivals in
        `duration` must be at least one and at most `MOST_PLANNED`. Empty if all is fine.
        """
        rate = config["rps"]
        ramp = rate if isinstance(rate, Mapping) else {"rps": rate}
        problems = [
            f"{key} must be between {SLOWEST:g} and {FASTEST:g} arrivals per second, got {value}"
            for key, value in ramp.items()
            if key != "duration" and not SLOWEST <= value <= FASTEST
        ]
        if isinstance(rate, Mapping) and rate["end"] < rate["start"]:
            problems.append(
                f"rps.end must not be less than rps.start, got end {rate['end']}"
                f" and start {rate['start']}"
            )
        if ("times" in config) == ("duration" in config):
            said = "got both" if "times" in config else "both are missing"
            problems.append(f"give either times, iterations in all, or duration, seconds: {said}")
        if problems or "times" in config:
            return problems
        runner = cls(config)
        total = runner.ramp.total
        assert total is not None
        if total > MOST_PLANNED:
            return [f"{float(total):.3g} arrivals are planned; the limit is {MOST_PLANNED:.0e}"]
        # above, a seed without an arrival is impossible, and counting draws all gaps
        if total < BLOCK and not runner.planned:
            return ["no arrival of this seed is within duration: give a longer one"]
        return []

    @classmethod
    def notes(cls, config: Mapping[str, Any]) -> list[str]:
        """Return notes on `max_cpu_count` and on a seed of even arrivals, which have no effect."""
        return without_effect(config) + seed_without_effect(config)

    @property
    def concurrency(self) -> int:
        """Return the most iterations that may run at once: `max_concurrency`, or all planned."""
        return int(self.config.get("max_concurrency", self.planned))

    @cached_property
    def planned(self) -> int:
        """Return `times`, or the number of arrivals within `duration`, by the seed if random."""
        count = self._schedule.count
        return int(self.config["times"]) if count is None else count

    @property
    def lasts_s(self) -> float | None:
        """Return `duration`, seconds; None if the load ends after `times`."""
        return self.config.get("duration")

    @property
    def planned_s(self) -> float:
        """Return `duration`, else when one arrival more than `times` would be due, in seconds.

        The latter is computed as for even arrivals, also if they are not.
        """
        if self.lasts_s is not None:
            return self.lasts_s
        times = Fraction(self.planned)
        segment = self.ramp.segment(self.ramp.position(times))
        return float(segment.instants(times - segment.before, np.zeros(1))[0])

    @cached_property
    def ramp(self) -> Ramp:
        """Return the rate over time; a constant rate is a ramp whose `end` equals `start`."""
        rate, length_s = self.config["rps"], self.lasts_s
        end = None if length_s is None else exact(length_s)
        if not isinstance(rate, Mapping):
            return Ramp(start=exact(rate), end=exact(rate), length_s=end)
        return Ramp(
            length_s=end,
            start=exact(rate["start"]),
            end=exact(rate["end"]),
            step=exact(rate["step"]),
            duration=exact(rate.get("duration", 1)),
        )

    @cached_property
    def _schedule(self) -> Schedule:
        return schedule(self.ramp, self.config)

    def asked(self) -> Sequence[tuple[float, float]]:
        """Return the rate over time: (seconds after t0, arrivals per second), joined by lines."""
        return points(self.ramp)

    def step(self, elapsed_s: float, totals: runner.Totals, capacity: Sequence[int]) -> runner.Step:
        """Return arrivals up to `HORIZON_S` seconds ahead; done when all planned are settled."""
        times = self.planned
        arrivals = self._schedule.due(totals.allotted, times, elapsed_s + HORIZON_S)
        return runner.Step(
            arrivals=arrivals.tolist(),
            done=totals.allotted >= times and totals.settled >= times,
        )
