"""Durations as people write them, such as `30`, `30s`, `5m` or `1h30m`, read as seconds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

_UNITS = {
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(ms|[smhd])")
_WHOLE = re.compile(rf"(?:{_PART.pattern} ?)+")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")

#: Longest text that is read as a duration, in characters: its seconds fit into 64 bits.
_LONGEST = 15

#: What a message asks for.
WANTED = "seconds, or a duration such as 30s, 5m or 1h30m"

#: Timeout of an iteration unless the task gives one, seconds; Rally's.
TIMEOUT_S = 600

#: In a JSON schema: seconds, which may be written as a duration. A schema of a plug-in may have it.
DURATION: Mapping[str, Any] = {"type": "number", "format": "duration"}


def seconds(text: str) -> float:
    """Return the seconds of a text such as "30", "1.5 s" or "1h30m"; an int if they are integral.

    A text without units is seconds; units are ms, s, m, h and d. Raises ValueError for other text,
    a sign, or more than 15 characters.
    """
    written = text.strip()
    if len(written) <= _LONGEST and _NUMBER.fullmatch(written):
        exact = Fraction(written)
    elif len(written) <= _LONGEST and _WHOLE.fullmatch(written):
        parts = _PART.findall(written)
        exact = sum((Fraction(number) * _UNITS[unit] for number, unit in parts), Fraction(0))
    else:
        raise ValueError(f"must be {WANTED}")
    return int(exact) if exact.denominator == 1 else float(exact)


def is_duration(schema: Mapping[str, Any]) -> bool:
    """Return whether a JSON schema is for seconds for which a task may write a duration."""
    return schema.get("format") == "duration" and schema.get("type") in ("number", "integer")
