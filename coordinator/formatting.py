"""Formats numbers, durations, sizes and foreign text for people who read them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from osbench.common.text.escaping import escaped

#: Unit, its seconds, and the number of it from which the next unit is used.
_UNITS = (
    ("ns", 1e-9, 999.5),
    ("us", 1e-6, 999.5),
    ("ms", 1e-3, 999.5),
    ("s", 1.0, 599.5),
    ("m", 60.0, 99.95),
    ("h", 3600.0, float("inf")),
)
_WRITTEN = re.compile(r"(?P<number>[\d.,]+) ?(?P<unit>[a-z]+)")


def duration(seconds: float | None) -> str:
    """Return seconds with three digits and a unit, such as 12.3ms; "-" for None, "0" for 0."""
    if seconds is None:
        return "-"
    if seconds == 0:
        return "0"
    unit, scale = next((unit, size) for unit, size, end in _UNITS if abs(seconds) / size < end)
    return f"{three_digits(seconds / scale)}{unit}"


def seconds_of(text: str) -> float | None:
    """Return the seconds of a text made by `duration` or `spaced`; None for a text without unit."""
    found = _WRITTEN.fullmatch(text)
    scale = next((size for unit, size, _ in _UNITS if found and unit == found["unit"]), None)
    return float(found["number"].replace(",", "")) * scale if found and scale else None


def spaced(seconds: float | None) -> str:
    """Return seconds with three digits and a unit for running text, such as 12.3 ms.

    "-" for None, "0" for 0.
    """
    text = duration(seconds)
    number = text.rstrip("nmush")
    return f"{number} {text[len(number) :]}" if number != text else text


def three_digits(number: float) -> str:
    """Return a number with three significant digits; from 100 on as an integer with commas."""
    magnitude = abs(number)
    if magnitude < 0.9995:
        return f"{number:.3g}"
    if magnitude < 9.995:
        return f"{number:.2f}"
    if magnitude < 99.95:
        return f"{number:.1f}"
    return f"{number:,.0f}"


def timestamp(seconds: float) -> str:
    """Return seconds since 1970-01-01 UTC as ISO 8601 with milliseconds: 2026-04-01T12:00:00.250Z.

    Raises ValueError, OverflowError or OSError if they are beyond calendar dates.
    """
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def count(number: int, one: str = "", many: str = "") -> str:
    """Return an integer with thousands separators, followed by a noun if `one` is given.

    `one` is the singular, `many` the plural, by default `one` with an s.
    """
    noun = one if number == 1 else many or f"{one}s"
    return f"{number:,} {noun}" if one else f"{number:,}"


def size(number: int) -> str:
    """Return a number of bytes with three digits and a decimal unit, B to TB: 1.20 MB."""
    if number < 1000:
        return f"{number} B"
    scaled, units = number / 1000, ["kB", "MB", "GB", "TB"]
    while scaled >= 999.5 and len(units) > 1:
        scaled, units = scaled / 1000, units[1:]
    return f"{three_digits(scaled)} {units[0]}"


def distinct(names: Sequence[str]) -> list[str]:
    """Return the names in order; each of equal names gets an index from 0, as in "name [0]"."""
    several = Counter(names)
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        found.append(f"{name} [{seen[name]}]" if several[name] > 1 else name)
        seen[name] += 1
    return found


def titles(workloads: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return a title for each workload, in order, no two the same.

    A workload is given as (own name in the task, title of its subtask, scenario's name): the first
    that is not empty is the title. Equal titles get an index from 0: "title [0]".
    """
    return distinct([next((one for one in names if one), "workload") for names in workloads])


def plain(text: str, limit: int = 200) -> str:
    """Return the first line of foreign text, controls escaped, cut to `limit` characters."""
    line = escaped(text.strip().partition("\n")[0])
    return line if len(line) <= limit else f"{line[: limit - 3]}..."
