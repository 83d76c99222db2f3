"""Selects slow and ordinary traces by their quantiles among all successful ones."""

from __future__ import annotations

import re

import numpy as np

from osbench.coordinator.traces.analysis.features import Features, Ints

#: Least number of slow traces for an explanation.
ENOUGH = 30

#: Percentiles: the range of ordinary traces; the least and the greatest start of the slow ones.
MIDDLE = (40, 60)
LEAST, MOST = 95, 99

#: A trace is an outlier if its distance from the middle is more than this many times that of the
#: median slow trace: hardly one in a thousand of an exponential or lognormal tail is.
_FAR = 3.0
#: Largest share of the slow traces that count as outliers; if there are more, none does.
_FEW = 0.2

_NAME = re.compile(r"p(\d{1,2})(?:\+|-p(\d{1,2}))\Z")


def slow_bands(count: int) -> list[str]:
    """Return names of the bands to explain for a number of traces, the most important one first.

    The first has the slowest 1 %, or up to 5 % if those are not enough.
    """
    first = MOST
    while first > LEAST and count - _place(count, first) < ENOUGH:
        first -= 1
    return [f"p{first}+", *([f"p{LEAST}-p{first}"] if first > LEAST else [])]


def limits(name: str) -> tuple[int, int]:
    """Return percentiles that bound a band: `p97+`, `p95-p97` or `middle`. Raises ValueError."""
    if name == "middle":
        return MIDDLE
    found = _NAME.match(name)
    low, high = (int(found[1]), int(found[2] or 100)) if found else (0, 0)
    if low >= high:
        raise ValueError(f"{name!r} is not a band: write middle, failed, p97+ or p95-p97")
    return low, high


def cut(ordered: Ints, low: int, high: int) -> Ints:
    """Return the traces between two percentiles, of traces ordered fastest first."""
    count = len(ordered)
    return ordered[_place(count, low) : _place(count, high)]


def usable(features: Features, rows: Ints) -> Ints:
    """Return the traces that can be compared: the complete ones, or all if most are incomplete."""
    whole = rows[features.whole[rows]]
    # if most traces are incomplete, parts are missing systematically
    return whole if 2 * len(whole) >= len(rows) else rows


def far_out(features: Features, ordered: Ints) -> int:
    """Return the number of outliers among the slowest traces, of traces ordered fastest first.

    A few very long traces, such as the first requests to an idle service, would dominate the means
    and hide the cause of all other slow ones.
    """
    slow = features.total[cut(ordered, *limits(slow_bands(len(ordered))[0]))]
    if len(slow) < ENOUGH:
        return 0
    middle = float(np.median(features.total[cut(ordered, *MIDDLE)]))
    found = int((slow - middle > _FAR * (float(np.median(slow)) - middle)).sum())
    return found if found <= _FEW * len(slow) else 0


def _place(count: int, percent: int) -> int:
    return -(-count * percent // 100)
