"""Values for parameters and bodies of an OpenAPI description: its examples, else made-up ones."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from osbench.edges.recordings.openapi_file import ServiceDescription

#: How deep values are made, and how many there are in one of them.
_DEPTH, _MOST = 8, 300

_FORMATS: Mapping[str, str] = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "uuid": "00000000-0000-4000-8000-000000000001",
    "email": "user@example.com",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "byte": "dGV4dA==",
}


class SchemaExamples:
    """Makes example values for the parameters, bodies and schemas of an OpenAPI description."""

    def __init__(self, description: ServiceDescription) -> None:
        self._description = description
        self._left = _MOST

    def told(self, holder: Mapping[str, Any]) -> Any:
        """Return example, default, constant, first of `examples` or of enum; None if none is given.

        In that order, of a parameter or body, then of its schema. Deep or large values are cut.
        """
        self._left = _MOST
        return self._told(holder)

    def value(self, holder: Mapping[str, Any]) -> Any:
        """Return a value for a parameter or body: of `told`, else made up to fit its schema.

        None if there is no such value, for example if the schema refers to itself.
        """
        told = self.told(holder)
        return self._made(holder.get("schema", holder), 0) if told is None else told

    def _told(self, holder: Mapping[str, Any]) -> Any:
        schema = self._description.mapping(holder.get("schema"))
        for place in (holder, schema):
            for key in ("example", "x-example", "default", "const"):
                if place.get(key) is not None:
                    return self._plain(place[key], 0)
            examples = place.get("examples")
            if isinstance(examples, Mapping):
                examples = [
                    self._description.mapping(one).get("value") for one in examples.values()
                ]
            for source in (examples, place.get("enum")):
                if isinstance(source, list) and source and source[0] is not None:
                    return self._plain(source[0], 0)
        return None

    def _plain(self, value: Any, depth: int) -> Any:
        """Return a copy of `value` with JSON types, cut at `_DEPTH` levels and `_MOST` values.

        Dates become ISO strings, other types strings. `depth`: level of `value`, from 0.
        """
        self._left -= 1
        if isinstance(value, dict):
            return {
                str(key): self._plain(inner, depth + 1)
                for key, inner in value.items()
                if self._left > 0 and depth < _DEPTH
            }
        if isinstance(value, list):
            return [
                self._plain(inner, depth + 1)
                for inner in value
                if self._left > 0 and depth < _DEPTH
            ]
        if isinstance(value, datetime.date | datetime.datetime):
            return value.isoformat()
        return value if value is None or isinstance(value, str | int | float) else str(value)

    def _made(self, given: Any, depth: int, within: tuple[str, ...] = ()) -> Any:
        schema = self._description.mapping(given)
        if isinstance(given, Mapping) and isinstance(given.get("$ref"), str):
            if given["$ref"] in within:
                return None
            within = (*within, given["$ref"])
        self._left -= 1
        told = self._told(schema)
        if told is not None:
            return told
        if depth > _DEPTH or self._left < 0:
            return None
        for key in ("oneOf", "anyOf"):
            if isinstance(schema.get(key), list) and schema[key]:
                return self._made(schema[key][0], depth + 1, within)
        parts = schema.get("allOf")
        properties = schema.get("properties")
        if isinstance(parts, list) or isinstance(properties, Mapping):
            found: dict[str, Any] = {}
            for part in parts if isinstance(parts, list) else ():
                made = self._made(part, depth + 1, within)
                found |= made if isinstance(made, dict) else {}
            for name, inner in (properties if isinstance(properties, Mapping) else {}).items():
                if not self._description.mapping(inner).get("readOnly") and self._left > 0:
                    value = self._made(inner, depth + 1, within)
                    found |= {} if value is None else {str(name): value}
            return found
        return self._simple(schema, depth, within)

    def _simple(self, schema: Mapping[str, Any], depth: int, within: tuple[str, ...]) -> Any:
        kind = schema.get("type", "string")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        if kind in ("integer", "number"):
            least = schema.get("minimum", 1)
            return least if isinstance(least, int | float) else 1
        if kind == "array":
            item = self._made(schema.get("items", {}), depth + 1, within)
            return [] if item is None else [item]
        if kind == "string":
            text = _FORMATS.get(str(schema.get("format")), "text")
            least = schema.get("minLength", 0)
            return text.ljust(min(least, 1000), "x") if isinstance(least, int) else text
        return {"boolean": True, "object": {}}.get(str(kind))
