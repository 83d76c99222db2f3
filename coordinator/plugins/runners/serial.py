"""The `serial` runner: iterations one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from osbench.coordinator.plugins.runners.runner_schema import DRAFT, TIMEOUT, TIMES
from osbench.plugin import runner


class Serial(runner.Runner):
    """Runs `times` iterations with one virtual user.

    As in Rally, other keys are accepted and have no effect, except `timeout`, which bounds each
    iteration.
    """

    NAME: ClassVar[str] = "serial"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "$schema": DRAFT,
        "type": "object",
        "properties": {"times": TIMES, "timeout": TIMEOUT},
        "additionalProperties": True,
    }

    @classmethod
    def notes(cls, config: Mapping[str, Any]) -> list[str]:
        """Return a note for each key that has no effect: all but `times` and `timeout`."""
        return [
            f"{key} has no effect: serial runs iterations one after another"
            for key in config
            if key not in ("times", "timeout")
        ]

    @property
    def concurrency(self) -> int:
        """Return 1, the number of virtual users."""
        return 1

    @property
    def planned(self) -> int:
        """Return `times`, the number of iterations."""
        return int(self.config.get("times", 1))

    def step(self, elapsed_s: float, totals: runner.Totals, capacity: Sequence[int]) -> runner.Step:
        """Return the load now: one virtual user until `times` iterations are settled.

        The first worker with `capacity` gets it.
        """
        return runner.Step(
            users=runner.split(1, capacity),
            budget=self.planned,
            done=totals.settled >= self.planned,
        )
