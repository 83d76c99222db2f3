"""Packs chart data of iterations, whatever types of values a scenario computes with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any

import msgpack


def pack_output(kind: str, item: Mapping[str, Any]) -> bytes:
    """Pack a chart item of `Scenario.add_output` as msgpack: a map with `kind` and `item`.

    Values of numpy and pandas, enumerations, decimals, sets and other iterables become numbers,
    strings and lists; any other object, and an integer of more than 64 bits, becomes its `str`.
    Raises TypeError if the data holds itself or text that is not valid Unicode.
    """
    try:
        packed: bytes = msgpack.packb({"kind": kind, "item": dict(item)}, default=_plain)
    except ValueError as error:
        raise TypeError(
            f"{kind} output cannot be stored: {error}; give text, numbers, lists and mappings"
        ) from error
    return packed


#: Types that msgpack packs itself.
_PACKED = (type(None), bool, int, float, str, bytes, list, tuple, dict)


def _plain(value: Any) -> Any:
    """Return a value of a type that msgpack packs; its elements may still need a conversion.

    Tries up to three conversions, then returns `str(value)`.
    """
    # an enumeration may hold a number of numpy; nothing that is meant goes deeper
    for _ in range(3):
        value = _plainer(value)
        if isinstance(value, _PACKED):
            return value
    return str(value)


def _plainer(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if hasattr(value, "to_numpy"):
        # a series, an index or a frame of pandas
        value = value.to_numpy()
    if hasattr(value, "tolist"):
        # an array of numpy, or a scalar
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Iterable):
        return list(value)
    return str(value)
