"""The report as classes, beside the schema that describes its JSON object."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from helpers.results_schema import SCHEMA
from osbench.coordinator.report.model.model import Report


def differences(kind: Any, schema: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Places at which a class has other fields than the schema has keys."""
    schema = _resolved(schema)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        fields = [one.name for one in dataclasses.fields(kind)]
        described = schema.get("properties")
        if described is None:
            return
        if sorted(described) != sorted(fields):
            yield f"{place}: {sorted(set(described) ^ set(fields))}"
        for name in described.keys() & set(fields):
            yield from differences(hints[name], described[name], f"{place}.{name}")
    elif typing.get_origin(kind) in {typing.Union, types.UnionType}:
        inner = next(one for one in typing.get_args(kind) if one is not type(None))
        yield from differences(inner, schema, place)
    elif typing.get_origin(kind) is tuple and "items" in schema:
        yield from differences(typing.get_args(kind)[0], schema["items"], f"{place}[]")
    elif typing.get_origin(kind) is Mapping:
        each = schema.get("additionalProperties")
        if isinstance(each, Mapping):
            yield from differences(typing.get_args(kind)[1], each, f"{place}{{}}")


def _resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with what it refers to; the first alternative that is not null."""
    while True:
        if "$ref" in schema:
            schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
        elif "anyOf" in schema or "oneOf" in schema:
            several = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
            schema = next(one for one in several if one.get("type") != "null")
        else:
            return schema


def test_the_schema_describes_each_field() -> None:
    run = next(one for one in SCHEMA["oneOf"] if "run_id" in str(_resolved(one)))

    assert list(differences(Report, run)) == []


def test_a_field_that_the_schema_lacks_is_found() -> None:
    @dataclasses.dataclass(frozen=True)
    class More:
        format: int
        surprise: int

    (found,) = differences(More, {"properties": {"format": {"type": "integer"}}}, "run")

    assert found == "run: ['surprise']"
