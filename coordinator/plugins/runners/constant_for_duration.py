"""The `constant_for_duration` runner: a number of virtual users for a number of seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from osbench.coordinator.plugins.runners.runner_schema import (
    DRAFT,
    RAMP_UP,
    TIMEOUT,
    USERS,
    ramped_users,
)
from osbench.plugin import runner
from osbench.plugin.durations import DURATION, TIMEOUT_S


class ConstantForDuration(runner.Runner):
    """Keeps `concurrency` virtual users active for `duration` seconds.

    The users are added evenly over the first `ramp_up` seconds (at once unless given).
    Iterations that are running when the time is up may finish. A duration of 0 runs the scenario
    once per virtual user, as Rally documents it.
    """

    NAME: ClassVar[str] = "constant_for_duration"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "$schema": DRAFT,
        "type": "object",
        "properties": {
            "duration": {
                **DURATION,
                "minimum": 0,
                "description": "seconds in which iterations start; 0 runs one per virtual user",
            },
            "concurrency": USERS,
            "timeout": {
                **TIMEOUT,
                "minimum": 1,
                "description": f"seconds an iteration may take; {TIMEOUT_S} by default",
            },
            "ramp_up": RAMP_UP,
        },
        "required": ["duration"],
        "additionalProperties": False,
    }

    @classmethod
    def check(cls, config: Mapping[str, Any]) -> list[str]:
        """Return a message if the ramp-up is longer than the duration; else an empty list."""
        duration, ramp_up = config["duration"], config.get("ramp_up", 0)
        if ramp_up <= duration:
            return []
        return [
            f"ramp_up must not be more than duration, got ramp_up {ramp_up} and duration {duration}"
        ]

    @property
    def planned(self) -> int | None:
        """Return the number of virtual users if `duration` is 0, as each runs once; else None."""
        return None if self.config["duration"] else self.concurrency

    @property
    def lasts_s(self) -> float:
        """Return `duration`: the seconds in which iterations start."""
        return float(self.config["duration"])

    @property
    def ramp_up_s(self) -> float:
        """Return the seconds in which the virtual users are added; 0: all at once."""
        return float(self.config.get("ramp_up", 0))

    def users(self, elapsed_s: float) -> int:
        """Return the number of virtual users to be active at `elapsed_s` seconds after t0."""
        return ramped_users(self.config, elapsed_s)

    def step(self, elapsed_s: float, totals: runner.Totals, capacity: Sequence[int]) -> runner.Step:
        """Return the load now: all users until `duration`; done when iterations have ended."""
        users = runner.split(self.users(elapsed_s), capacity)
        duration_s = float(self.config["duration"])
        if duration_s == 0:
            return runner.Step(
                users=users,
                budget=self.concurrency,
                done=totals.settled >= self.concurrency,
            )
        over = elapsed_s >= duration_s and totals.settled >= totals.allotted
        return runner.Step(users=users, stop_s=duration_s, done=over)
