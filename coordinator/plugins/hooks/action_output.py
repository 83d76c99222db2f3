"""Checks the outputs of hooks before they become part of a report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft7Validator

#: Longest output as JSON, characters.
LIMIT = 512 * 1024

_CHARTS: Mapping[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "chart_plugin": {"type": "string"},
            "description": {"type": "string"},
            "label": {"type": "string"},
            "axis_label": {"type": "string"},
            "data": {},
        },
        "required": ["title", "chart_plugin", "data"],
        "additionalProperties": False,
    },
}

OUTPUT: Mapping[str, Any] = {
    "type": "object",
    "properties": {"additive": _CHARTS, "complete": _CHARTS},
    "required": ["additive", "complete"],
    "additionalProperties": False,
}


def checked_output(returned: Mapping[str, Any]) -> dict[str, Any]:
    """Return a hook's return value as JSON values, with the lists `additive` and `complete`.

    Both are lists of charts, empty if missing. Raises ValueError if it is not JSON, longer than
    `LIMIT` characters, or not charts.
    """
    try:
        text = json.dumps({"additive": [], "complete": [], **returned}, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"the output is not JSON: {error}; return text, numbers, lists and mappings"
        ) from None
    if len(text) > LIMIT:
        raise ValueError(
            f"the output has {len(text)} characters as JSON, at most {LIMIT} are kept; return less"
        )
    output: dict[str, Any] = json.loads(text)
    for problem in Draft7Validator(OUTPUT).iter_errors(output):
        raise ValueError(
            f"the output of the action does not describe charts: {problem.json_path}: "
            f"{problem.message}"
        )
    return output
