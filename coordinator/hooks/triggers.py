"""When hooks fire: pure functions of the seconds and the iterations that have passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

#: Least value of each unit: seconds count from 0, iterations from 1.
LEAST = {"time": 0, "iteration": 1}


_UNIT: Mapping[str, Any] = {
    "enum": list(LEAST),
    "description": "seconds after the start of the load, or iterations reported",
}


def _closed(required: list[str], **properties: Any) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": {"unit": _UNIT, **properties},
        "required": ["unit", *required],
        "additionalProperties": False,
        "if": {"properties": {"unit": {"const": "iteration"}}, "required": ["unit"]},
    }


class Trigger:
    """Base of triggers. `unit` is "time" (seconds after the start) or "iteration" (reported)."""

    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self.unit: str = config["unit"]

    def due(self, after: int, until: int) -> Sequence[int]:
        """Values of the unit at which to fire that are above `after` and at most `until`."""
        raise NotImplementedError


class AtEvents(Trigger):
    """`event`: at each of the values in `at`."""

    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        **_closed(
            ["at"],
            at={
                "type": "array",
                "minItems": 1,
                "uniqueItems": True,
                "items": {"type": "integer", "minimum": 0},
            },
        ),
        "then": {"properties": {"at": {"items": {"minimum": 1}}}},
        "examples": [{"unit": "time", "at": [30]}],
    }

    def due(self, after: int, until: int) -> Sequence[int]:
        """Those of `at`, ascending."""
        return sorted(value for value in self.config["at"] if after < value <= until)


class Periodic(Trigger):
    """`periodic`: at `start`, and every `step` from there up to `end`."""

    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        **_closed(
            ["step"],
            start={"type": "integer", "minimum": 0},
            end={"type": "integer", "minimum": 1},
            step={"type": "integer", "minimum": 1},
        ),
        "then": {"properties": {"start": {"minimum": 1}}},
        "examples": [{"unit": "iteration", "start": 100, "step": 500}],
    }

    def due(self, after: int, until: int) -> Sequence[int]:
        """A range: it costs nothing, however long it is."""
        step: int = self.config["step"]
        start: int = self.config.get("start", LEAST[self.unit])
        passed = max(0, (after - start) // step + 1)
        return range(start + passed * step, min(until, self.config.get("end", until)) + 1, step)


#: Triggers by their names in task files.
TRIGGERS: Mapping[str, type[Trigger]] = {"event": AtEvents, "periodic": Periodic}
