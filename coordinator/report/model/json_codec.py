"""Converts frozen dataclasses to JSON values and back, by the names and types of their fields.

A field that a document lacks gets its default; so does a field that is null but must not be. Other
keys of a document are ignored. A number may be an integer or a float, whichever its field has.
Texts of fields whose names end in `_at` are times in ISO 8601.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

T = TypeVar("T")
Read = Callable[[Any], Any]

#: Metadata of a field that is left out of the JSON object if it is None.
OMITTED: Mapping[str, bool] = {"omitted": True}


def to_json(value: Any) -> Any:
    """Return JSON values of a dataclass, or of lists and mappings of them, keys in field order.

    Fields that are None and have the metadata `OMITTED` are left out. Other values are returned as
    they are.
    """
    if dataclasses.is_dataclass(value):
        kind: Any = type(value)
        found = ((name, getattr(value, name), omitted) for name, omitted in _names(kind))
        return {
            name: to_json(one) for name, one, omitted in found if one is not None or not omitted
        }
    if isinstance(value, Mapping):
        return {key: to_json(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(one) for one in value]
    return value


def from_json(kind: Callable[..., T], document: Any) -> T:
    """Return an instance of the dataclass `kind` from a JSON object, with all parts.

    Raises ValueError, which names the field, if a part has another shape or a field without default
    is missing.
    """
    if not isinstance(document, Mapping):
        raise ValueError(f"expected an object ({_name(kind)}), found {_short_repr(document)}")
    fields = _fields(kind)
    found = {}
    for name, value in document.items():
        field = fields.get(name)
        if field is None or (value is None and not field.nullable):
            continue
        try:
            found[name] = field.read(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    try:
        return kind(**found)
    except TypeError:
        missing = [name for name, one in fields.items() if one.required and name not in found]
        raise ValueError(f"expected {', '.join(missing)} in {_name(kind)}, found none") from None


class _Field(typing.NamedTuple):
    read: Read
    nullable: bool
    required: bool


@functools.cache
def _names(kind: Any) -> tuple[tuple[str, bool], ...]:
    return tuple((one.name, "omitted" in one.metadata) for one in dataclasses.fields(kind))


@functools.cache
def _fields(kind: Any) -> dict[str, _Field]:
    hints = typing.get_type_hints(kind)
    return {
        one.name: _Field(
            read=_instant if _is_instant(one.name, hints[one.name]) else _reader(hints[one.name]),
            nullable=_is_nullable(hints[one.name]),
            required=one.default is one.default_factory is dataclasses.MISSING,
        )
        for one in dataclasses.fields(kind)
    }


def _is_instant(name: str, kind: Any) -> bool:
    return name.endswith("_at") and (kind is str or str in typing.get_args(kind))


def _is_nullable(kind: Any) -> bool:
    return kind is Any or type(None) in typing.get_args(kind)


def _reader(kind: Any) -> Read:
    """Return the function that converts a JSON value to the type `kind`.

    Dataclasses, tuples, mappings and optional types are converted; numbers, texts and flags are
    checked; other values are returned as they are.
    """
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        made: Any = kind
        return functools.partial(from_json, made)
    if origin in {typing.Union, types.UnionType}:
        several = [one for one in inner if one is not type(None)]
        read = _as_is if len(several) > 1 else _reader(several[0])
        return read if read is _as_is else lambda value: None if value is None else read(value)
    if origin is tuple:
        return functools.partial(_tuple, _reader(inner[0]))
    if origin is Mapping:
        return functools.partial(_mapping, _reader(inner[1]))
    return _as_is


def _as_is(value: Any) -> Any:
    return value


def _number(value: Any) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return value
    raise ValueError(f"expected a number, found {_short_repr(value)}")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(f"expected a text, found {_short_repr(value)}")


def _instant(value: Any) -> str | None:
    # null is kept for fields only that may be null
    text = None if value is None else _text(value)
    if text:
        datetime.fromisoformat(text)
    return text


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError(f"expected true or false, found {_short_repr(value)}")


_PLAIN: Mapping[Any, Read] = {int: _number, float: _number, str: _text, bool: _flag}


def _tuple(read: Read, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"expected an array, found {_short_repr(value)}")
    return tuple(value) if read is _as_is else tuple(map(read, value))


def _mapping(read: Read, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"expected an object, found {_short_repr(value)}")
    return value if read is _as_is else {key: read(one) for key, one in value.items()}


def _name(kind: Any) -> str:
    return str(kind.__name__)


def _short_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
