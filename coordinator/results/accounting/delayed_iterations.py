"""Number of iterations that delays of the load generator may have met, and when it was late."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix, bounds_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: One number, or one for each stretch of time.
Amount = TypeVar("Amount", float, Floats)

#: Least delay that counts, nanoseconds: timers of event loops are exact to a millisecond.
LEAST_NS = 2_000_000
#: Points of an iteration at which it may be delayed: its start, its end, and one between.
POINTS = 3


def touched_share(late: Amount) -> Amount:
    """Return the share of iterations that may have met a delay at any of `POINTS`.

    `late`: share of the time in which the generator was delayed. Both are 0 to 1.
    """
    return 1 - (1 - late) ** POINTS


def most_delayed_ns(typical_ns: float, lag_ns: Amount) -> Amount:
    """Return the longest time that delays explain: a typical one with `lag_ns` at each point."""
    return typical_ns + POINTS * lag_ns


class LatenessOverTime:
    """Late wake-ups of the worker processes of a load, by time, in bounded memory."""

    def __init__(self) -> None:
        self._lags = LatencyMatrix()
        #: End of the last block of each worker, ns after t0.
        self._until: dict[str, int] = {}

    def add(self, worker: str, until_ns: int, lags: Ints) -> None:
        """Count wake-ups, taken as evenly spread since the last block of the worker.

        `until_ns`: when the last iteration of their block ended, ns after t0. `lags`: their
        latenesses in ns, oldest first.
        """
        from_ns = min(self._until.get(worker, 0), until_ns)
        self._until[worker] = until_ns
        if len(lags):
            instants = np.linspace(from_ns, until_ns, len(lags)).astype(np.int64)
            # punctual ones share a column
            self._lags.add(instants, np.maximum(lags, LEAST_NS // 2))

    def by_bin(self, from_s: float, width_s: float, bins: int) -> tuple[Floats, Floats]:
        """Return arrays by bin of time: share of late wake-ups (0 to 1), greatest lateness (ns).

        `from_s`: begin of the first of `bins` bins, seconds after t0. A wake-up's time is known
        only by its block of results, so each bin has the worst of itself and its neighbours; 0
        without any.
        """
        counts, width = self._lags.counts(), self._lags.width_s
        tops = bounds_of(np.arange(counts.shape[1]) + self._lags.lowest)[1]
        late = counts * (tops > LEAST_NS)
        totals = counts.sum(axis=1)
        share = np.divide(late.sum(axis=1), totals, out=np.zeros(len(counts)), where=totals > 0)
        worst = np.max(np.where(late > 0, tops, 0.0), axis=1, initial=0.0)
        shares, lags = np.zeros(bins), np.zeros(bins)
        for number in range(bins):
            begin = math.floor((from_s + (number - 1) * width_s) / width)
            end = math.ceil((from_s + (number + 2) * width_s) / width)
            around = slice(max(begin, 0), max(end, 0))
            shares[number] = np.max(share[around], initial=0.0)
            lags[number] = np.max(worst[around], initial=0.0)
        return shares, lags
