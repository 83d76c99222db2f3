"""Selects slow and ordinary traces by their percentiles among all successful ones."""

from __future__ import annotations

import re

import numpy as np

from osbench.edges.traces.analysis.features import Features, Ints

#: Least number of slow traces for an explanation.
ENOUGH = 30

#: Percentiles: the range of ordinary traces; the least and the greatest start of slow traces.
MIDDLE = (40, 60)
LEAST, MOST = 95, 99

#: A trace is an outlier if its distance from the middle is more than this many times that of the
#: median slow trace: hardly one in a thousand of an exponential or lognormal tail is.
_FAR = 3.0
#: Largest fraction of the slow traces that count as outliers; if there are more, none does.
_FEW = 0.2

_NAME = re.compile(r"p(\d{1,2})(?:\+|-p(\d{1,2}))\Z")


def slow_bands(count: int) -> list[str]:
    """Return the names of the bands of slow traces to explain, in order of importance.

    `count` is the number of traces. With enough of them "p99+", then "p95-p99". If the slowest 1 %
    are fewer than `ENOUGH`, the first band begins at a lower percentile, down to "p95+", which is
    then the only band.
    """
    first = MOST
    while first > LEAST and count - _place(count, first) < ENOUGH:
        first -= 1
    return [f"p{first}+", *([f"p{LEAST}-p{first}"] if first > LEAST else [])]


def limits(name: str) -> tuple[int, int]:
    """Return the percentiles (low, high), 0 to 100, of a band: `p97+`, `p95-p97` or `middle`.

    Raises ValueError for another name.
    """
    if name == "middle":
        return MIDDLE
    found = _NAME.match(name)
    low, high = (int(found[1]), int(found[2] or 100)) if found else (0, 0)
    if low >= high:
        raise ValueError(f"{name!r} is not a band; write middle, failed, p97+ or p95-p97")
    return low, high


def rows_between(ordered: Ints, low: int, high: int) -> Ints:
    """Return the part of `ordered` (rows, fastest first) from percentile `low` up to `high`."""
    count = len(ordered)
    return ordered[_place(count, low) : _place(count, high)]


def usable(features: Features, rows: Ints) -> Ints:
    """Return the part of `rows` with complete traces; all if more than half are incomplete.

    A trace is complete if every span has start and stop.
    """
    whole = rows[features.whole[rows]]
    # if most traces are incomplete, parts are missing systematically
    return whole if 2 * len(whole) >= len(rows) else rows


def far_out(features: Features, ordered: Ints) -> int:
    """Return how many of the last rows in `ordered` (fastest first) are outliers.

    A few very long traces, such as the first requests to an idle service, would dominate the means
    and hide the cause of all other slow ones. 0 if there are many, which are not outliers, or
    too few slow rows.
    """
    slow = features.total[rows_between(ordered, *limits(slow_bands(len(ordered))[0]))]
    if len(slow) < ENOUGH:
        return 0
    middle = float(np.median(features.total[rows_between(ordered, *MIDDLE)]))
    found = int((slow - middle > _FAR * (float(np.median(slow)) - middle)).sum())
    return found if found <= _FEW * len(slow) else 0


def _place(count: int, percent: int) -> int:
    return -(-count * percent // 100)
