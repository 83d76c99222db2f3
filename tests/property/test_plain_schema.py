"""Values that fit a schema without jsonschema fit it with jsonschema, and the other way round."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from osbench.coordinator.taskfile.schema.plain_schema import surely_fits

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([-0.5, 0.0, 1.0, 1.5, 2.0, float("inf"), float("nan")]),
    st.sampled_from(["", "a", "ab", "1", "2s"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
TYPES = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string"])
SIZES = st.integers(0, 2)
NUMBERS = st.sampled_from([-1, 0, 1, 1.5, 2])


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "additionalProperties": inner,
            "required": st.lists(NAMES, max_size=2, unique=True),
            "items": inner,
            "enum": st.lists(SCALARS, min_size=1, max_size=3),
            "const": SCALARS,
            "minimum": NUMBERS,
            "maximum": NUMBERS,
            "exclusiveMinimum": NUMBERS,
            "exclusiveMaximum": NUMBERS,
            "minLength": SIZES,
            "maxLength": SIZES,
            "pattern": st.sampled_from(["", "a", "^a$", "[0-9]"]),
            "minItems": SIZES,
            "maxItems": SIZES,
            "minProperties": SIZES,
            "maxProperties": SIZES,
            "anyOf": some,
            "allOf": some,
            "oneOf": some,
            "not": inner,
            "format": st.just("date"),
            "hint": st.just("write it so"),
        },
    )


SCHEMAS = st.recursive(st.booleans() | _schemas(st.booleans()), _schemas, max_leaves=4)


@given(value=VALUES, schema=SCHEMAS)
@example(value=True, schema={"enum": [1]})
@example(value=1.0, schema={"const": 1, "type": "integer"})
@example(value={"a": None}, schema={"properties": {"a": True}, "additionalProperties": False})
def test_both_agree(value: Any, schema: Any) -> None:
    assert surely_fits(value, schema) == Draft7Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"type": []},
        {"minimum": "1"},
        {"minimum": True},
        {"minLength": -1},
        {"required": "a"},
        {"required": ["a", "a"]},
        {"pattern": "("},
        {"properties": {"unused": {"type": "strin"}}},
        {"properties": {"unused": 1}},
        {"anyOf": [{}, {"type": "strin"}]},
        {"anyOf": []},
        {"items": [{}]},
        {"enum": [[1]]},
        {"description": 1},
        {"$ref": "#/definitions/a"},
        {"if": True, "then": False},
        {"uniqueItems": True},
        {"$schema": "http://json-schema.org/draft-04/schema#"},
        None,
        [],
    ],
)
def test_what_it_does_not_know_is_for_jsonschema_to_decide(schema: Any) -> None:
    assert surely_fits({}, schema) is False


@pytest.mark.parametrize("value", [datetime.date(2026, 1, 1), (1,), {"a": {1}}, 1j])
def test_values_that_json_lacks_are_for_jsonschema_to_decide(value: Any) -> None:
    assert surely_fits(value, {"additionalProperties": {}, "items": {}}) is False
