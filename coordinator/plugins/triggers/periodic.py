"""Trigger `periodic`: fires a hook at regular intervals of seconds, or of iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from osbench.coordinator.plugins.triggers.trigger_schema import SECONDS, closed_schema
from osbench.plugin import trigger


class PeriodicTrigger(trigger.Trigger):
    """Fires at `start`, and every `step` from there up to `end`."""

    NAME: ClassVar[str] = "periodic"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        **closed_schema(
            ["step"],
            start={
                "type": "integer",
                "minimum": 0,
                "description": "first value; second 0 or iteration 1 by default",
            },
            end={"type": "integer", "minimum": 1, "description": "last value; none by default"},
            step={"type": "integer", "minimum": 1, "description": "interval"},
        ),
        "then": {"properties": {"start": {"minimum": 1}}},
        "else": {"properties": {"start": SECONDS, "end": SECONDS, "step": SECONDS}},
        "examples": [{"unit": "iteration", "start": 100, "step": 500}],
    }

    def due(self, after: int, until: int) -> Sequence[int]:
        """Return the values at which to fire, above `after` and at most `until`, ascending.

        They are a range, which needs no memory.
        """
        step: int = self.config["step"]
        start: int = self.config.get("start", trigger.LEAST[self.unit])
        passed = max(0, (after - start) // step + 1)
        return range(start + passed * step, min(until, self.config.get("end", until)) + 1, step)
