"""Validates values by a JSON schema; problems have their place and the value found."""

from __future__ import annotations

import difflib
import functools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml
from jsonschema import Draft7Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import validator_for

from osbench.common.config.durations import WANTED, is_duration
from osbench.common.errors import Problem
from osbench.coordinator.task.taskfile.places import inside, shown_value

_TYPES = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}

_NAME = re.compile(r"[\w.@-]+")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")

#: Keyword of osbench's schemas: the right place of a key that the schema does not have, by key.
ELSEWHERE = "elsewhere"

#: Keyword of osbench's schemas: the value to write instead of a value of another type.
HINT = "hint"

#: Messages for keywords that compare the value with a limit.
_LIMITS = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be more than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must hold at least {}",
    "maxItems": "must hold at most {}",
    "minProperties": "must name at least {}",
    "maxProperties": "must name at most {}",
    "pattern": "must match {}",
}


def validate(value: Any, schema: Mapping[str, Any], place: str) -> list[Problem]:
    """Return all problems of `value`, which is at `place` in the document; empty if it fits.

    A schema without `$schema` is draft 7. An invalid schema, of a plug-in, is one problem.
    """
    fault = _fault(json.dumps(schema, sort_keys=True, default=repr))
    if fault:
        return [Problem(place, f"cannot be checked: its plug-in's schema is wrong: {fault}")]
    validator: Any = validator_for(schema, default=Draft7Validator)
    return list(_all_problems(validator(schema).iter_errors(value), place))


@functools.cache
def _fault(schema: str) -> str:
    """Return the error in a JSON schema, given as text, or ""; cached, as checking it is slow."""
    read = json.loads(schema)
    validator: Any = validator_for(read, default=Draft7Validator)
    try:
        validator.check_schema(read)
    except SchemaError as error:
        return error.message
    return ""


def _all_problems(errors: Iterable[ValidationError], place: str) -> Iterator[Problem]:
    found = list(errors)
    # settings under names that are not plug-ins would each be reported again
    many = [error.absolute_path for error in found if error.validator == "maxProperties"]
    for error in found:
        if any(_is_below(error, path) for path in many):
            continue
        where = place
        for part in error.absolute_path:
            where = inside(where, part)
        key = error.absolute_path[-1] if error.absolute_path else None
        yield from _problems(error, where, key, place)


def _is_below(error: ValidationError, path: Sequence[str | int]) -> bool:
    own = list(error.absolute_path)
    return len(own) > len(path) and own[: len(path)] == list(path)


def _problems(
    error: ValidationError, where: str, key: str | int | None, place: str
) -> Iterator[Problem]:
    value: Any = error.instance
    rule: Any = error.validator_value
    match error.validator:
        case "additionalProperties" if rule is False:
            yield from _unknown_keys(error, where)
        case "required":
            yield Problem(where, f"{_missing(error)} is missing")
        case "type":
            kinds = [rule] if isinstance(rule, str) else list(rule)
            timed = isinstance(error.schema, Mapping) and is_duration(error.schema)
            said = _not_a_duration(value, key) if timed else _must_be(kinds, value, key)
            yield Problem(where, f"{said}{_suggestion(value, kinds, error.schema)}")
        case "enum":
            known = ", ".join(shown_value(choice) for choice in rule)
            yield Problem(where, f"must be one of {known}, got {shown_value(value, key)}")
        case "anyOf" | "oneOf" if error.context:
            yield from _branches(error, where, key, place)
        case str(keyword) if keyword in _LIMITS:
            said = f"{_LIMITS[keyword].format(rule)}, got {shown_value(value, key)}"
            yield Problem(where, f"{said}{_as_version_2(value) or _example(error.schema)}")
        case keyword:
            yield Problem(where, f"breaks the rule {keyword!r}, got {shown_value(value, key)}")


def _must_be(kinds: list[str], value: Any, key: str | int | None) -> str:
    return f"must be {' or '.join(_TYPES[kind] for kind in kinds)}, got {shown_value(value, key)}"


def _not_a_duration(value: Any, key: str | int | None) -> str:
    return f"must be {WANTED}, got {shown_value(value, key)}"


def _suggestion(value: Any, kinds: Sequence[str], schema: Any) -> str:
    """Return the end of a message about a value of a wrong type: a suggestion, or "".

    It is a better spelling, the schema's hint or the schema's first example.
    """
    if isinstance(value, str) and (number := _PERCENT.fullmatch(value)) and "number" in kinds:
        return f": write {number[1]} where percent are meant"
    if "string" in kinds and isinstance(value, bool | int | float):
        words = " (YAML reads yes, no, on and off as these)" if isinstance(value, bool) else ""
        return f": put it in quotes{words}"
    schema = schema if isinstance(schema, Mapping) else {}
    settings = schema.get("additionalProperties")
    by_name = isinstance(settings, Mapping) and settings.get("type") == "object"
    if by_name and isinstance(value, str) and _NAME.fullmatch(value):
        return f": write {{{value}: {{}}}}, with its settings in the inner braces"
    return f": {schema[HINT]}" if HINT in schema else _example(schema)


def _as_version_2(value: Any) -> str:
    """Return a hint for a message if a plug-in is written as in version 1, with a key `type`.

    The hint is its spelling in version 2; "" for other values.
    """
    if not isinstance(value, Mapping) or not isinstance(value.get("type"), str):
        return ""
    keys = ", ".join(str(key) for key in value if key != "type")
    return f": version 2 spells it {{{value['type']}: {{{keys}}}}}, with their values"


def _example(schema: Any) -> str:
    examples = schema.get("examples") if isinstance(schema, Mapping) else None
    if not examples:
        return ""
    text = yaml.safe_dump(examples[0], default_flow_style=True, sort_keys=False, width=math.inf)
    return f"; an example: {text.strip()}"


def _missing(error: ValidationError) -> str:
    # there is one error per missing key, and only its message names the key
    required: Any = error.validator_value
    return next(str(name) for name in required if error.message.startswith(repr(name)))


def _unknown_keys(error: ValidationError, where: str) -> Iterator[Problem]:
    schema: Any = error.schema
    value: Any = error.instance
    known = list(schema.get("properties", {}))
    for name in value:
        if name not in known:
            shown = shown_value(value[name], name)
            hint = schema.get(ELSEWHERE, {}).get(name)
            suggestion = f" ({hint})" if hint else near(name, known)
            yield Problem(inside(where, name), f"unknown key{suggestion}, got {shown}")


def near(name: str, known: Iterable[str]) -> str:
    """Return a hint for a message on an unknown name, such as " (did you mean X?)".

    If no known name is similar, the hint lists all of them; "" if there are none.
    """
    names = list(known)
    close = difflib.get_close_matches(name, names)
    if close:
        return f" (did you mean {' or '.join(close)}?)"
    return f" (known are {', '.join(names)})" if names else ""


def _branches(
    error: ValidationError, where: str, key: str | int | None, place: str
) -> Iterator[Problem]:
    branches: dict[Any, list[ValidationError]] = {}
    for part in error.context or ():
        branches.setdefault(part.relative_schema_path[0], []).append(part)
    of_type = [faults for faults in branches.values() if not any(_is_type(f) for f in faults)]
    if of_type:
        meant = min(of_type, key=len)
        yield from _all_problems(meant, place)
        return
    kinds = [f.validator_value for faults in branches.values() for f in faults if _is_type(f)]
    named = [kind for kind in kinds if isinstance(kind, str)]
    said = _must_be(list(dict.fromkeys(named)), error.instance, key)
    yield Problem(where, f"{said}{_suggestion(error.instance, named, error.schema)}")


def _is_type(fault: ValidationError) -> bool:
    return fault.validator == "type" and not fault.relative_path
