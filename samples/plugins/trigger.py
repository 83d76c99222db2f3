"""A trigger: often in the beginning, then more and more rarely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from osbench.plugin import trigger


class Doubling(trigger.Trigger):
    """Fires at `start`, and then each time that the value has doubled."""

    NAME: ClassVar[str] = "doubling"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "unit": {"enum": ["time", "iteration"]},
            "start": {"type": "integer", "minimum": 1, "description": "first value"},
        },
        "required": ["unit", "start"],
        "examples": [{"unit": "iteration", "start": 100}],
        "additionalProperties": False,
    }

    def due(self, after: int, until: int) -> Sequence[int]:
        """Return the values above `after`, at most `until`."""
        found = []
        value = self.config["start"]
        while value <= until:
            if value > after:
                found.append(value)
            value *= 2
        return found
