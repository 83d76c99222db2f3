"""Drift of latency at a constant load: a trend, and whether it began before the overload.

A trend is judged by the test of Mann (Econometrica 13, 1945) and Kendall, and its slope is the
median of the slopes of all pairs (Theil, 1950; Sen, Journal of the American Statistical Association
63, 1968). Both are of the logarithms of medians, so that a few odd blocks of time do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

#: Blocks of time without which there is no trend.
FEWEST = 8
#: Normal deviate from which a trend is one; and if latency is a little higher than before anyway,
#: by less than `LITTLE`, so that the trend only says why.
CLEAR, LIKELY = 3.0, 1.7
LITTLE = 2.0
#: Growth over the observation that means something: a twentieth.
LEAST_GROWTH = 1.05
#: Latency that falls by less is not on its way down: the queue of a service that is stuck sways.
LEAST_FALL = 0.85
#: A trend leads back to a level if it meets it within these factors.
_LOWEST, _HIGHEST = 0.5, 1.25


@dataclass(frozen=True, kw_only=True)
class TimedBlock:
    """The median latency of a block of time at a constant load."""

    #: Middle of the block, seconds after t0, and arrivals from t0 until then.
    at_s: float
    arrivals: float
    p50_s: float


@dataclass(frozen=True, kw_only=True)
class LatencyTrend:
    """The trend of medians: its normal deviate, and its factor from the first block to the last."""

    deviate: float
    factor: float

    def grows(self, *, is_higher: bool = False) -> bool:
        """Return whether latency grows, by chance in 1 of 700 loads at most.

        `is_higher`: it is a little higher than before anyway; then in 1 of 20.
        """
        needed = LIKELY if is_higher else CLEAR
        return self.deviate >= needed and self.factor >= LEAST_GROWTH

    @property
    def may_grow(self) -> bool:
        """Return whether latency grows a little, which may be by chance."""
        return self.factor >= 1 + (LEAST_GROWTH - 1) / 2

    @property
    def falls(self) -> bool:
        """Return whether latency falls so that it may be low soon."""
        return self.deviate <= -CLEAR and self.factor <= LEAST_FALL


def trend_of(blocks: Sequence[TimedBlock]) -> LatencyTrend | None:
    """Return the trend of blocks in their order of time; None for fewer than `FEWEST`."""
    number = len(blocks)
    if number < FEWEST:
        return None
    logs = [math.log(max(one.p50_s, 1e-9)) for one in blocks]
    signs = sum((later > one) - (later < one) for one, later in combinations(logs, 2))
    spread = math.sqrt(number * (number - 1) * (2 * number + 5) / 18)
    slope = _slope([one.at_s for one in blocks], logs)
    return LatencyTrend(
        deviate=signs / spread, factor=math.exp(slope * (blocks[-1].at_s - blocks[0].at_s))
    )


def leads_back(before: Sequence[TimedBlock], after: Sequence[TimedBlock]) -> bool:
    """Return whether growth after an overload, continued backwards, meets the level before it.

    The growth is by time or by the number of arrivals, whichever meets it better. A queue that the
    overload has left grows from a level that no trend leads back from.
    """
    if not before or len(after) < FEWEST:
        return False
    level = median(math.log(max(one.p50_s, 1e-9)) for one in before)
    logs = [math.log(max(one.p50_s, 1e-9)) for one in after]
    for name in ("at_s", "arrivals"):
        places = [getattr(one, name) for one in after]
        slope = _slope(places, logs)
        start = median(log - slope * place for log, place in zip(logs, places, strict=True))
        met = start + slope * median(getattr(one, name) for one in before)
        if slope > 0 and math.log(_LOWEST) <= met - level <= math.log(_HIGHEST):
            return True
    return False


def _slope(places: Sequence[float], logs: Sequence[float]) -> float:
    pairs = combinations(zip(places, logs, strict=True), 2)
    return median((b - a) / (q - p) for (p, a), (q, b) in pairs if q > p)
