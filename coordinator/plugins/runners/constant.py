"""The `constant` runner: a number of iterations by a number of virtual users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from osbench.coordinator.plugins.runners.runner_schema import (
    DRAFT,
    MAX_CPU_COUNT,
    RAMP_UP,
    TIMEOUT,
    TIMES,
    USERS,
    ramped_users,
    without_effect,
)
from osbench.plugin import runner


class Constant(runner.Runner):
    """Runs `times` iterations with `concurrency` virtual users over all workers.

    The users are added evenly over the first `ramp_up` seconds (at once unless given).
    `max_cpu_count` is accepted for compatibility with Rally and has no effect.
    """

    NAME: ClassVar[str] = "constant"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "$schema": DRAFT,
        "type": "object",
        "properties": {
            "times": TIMES,
            "concurrency": USERS,
            "timeout": TIMEOUT,
            "ramp_up": RAMP_UP,
            "max_cpu_count": MAX_CPU_COUNT,
        },
        "additionalProperties": False,
    }

    @classmethod
    def check(cls, config: Mapping[str, Any]) -> list[str]:
        """Return a message if there are more virtual users than iterations; else an empty list."""
        times, concurrency = config.get("times", 1), config.get("concurrency", 1)
        if concurrency <= times:
            return []
        return [
            f"concurrency must not be more than times, got concurrency {concurrency}"
            f" and times {times}"
        ]

    @classmethod
    def notes(cls, config: Mapping[str, Any]) -> list[str]:
        """Return a note if `max_cpu_count`, which has no effect, is given."""
        return without_effect(config)

    @property
    def planned(self) -> int:
        """Return `times`, the number of iterations."""
        return int(self.config.get("times", 1))

    @property
    def ramp_up_s(self) -> float:
        """Return the seconds in which the virtual users are added; 0: all at once."""
        return float(self.config.get("ramp_up", 0))

    def users(self, elapsed_s: float) -> int:
        """Return the number of virtual users to be active at `elapsed_s` seconds after t0."""
        return ramped_users(self.config, elapsed_s)

    def step(self, elapsed_s: float, totals: runner.Totals, capacity: Sequence[int]) -> runner.Step:
        """Return the load now: all virtual users, until `times` iterations are settled."""
        return runner.Step(
            users=runner.split(self.users(elapsed_s), capacity),
            budget=self.planned,
            done=totals.settled >= self.planned,
        )
