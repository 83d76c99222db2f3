"""The JSON schema that triggers share: an object with `unit`, and other properties."""

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


def closed_schema(required: list[str], **properties: Any) -> Mapping[str, Any]:
    """Return the schema of an object with `unit` and `properties`; `required` are mandatory.

    The caller may add "then", which applies if the unit is iterations, and "else" for time.
    """
    return {
        "type": "object",
        "properties": {"unit": _UNIT, **properties},
        "required": ["unit", *required],
        "additionalProperties": False,
        "if": {"properties": {"unit": {"const": "iteration"}}, "required": ["unit"]},
    }
