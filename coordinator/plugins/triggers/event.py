"""Trigger `event`: fires a hook at given seconds of load, or at given counts of iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from osbench.coordinator.plugins.triggers.trigger_schema import SECONDS, closed_schema
from osbench.plugin import trigger


class EventTrigger(trigger.Trigger):
    """Fires at each of the values in `at`."""

    NAME: ClassVar[str] = "event"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        **closed_schema(
            ["at"],
            at={
                "type": "array",
                "minItems": 1,
                "uniqueItems": True,
                "items": {"type": "integer", "minimum": 0},
                "description": "durations in whole seconds, or iterations from 1",
            },
        ),
        "then": {"properties": {"at": {"items": {"minimum": 1}}}},
        "else": {"properties": {"at": {"items": SECONDS}}},
        "examples": [{"unit": "time", "at": [30]}],
    }

    def due(self, after: int, until: int) -> Sequence[int]:
        """Return the values of `at` that are above `after` and at most `until`, ascending."""
        return sorted(value for value in self.config["at"] if after < value <= until)
