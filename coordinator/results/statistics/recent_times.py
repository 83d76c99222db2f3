"""Computes results of a workload over about its last ten seconds, from cumulative sums."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from osbench.common.values.histogram import Histogram, rank

#: Seconds that the figures cover at least, once the load lasts so long.
WINDOW_S = 10.0

#: Exception type, message and traceback.
Error = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Cumulative results of a workload at the time `at_s`, monotonic seconds."""

    at_s: float
    #: Iterations that ran, and iterations that failed or timed out.
    ran: int
    failed: int
    #: Times of iterations that ended well; never changed.
    times: Histogram
    #: Failed iterations by error.
    errors: Mapping[Error, int]


class RecentTimes:
    """Figures of a workload over at least its last `WINDOW_S` seconds, or since its first sums."""

    def __init__(self) -> None:
        self._sums: deque[Sums] = deque()

    def add(self, sums: Sums) -> None:
        """Add the latest sums; delete old sums that the window does not need any more."""
        self._sums.append(sums)
        # the last one that is old enough stays: the figures are over at least that time
        while len(self._sums) > 2 and sums.at_s - self._sums[1].at_s >= WINDOW_S:
            self._sums.popleft()

    @property
    def span_s(self) -> float:
        """Seconds that the figures cover; 0 before there are two sums."""
        return self._sums[-1].at_s - self._sums[0].at_s if self._sums else 0.0

    @property
    def ran(self) -> int:
        """Number of iterations that ended within the window, whatever their outcome."""
        return self._sums[-1].ran - self._sums[0].ran if self._sums else 0

    @property
    def failed(self) -> int:
        """Number of iterations that failed or timed out within the window."""
        return self._sums[-1].failed - self._sums[0].failed if self._sums else 0

    def percentiles_s(self, *percents: float) -> list[float | None]:
        """Return percentiles (0 to 100), in seconds, of the window's successful iterations.

        They have the order of `percents`; all are None if no iteration succeeded.
        """
        found = self._sums[-1].times.since(self._sums[0].times) if self._sums else Histogram()
        if not found.count:
            return [None] * len(percents)
        ranks = [rank(found.count, percent) for percent in percents]
        return [value / 1e9 for value in found.at_ranks(ranks)]

    def most_frequent_error(self) -> Error | None:
        """Return (type, message, traceback) of the window's most frequent error, or None."""
        if not self._sums:
            return None
        before = self._sums[0].errors
        gained = {
            error: count - before.get(error, 0) for error, count in self._sums[-1].errors.items()
        }
        most = max(gained, key=lambda error: gained[error], default=None)
        return most if most is not None and gained[most] > 0 else None
