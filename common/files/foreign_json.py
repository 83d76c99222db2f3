"""Reads JSON that others wrote, such as a run of an archive or the response of a server.

Python reads integers of any length and numbers beyond floats, and calculations with these raise
OverflowError far from their reader. It also makes millions of objects of a few megabytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NoReturn

#: Most digits of a float's largest integer, with a sign.
_DIGITS = 310


def read_json(text: str | bytes, most_values: int | None = None) -> Any:
    """Return the value of a JSON text.

    Raises ValueError if it is not JSON or nested too deeply, has NaN, a number beyond the largest
    float, or more than about `most_values` values (None: any number). Lone surrogates are kept.
    """
    if most_values is not None:
        check_values(text, most_values)
    try:
        return json.loads(text, **_HOOKS)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json_sequence(text: str, most_values: int) -> Iterator[Any]:
    """Yield the values of JSON texts that follow one another, also without blanks between.

    A generator: raises ValueError as `read_json`, but not before a value is requested.
    `most_values` counts for all texts together.
    """
    check_values(text, most_values)
    decoder = json.JSONDecoder(**_HOOKS)
    at, text = 0, text.strip()
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        yield value
        while at < len(text) and text[at].isspace():
            at += 1


class TooManyValuesError(ValueError):
    """Raised for JSON that would become more objects than its reader makes."""


def check_values(text: str | bytes, most_values: int) -> None:
    """Raise TooManyValuesError for JSON with more than `most_values` values, before it is parsed.

    Each value follows a comma or opens a list or an object; commas and brackets in strings count
    as well.
    """
    if isinstance(text, str):
        found = sum(text.count(mark) for mark in ",[{")
    else:
        found = sum(text.count(mark) for mark in (b",", b"[", b"{"))
    if found > most_values:
        raise TooManyValuesError(f"it has more than {most_values:,} values")


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"it has a number of {len(digits):,} digits")
    number = int(digits)
    if len(digits) >= _DIGITS - 2 and math.isinf(_nearest(number)):
        raise ValueError(f"it has a number of {len(digits)} digits")
    return number


def _nearest(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("it has a number beyond the largest float")
    return number


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"it has {name}, which JSON does not know")


_HOOKS: dict[str, Any] = {
    "parse_int": _integer,
    "parse_float": _float,
    "parse_constant": _refuse,
}
