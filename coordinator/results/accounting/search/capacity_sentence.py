"""Makes the message on the result of a search for the capacity: the highest load within the SLA."""

from __future__ import annotations

from osbench.common.plugin.runner import Capacity
from osbench.coordinator.formatting import count, three_digits


def load_text(load: float, unit: str) -> str:
    """Return a load of a search with its unit: "40.0/s", or "12 users" if `unit` is "users"."""
    return count(round(load), "user") if unit == "users" else f"{three_digits(load)}/s"


def range_text(low: float, high: float, unit: str, between: str = "and") -> str:
    """Return two loads with `between` and one unit: "38.1 and 42.0/s", "11 and 13 users"."""
    first = f"{round(low):,}" if unit == "users" else three_digits(low)
    return f"{first} {between} {load_text(high, unit)}"


def kind_text(unit: str) -> str:
    """Return a noun for one load of a search: "rate", or "number of users"."""
    return "number of users" if unit == "users" else "rate"


def sentence(found: Capacity, why: str) -> str:
    """Return the result of a search as a message: the capacity with interval, or a bound of it.

    Also says if the search did not end, or had no trial. `why`: cause at the lowest load that
    failed, or "".
    """
    unit = found.unit
    at_broke = (
        f"; at {load_text(found.broke, unit)} {why}" if found.broke is not None and why else ""
    )
    if found.rate is None or found.low is None or found.high is None:
        known = capacity_bound(found)
        if not known:
            return "the search ended before its first trial"
        begun = "the search did not end; so far " if found.kind == "unfinished" else ""
        return f"{begun}{known}{at_broke}"
    between = f"between {range_text(found.low, found.high, unit)} with 95 %"
    if found.kind == "unfinished":
        return f"the search did not end; so far {between}{at_broke}"
    wide = "" if found.precise else ", less precise than requested"
    return f"capacity {load_text(found.rate, unit)}, {between}{wide}{at_broke}"


def capacity_bound(found: Capacity) -> str:
    """Return "at least LOAD, ..." if a load was sustained, "below LOAD, ..." if none was; or "".

    "" without a trial. Its advice, if any, is appended.
    """
    what_to_do, tried = f": {found.advice}" if found.advice else "", kind_text(found.unit)
    if found.held is not None:
        held = load_text(found.held, found.unit)
        return f"at least {held}, the highest {tried} that was tried{what_to_do}"
    if found.broke is not None:
        broke = load_text(found.broke, found.unit)
        return f"below {broke}, the lowest {tried} that was tried{what_to_do}"
    return ""
