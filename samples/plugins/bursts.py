"""A runner: bursts of arrivals with silence between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from osbench.plugin import runner

#: Seconds that arrivals are planned ahead: workers have to get them before their due time.
AHEAD_S = 10.0


class Bursts(runner.Runner):
    """Starts `size` iterations at once, every `every` seconds, `bursts` times."""

    NAME: ClassVar[str] = "bursts"
    OPEN: ClassVar[bool] = True
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "bursts": {"type": "integer", "minimum": 1, "description": "how many there are"},
            "size": {"type": "integer", "minimum": 1, "description": "iterations of each"},
            "every": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "seconds from one to the next",
            },
            "timeout": {"type": "number", "minimum": 0, "description": "of an iteration, seconds"},
        },
        "required": ["bursts", "size", "every"],
        "examples": [{"bursts": 10, "size": 50, "every": 2}],
        "additionalProperties": False,
    }

    @property
    def concurrency(self) -> int:
        """Return 0: any number of iterations may run at once."""
        return 0

    @property
    def planned(self) -> int:
        """Return the iterations of all bursts."""
        return int(self.config["bursts"] * self.config["size"])

    def step(self, elapsed_s: float, totals: runner.Totals, capacity: Sequence[int]) -> runner.Step:
        """Plan the arrivals that follow the `allotted` ones, some seconds ahead."""
        size, every = self.config["size"], float(self.config["every"])
        arrivals = []
        for number in range(totals.allotted, self.planned):
            due_s = number // size * every
            if due_s > elapsed_s + AHEAD_S:
                break
            arrivals.append(due_s)
        return runner.Step(
            arrivals=arrivals,
            done=totals.allotted >= self.planned and totals.settled >= self.planned,
        )
