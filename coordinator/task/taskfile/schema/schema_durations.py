"""Converts durations in a document, such as "10s", to seconds, according to its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft7Validator

from osbench.common.config.durations import is_duration, seconds


def in_seconds(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a copy of `value` with durations as seconds, wherever its schema has durations.

    Strings that cannot be read as durations are unchanged; the schema refuses them later.
    """
    if isinstance(value, str) and is_duration(schema):
        try:
            return seconds(value)
        except ValueError:
            return value
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        value = {
            key: in_seconds(item, properties.get(key, others if isinstance(others, dict) else {}))
            for key, item in value.items()
        }
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        value = [in_seconds(item, schema["items"]) for item in value]
    for branch in _branches(value, schema):
        value = in_seconds(value, branch)
    return value


def _branches(value: Any, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if "if" in schema:
        fits = Draft7Validator(schema["if"]).is_valid(value)
        branches.append(schema.get("then" if fits else "else", {}))
    return branches
