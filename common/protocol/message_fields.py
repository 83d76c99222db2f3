"""Checks the fields of a message against the types that its class declares.

A signature says who wrote a message, not that the program that wrote it was osbench: code behind
this check may rely on the types, on numbers within an int64, and on well-formed intervals.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, get_args, get_origin, get_type_hints

from osbench.common.errors import Untrusted
from osbench.common.text.escaping import escaped
from osbench.common.values.intervals import Interval

#: Integers of messages are below this number, and not below its negative.
_END = 2**63

_Check = Callable[[Any], bool]


def checked_fields(cls: type, kind: str, body: Mapping[Any, Any]) -> Mapping[str, Any]:
    """Return `body` unchanged if each value has the type that the dataclass `cls` declares for it.

    Missing fields are not checked. Raises Untrusted, naming the first unknown or wrong field;
    `kind` is the kind of message to name there.
    """
    checks, plain = _checks(cls)
    for name, value in body.items():
        found = type(value)
        # most are of these types: no call for them
        if plain.get(name) is found and (found is not int or -_END <= value < _END):
            continue
        check = checks.get(name)
        if check is None or not check(value):
            shown = escaped(str(name)[:40]) if isinstance(name, (str, bytes, int)) else "?"
            wrong = "has no such field" if check is None else "has a wrong value in it"
            raise Untrusted(f"malformed {escaped(kind[:32])} message: field {shown}: {wrong}")
    return body


@functools.lru_cache(64)
def _checks(cls: type) -> tuple[dict[str, _Check], dict[str, type]]:
    """Return a check by field, and the type by field if that is enough (int, str, bytes, bool)."""
    hints = get_type_hints(cls)
    named = {field.name: hints[field.name] for field in fields(cls)}
    plain = {name: hint for name, hint in named.items() if hint in (int, str, bytes, bool)}
    return {name: _check(hint) for name, hint in named.items()}, plain


def _check(hint: Any) -> _Check:
    """Return the check of a type hint. Raises NotImplementedError if it is not supported."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    if hint == Interval:
        return _is_interval
    origin, inner = get_origin(hint), get_args(hint)
    if origin is list:
        one = _check(inner[0])
        return lambda value: isinstance(value, (list, tuple)) and all(map(one, value))
    if origin is dict:
        return _is_map
    if len(inner) == 2 and type(None) in inner:
        found = _check(next(one for one in inner if one is not type(None)))
        return lambda value: value is None or found(value)
    if origin is tuple:
        each = [_check(one) for one in inner]
        return lambda value: (
            isinstance(value, (list, tuple))
            and len(value) == len(each)
            and all(check(one) for check, one in zip(each, value, strict=True))
        )
    raise NotImplementedError(
        f"no check of a message field of type {hint}; use a type that _check knows"
    )


def _is_int(value: Any) -> bool:
    return type(value) is int and -_END <= value < _END


def _is_float(value: Any) -> bool:
    if type(value) is float:
        return math.isfinite(value)
    return _is_int(value)


def _is_interval(value: Any) -> bool:
    """Return whether `value` is a half-open interval of iteration numbers, 0 < low < high."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return False
    low, high = value
    return type(low) is int and type(high) is int and 0 < low < high < _END


def _is_map(value: Any) -> bool:
    return isinstance(value, dict) and {str}.issuperset(map(type, value))


def _anything(_: Any) -> bool:
    return True


_SCALARS: dict[Any, _Check] = {
    int: _is_int,
    float: _is_float,
    str: lambda value: isinstance(value, str),
    bytes: lambda value: isinstance(value, bytes),
    bool: lambda value: isinstance(value, bool),
    Any: _anything,
}
