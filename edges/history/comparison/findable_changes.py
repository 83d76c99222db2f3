"""The smallest changes that a comparison of runs would have shown, in words."""

from __future__ import annotations

from collections.abc import Sequence

from osbench.coordinator.formatting import three_digits

#: A test finds nothing if the least change that it would find is above this part: a hundredfold.
UNFINDABLE = 99.0


def findable_sentence(changes: Sequence[tuple[float, str]]) -> str:
    """Return a message, with a space before it, on the changes that such runs would have shown.

    It advises more runs if only an enormous change could be found. "" without a test.
    `changes`: for each percentile the least change that is found in 80 % of comparisons, as a part
    of it, and its name.
    """
    known = sorted(changes)
    if not known:
        return ""
    (least, surest), (most, vaguest) = known[0], known[-1]
    if least > UNFINDABLE:
        return " With so few runs only an enormous change can be found. Make more runs."
    found = f" A change of {signed_percent(1 + least).lstrip('+')} of {surest}"
    if len(known) > 1:
        found += f", and of {signed_percent(1 + most).lstrip('+')} of {vaguest},"
    return f"{found} would have been found in 80 % of such comparisons."


def signed_percent(ratio: float) -> str:
    """Return a ratio (after / before) as a change in percent, such as +12 % or -3.4 %.

    From +1000 % on, as a factor, such as x 12.
    """
    change = 100 * (ratio - 1)
    if abs(change) >= 1000:
        return f"x {three_digits(ratio)}"
    return f"{change:+.1f} %" if abs(change) < 9.95 else f"{change:+.0f} %"
