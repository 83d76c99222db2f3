"""The schema that triggers share: the unit that they count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.plugin import trigger
from osbench.plugin.durations import DURATION

_UNIT: Mapping[str, Any] = {
    "enum": list(trigger.LEAST),
    "description": "seconds after the start of the load, or iterations reported",
}

#: Of values whose unit is time: a duration in whole seconds.
SECONDS: Mapping[str, Any] = {**DURATION, "type": "integer"}


def closed(required: list[str], **properties: Any) -> Mapping[str, Any]:
    """An object with `unit` and some properties; "then" applies if the unit is iterations,
    else "else".
    """
    return {
        "type": "object",
        "properties": {"unit": _UNIT, **properties},
        "required": ["unit", *required],
        "additionalProperties": False,
        "if": {"properties": {"unit": {"const": "iteration"}}, "required": ["unit"]},
    }
