"""Which traces are slow and which are ordinary, by where they lie among all that succeeded."""

from __future__ import annotations

import re

import numpy as np

from osbench.coordinator.traces.analysis.features import Features, Ints

#: Slow traces without which nothing is said of them.
ENOUGH = 30

#: Percent; the ordinary ones, and where slow ones begin at the earliest and at the latest.
MIDDLE = (40, 60)
LEAST, MOST = 95, 99

#: Beyond the middle by more than this many times what the median slow trace is, a trace is slow
#: for a reason of its own: of exponential and lognormal tails hardly one in a thousand goes so far.
_FAR = 3.0
#: Share of the slow ones which may stand so far apart; where there are more they are no exceptions.
_FEW = 0.2

_NAME = re.compile(r"p(\d{1,2})(?:\+|-p(\d{1,2}))\Z")


def slow_bands(count: int) -> list[str]:
    """Names of the bands to explain of so many traces, the one to speak of first.

    The first holds the slowest 1 %, or, as long as those are not enough, up to 5 %.
    """
    first = MOST
    while first > LEAST and count - _place(count, first) < ENOUGH:
        first -= 1
    return [f"p{first}+", *([f"p{LEAST}-p{first}"] if first > LEAST else [])]


def limits(name: str) -> tuple[int, int]:
    """Percents between which a band lies: `p97+`, `p95-p97` or `middle`. Raises ValueError."""
    if name == "middle":
        return MIDDLE
    found = _NAME.match(name)
    low, high = (int(found[1]), int(found[2] or 100)) if found else (0, 0)
    if low >= high:
        raise ValueError(f"{name!r} is no band: middle, failed, p97+ or p95-p97 would be")
    return low, high


def cut(ordered: Ints, low: int, high: int) -> Ints:
    """Those between two percents of some traces, fastest first."""
    count = len(ordered)
    return ordered[_place(count, low) : _place(count, high)]


def usable(features: Features, rows: Ints) -> Ints:
    """Those of some traces that can be compared: the whole ones, all where most are not."""
    whole = rows[features.whole[rows]]
    # where hardly a trace is whole, what they lack is not a matter of chance
    return whole if 2 * len(whole) >= len(rows) else rows


def far_out(features: Features, ordered: Ints) -> int:
    """How many of the slowest of some traces, fastest first, are no part of their tail.

    A handful of very long ones, such as the first that wake a service up, would be most of any
    mean, and hide what makes all other slow ones slow.
    """
    slow = features.total[cut(ordered, *limits(slow_bands(len(ordered))[0]))]
    if len(slow) < ENOUGH:
        return 0
    middle = float(np.median(features.total[cut(ordered, *MIDDLE)]))
    found = int((slow - middle > _FAR * (float(np.median(slow)) - middle)).sum())
    return found if found <= _FEW * len(slow) else 0


def _place(count: int, percent: int) -> int:
    return -(-count * percent // 100)
