"""Formats numbers for the page: three digits, a narrow no-break space, the unit."""

from __future__ import annotations

import math
import re

from markupsafe import Markup, escape

from osbench.coordinator.formatting import size

#: Narrow no-break space: a number and its unit stay together.
NARROW = "\u202f"
DASH = "\u2013"

#: Units, and up to which duration each is used, seconds.
_UNITS = (("ns", 1e-9, 999.5e-9), ("µs", 1e-6, 999.5e-6), ("ms", 1e-3, 0.9995), ("s", 1.0, 120.0))
_LONG_S = 120.0
_PROGRAM_UNITS = re.compile(r"(\d) ?(ns|us|µs|ms|s|min|m|h)\b(?!/)")


def significant(number: float, digits: int = 3) -> str:
    """Return a number rounded to `digits` significant digits, with commas: 0.00123, 123,000."""
    if number == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(number)))
    rounded = round(number, places)
    if rounded:
        places = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(0, places)}f}"


def short(number: float, digits: int = 3) -> str:
    """Return a number as `significant` does, without zeros at the end of decimals: 250, 0.5."""
    text = significant(number, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def duration_parts(seconds: float | None, digits: int = 3) -> tuple[str, str]:
    """Return number and unit of a duration, with `digits` digits; a dash and "" for None and NaN.

    From two minutes on the number has two parts: ("2 min 5", "s"), ("3 h 1", "min").
    """
    if seconds is None or math.isnan(seconds):
        return DASH, ""
    if seconds == 0:
        return "0", "s"
    if abs(seconds) >= _LONG_S:
        return _long(seconds)
    unit, scale = next((unit, scale) for unit, scale, end in _UNITS if abs(seconds) < end)
    return significant(seconds / scale, digits), unit


def _long(seconds: float) -> tuple[str, str]:
    sign = "-" if seconds < 0 else ""
    minutes, rest = divmod(round(abs(seconds)), 60)
    if minutes < 120:
        return f"{sign}{minutes}{NARROW}min{NARROW}{rest}", "s"
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours:,}{NARROW}h{NARROW}{minutes}", "min"


def time_text(seconds: float | None, digits: int = 3) -> str:
    """Return a duration with `digits` digits and a unit, such as 12.3 ms; a dash for None, NaN."""
    number, unit = duration_parts(seconds, digits)
    return f"{number}{NARROW}{unit}" if unit else number


def time_markup(seconds: float | None, digits: int = 3) -> Markup:
    """Return a duration with `digits` digits as HTML, its unit grey; a dash for None and NaN."""
    number, unit = duration_parts(seconds, digits)
    return with_unit(number, unit) if unit else escape(number)


def with_unit(number: str, unit: str) -> Markup:
    """Return HTML of a number, then its unit, smaller and grey; both are escaped."""
    return Markup('{}<span class="u">{}{}</span>').format(number, NARROW, unit)


def limit_text(seconds: float) -> str:
    """Return a duration without zeros at the end of the number: 250 ms instead of 250.0 ms."""
    number, unit = duration_parts(seconds)
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return f"{number}{NARROW}{unit}"


def whole(number: float) -> str:
    """Return a number rounded to an integer, with thousands separators."""
    return f"{number:,.0f}"


def plain_number(number: float | None) -> str:
    """Return a number for a spreadsheet: seven digits, no unit or separators; "" for None, NaN."""
    if number is None or math.isnan(number):
        return ""
    return str(number) if isinstance(number, int) else f"{number:.7g}"


def percent_text(share: float | None, digits: int = 2) -> str:
    """Return a fraction (0 to 1) in percent, with up to `digits` digits; a dash for None."""
    if share is None:
        return DASH
    return f"{short(100 * share, digits) if share else 0}{NARROW}%"


def rate_text(rate: float | None) -> str:
    """Return a rate with three digits at most and the unit /s; a dash for None."""
    return DASH if rate is None else f"{short(rate)}{NARROW}/s"


def size_text(number: int) -> str:
    """Return a number of bytes with three digits and a decimal unit: 1.20 MB."""
    return size(number).replace(" ", NARROW)


def spaced_text(text: str) -> str:
    """Return a message with typographic units and signs: 276ms becomes 276 ms, <= becomes ≤."""
    text = _PROGRAM_UNITS.sub(lambda match: f"{match[1]}{NARROW}{_unit(match[2])}", text)
    return text.replace(" %", f"{NARROW}%").replace(" -> ", " → ").replace(" <= ", " ≤ ")


def counted_noun(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, as in "1 task" or "2 tasks".

    `one` is the singular, `many` the plural, by default `one` with an s.
    """
    return f"{whole(number)} {one if number == 1 else many or one + 's'}"


def instant_s(seconds: float) -> str:
    """Return a time on the load's axis, seconds after t0, as text: 250 ms, 12 s, 3:05, 1:02:03."""
    if 0 < abs(seconds) < 0.9995:
        return time_text(seconds)
    if abs(seconds) < 120:
        return f"{short(seconds)}{NARROW}s"
    sign = "-" if seconds < 0 else ""
    minutes, rest = divmod(round(abs(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}:{minutes:02d}:{rest:02d}" if hours else f"{sign}{minutes}:{rest:02d}"


def _unit(name: str) -> str:
    return {"us": "µs", "m": "min"}.get(name, name)
