"""Checks whether a value fits a JSON schema (draft 7) of common keywords, without jsonschema.

That takes longer to import than most tasks to be checked. It explains all that does not fit here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_DRAFT = re.compile(r"http://json-schema\.org/draft-07/schema#?")


class _UnknownError(Exception):
    """Raised for keywords, schemas and values that this module does not decide."""


def surely_fits(value: Any, schema: Any) -> bool:
    """Return whether the schema is correct and of known keywords only, and `value` fits it.

    False says nothing: jsonschema decides.
    """
    try:
        _read(schema)
        return _fits(value, schema)
    except (_UnknownError, RecursionError, OverflowError, re.error):
        return False


def _read(schema: Any) -> bool:
    """Return True; _UnknownError unless all parts of a schema are correct and known, also unused
    ones.
    """
    if isinstance(schema, bool):
        return True
    if type(schema) is not dict:
        raise _UnknownError
    for keyword, rule in schema.items():
        read = _READ.get(keyword)
        if read is None or not read(rule):
            raise _UnknownError
    return True


def _fits(value: Any, schema: Any) -> bool:
    """Return whether a value fits a schema that was read. Raises _UnknownError for other types."""
    if isinstance(schema, bool):
        return schema
    if type(value) not in (dict, list) and not _is_scalar(value):
        raise _UnknownError
    for keyword, rule in schema.items():
        kind, keeps = _RULES.get(keyword, ("", _keeps_any))
        if (not kind or _TYPES[kind](value)) and not keeps(value, rule, schema):
            return False
    return True


def _keeps_any(value: Any, rule: Any, schema: Any) -> bool:
    return True


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_scalar(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str)


def _is_size(rule: Any) -> bool:
    return type(rule) is int and rule >= 0


def _is_text(rule: Any) -> bool:
    return isinstance(rule, str)


def _are_texts(rule: Any) -> bool:
    return isinstance(rule, list) and all(map(_is_text, rule)) and len(set(rule)) == len(rule)


def _are_types(rule: Any) -> bool:
    names = _listed(rule)
    return _are_texts(names) and bool(names) and set(names) <= set(_TYPES)


def _are_schemas(rule: Any) -> bool:
    return isinstance(rule, list) and bool(rule) and all(map(_read, rule))


def _are_properties(rule: Any) -> bool:
    return type(rule) is dict and all(map(_is_text, rule)) and all(map(_read, rule.values()))


def _listed(rule: Any) -> Any:
    return [rule] if isinstance(rule, str) else rule


def _equal(one: Any, other: Any) -> bool:
    """Return whether a value equals a scalar as in JSON, in which true is not 1."""
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: type(value) is int or (type(value) is float and value.is_integer()),
    "null": lambda value: value is None,
    "number": _is_number,
    "object": lambda value: isinstance(value, dict),
    "string": _is_text,
}

#: Known keywords; whether a rule is a correct one. Formats are not checked.
_READ: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("$comment", "description", "format", "title"), _is_text),
    **dict.fromkeys(("default", "elsewhere", "hint"), lambda _: True),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_size),
    **dict.fromkeys(("minProperties", "maxProperties"), _is_size),
    **dict.fromkeys(("additionalProperties", "items", "not"), _read),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _are_schemas),
    "$schema": lambda rule: isinstance(rule, str) and bool(_DRAFT.fullmatch(rule)),
    "const": _is_scalar,
    "enum": lambda rule: isinstance(rule, list) and bool(rule) and all(map(_is_scalar, rule)),
    "examples": lambda rule: isinstance(rule, list),
    "pattern": lambda rule: isinstance(rule, str) and bool(re.compile(rule)),
    "properties": _are_properties,
    "required": _are_texts,
    "type": _are_types,
}

#: Keywords that refuse values: the type that they apply to ("" for all), and whether a value keeps
#: a rule of a schema.
_RULES: Mapping[str, tuple[str, Callable[[Any, Any, Any], bool]]] = {
    "type": ("", lambda value, rule, _: any(_TYPES[kind](value) for kind in _listed(rule))),
    "const": ("", lambda value, rule, _: _equal(value, rule)),
    "enum": ("", lambda value, rule, _: any(_equal(value, one) for one in rule)),
    "allOf": ("", lambda value, rule, _: all(_fits(value, part) for part in rule)),
    "anyOf": ("", lambda value, rule, _: any(_fits(value, part) for part in rule)),
    "oneOf": ("", lambda value, rule, _: sum(_fits(value, part) for part in rule) == 1),
    "not": ("", lambda value, rule, _: not _fits(value, rule)),
    "minimum": ("number", lambda value, rule, _: not value < rule),
    "maximum": ("number", lambda value, rule, _: not value > rule),
    "exclusiveMinimum": ("number", lambda value, rule, _: not value <= rule),
    "exclusiveMaximum": ("number", lambda value, rule, _: not value >= rule),
    "minLength": ("string", lambda value, rule, _: len(value) >= rule),
    "maxLength": ("string", lambda value, rule, _: len(value) <= rule),
    "pattern": ("string", lambda value, rule, _: bool(re.search(rule, value))),
    "minItems": ("array", lambda value, rule, _: len(value) >= rule),
    "maxItems": ("array", lambda value, rule, _: len(value) <= rule),
    "items": ("array", lambda value, rule, _: all(_fits(item, rule) for item in value)),
    "minProperties": ("object", lambda value, rule, _: len(value) >= rule),
    "maxProperties": ("object", lambda value, rule, _: len(value) <= rule),
    "required": ("object", lambda value, rule, _: all(name in value for name in rule)),
    "properties": (
        "object",
        lambda value, rule, _: all(
            _fits(value[name], part) for name, part in rule.items() if name in value
        ),
    ),
    "additionalProperties": (
        "object",
        lambda value, rule, schema: all(
            _fits(item, rule)
            for name, item in value.items()
            if name not in schema.get("properties", {})
        ),
    ),
}
