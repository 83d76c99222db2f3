"""Makes the message on the result of a search for the capacity: the highest rate within the SLA."""

from __future__ import annotations

from osbench.common.plugin.runner import Capacity
from osbench.coordinator.formatting import three_digits


def sentence(found: Capacity, why: str) -> str:
    """Return the result of a search as a message: the capacity with interval, or a bound of it.

    Also says if the search did not end, or had no trial. `why`: cause at the lowest rate that
    failed, or "".
    """
    at_broke = (
        f"; at {three_digits(found.broke)}/s {why}" if found.broke is not None and why else ""
    )
    if found.rate is None or found.low is None or found.high is None:
        known = capacity_bound(found.held, found.broke, found.advice)
        if not known:
            return "the search ended before its first trial"
        begun = "the search did not end; so far " if found.kind == "unfinished" else ""
        return f"{begun}{known}{at_broke}"
    between = f"between {three_digits(found.low)} and {three_digits(found.high)}/s with 95 %"
    if found.kind == "unfinished":
        return f"the search did not end; so far {between}{at_broke}"
    wide = "" if found.precise else ", less precise than requested"
    return f"capacity {three_digits(found.rate)}/s, {between}{wide}{at_broke}"


def capacity_bound(held: float | None, broke: float | None, advice: str) -> str:
    """Return "at least RATE/s, ..." if `held` is a number, else "below RATE/s, ..."; or "".

    `held`: highest sustained rate, `broke`: lowest failed rate, per second; "" if both are None.
    `advice`, if any, is appended.
    """
    what_to_do = f": {advice}" if advice else ""
    if held is not None:
        return f"at least {three_digits(held)}/s, the highest rate that was tried{what_to_do}"
    if broke is not None:
        return f"below {three_digits(broke)}/s, the lowest rate that was tried{what_to_do}"
    return ""
