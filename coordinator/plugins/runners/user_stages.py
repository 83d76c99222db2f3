"""The `user_stages` runner: virtual users whose number ramps from one stage to the next."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar

from osbench.coordinator.plugins.runners import runner_schema
from osbench.plugin import runner

#: Most virtual users; far more than any number of hosts carries.
MOST_USERS = 10**7

_COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 0, "maximum": MOST_USERS}


class StagedUsers(runner.Runner):
    """Keeps virtual users active whose number changes linearly from `start` through every stage.

    `start` (0 unless given) and `users` of each stage are virtual users over all workers; a stage
    takes `duration` seconds, 0 seconds is a jump, and stages with 0 users are a pause. Users that
    are too many end after the iteration they have. Iterations that are running when the last
    stage is over may finish.
    """

    NAME: ClassVar[str] = "user_stages"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "$schema": runner_schema.DRAFT,
        "type": "object",
        "properties": {
            "start": {**_COUNT, "description": "virtual users at the beginning; 0 by default"},
            "stages": runner_schema.stages(
                "users",
                {**_COUNT, "description": "virtual users at its end"},
                elsewhere={"target": "arrivals in stages are the runner stages"},
            ),
            "timeout": runner_schema.TIMEOUT,
        },
        "required": ["stages"],
        "additionalProperties": False,
    }

    @classmethod
    def check(cls, config: Mapping[str, Any]) -> list[str]:
        """Return a message if no stage with a duration has a virtual user; else an empty list."""
        levels = [config.get("start", 0), *(stage["users"] for stage in config["stages"])]
        lengths = [stage["duration"] for stage in config["stages"]]
        steps = zip(pairwise(levels), lengths, strict=True)
        if not any(length and (before or after) for (before, after), length in steps):
            return ["stages have no virtual user at any time: give users above 0 and a duration"]
        return []

    @property
    def concurrency(self) -> int:
        """Return the most virtual users at any time; numbers that last 0 seconds do not count."""
        levels = self._levels
        lasting = [
            max(levels[at], levels[at + 1])
            for at, stage in enumerate(self.config["stages"])
            if stage["duration"]
        ]
        return max(lasting)

    @property
    def lasts_s(self) -> float:
        """Return the sum of the durations of all stages, seconds."""
        return self._instants[-1]

    @cached_property
    def _levels(self) -> list[int]:
        first = int(self.config.get("start", 0))
        return [first, *(int(stage["users"]) for stage in self.config["stages"])]

    @cached_property
    def _instants(self) -> list[float]:
        """Return the seconds after t0 at which stages begin, and the end of the last."""
        lengths = (float(stage["duration"]) for stage in self.config["stages"])
        return list(accumulate(lengths, initial=0.0))

    def users(self, elapsed_s: float) -> int:
        """Return the virtual users at `elapsed_s` seconds after t0, rounded to an integer.

        Before t0 as at t0; after the last stage as at its end.
        """
        # the last stage that has begun, past those without a duration
        at = bisect_right(self._instants, max(0.0, elapsed_s)) - 1
        if at >= len(self._levels) - 1:
            return self._levels[-1]
        begin_s, end_s = self._instants[at : at + 2]
        before, after = self._levels[at : at + 2]
        passed = (max(0.0, elapsed_s) - begin_s) / (end_s - begin_s)
        return int(before + (after - before) * passed + 0.5)

    def asked(self) -> Sequence[tuple[float, float]]:
        """Return the virtual users over time: (seconds after t0, users), to be joined by lines."""
        return list(zip(self._instants, map(float, self._levels), strict=True))

    def step(self, elapsed_s: float, totals: runner.Totals, capacity: Sequence[int]) -> runner.Step:
        """Return the load now: the users of the stage, within the `capacity` of workers.

        No iteration starts after the last stage. Done when iterations that were running at its end
        have ended.
        """
        over = elapsed_s >= self.lasts_s and totals.settled >= totals.allotted
        return runner.Step(
            users=runner.split(self.users(elapsed_s), capacity), stop_s=self.lasts_s, done=over
        )
