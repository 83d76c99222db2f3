"""Iterations of a phase of a drill, counted by bin of time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.delayed_iterations import LatenessOverTime
from osbench.coordinator.results.statistics.latency_matrix import (
    Extent,
    LatencyMatrix,
    bounds_of,
    buckets_of,
)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Code of iterations that failed because the load generator lacked resources.
LACKING = max(Outcome) + 1
#: Codes of iterations that the load generator has failed, not the service.
OWN = [Outcome.DROPPED_LATE, LACKING]
CODES = LACKING + 1
#: Share of late wake-ups from which a bin of time does not show what is usual.
_LATE = 0.05


class PhaseRows:
    """Counts iterations by bin of due time: outcomes, and response times of successes.

    Has the iterations of one phase, or of all phases since the fault.
    """

    def __init__(
        self, outcomes: LatencyMatrix | None = None, response: LatencyMatrix | None = None
    ) -> None:
        #: Codes of outcomes take the place of buckets.
        self.outcomes = outcomes or LatencyMatrix()
        self.response = response or LatencyMatrix()
        #: Resources left in error: due time (ns), iteration, kind and number of resources.
        self.left = np.zeros((0, 4), np.int64)

    def add(self, instants: Ints, outcome: NDArray[np.uint8], response: Ints) -> None:
        """Count iterations: due times (ns after the phase's time 0), outcome codes, response times.

        Response times are in ns.
        """
        if not len(instants):
            return
        self.outcomes.add_buckets(Extent.of(instants), Extent.of(outcome.astype(np.int64)))
        well = outcome == Outcome.OK
        if well.any():
            times = buckets_of(response[well])
            self.response.add_buckets(Extent.of(instants[well]), Extent.of(times))

    def between(self, begin_s: float, end_s: float) -> PhaseRows:
        """Return a copy with the iterations due between two times (s), rounded to bins.

        `begin_s` is time 0 of the copy.
        """
        found = PhaseRows(
            self.outcomes.between(begin_s, end_s), self.response.between(begin_s, end_s)
        )
        inside = (self.left[:, 0] >= begin_s * 1e9) & (self.left[:, 0] < end_s * 1e9)
        found.left = self.left[inside]
        found.left[:, 0] -= round(begin_s * 1e9)
        return found

    def punctual(self, lateness: LatenessOverTime) -> PhaseRows:
        """Return a copy without bins of time in which the load generator was late.

        Its bins are next to each other, and it has no rows in `left`. Time 0 has to be t0.
        """
        return PhaseRows(*(_punctual(one, lateness) for one in (self.outcomes, self.response)))

    def leaving(self) -> Ints:
        """Return the number of iterations that left resources in error or changing, by bin."""
        counts = self.counts()
        if not len(counts) or not len(self.left):
            return counts * 0
        instants = self.left[np.unique(self.left[:, 1], return_index=True)[1], 0]
        bins = np.minimum(instants // round(self.width_s * 1e9), len(counts) - 1)
        return np.minimum(np.bincount(bins, minlength=len(counts)), counts)

    @property
    def width_s(self) -> float:
        """Width of a bin of time, in seconds."""
        return self.outcomes.width_s

    def by_code(self) -> Ints:
        """Return counts of iterations: a row per bin of time, a column per code of outcome."""
        counts = self.outcomes.counts()
        found = np.zeros((len(counts), CODES), np.int64)
        columns = min(CODES, counts.shape[1])
        found[:, :columns] = counts[:, :columns]
        return found

    def bad(self) -> Ints:
        """Return the number of failed, timed out and dropped iterations in each bin."""
        found: Ints = self.by_code()[:, Outcome.OK + 1 :].sum(axis=1)
        return found

    def counts(self) -> Ints:
        """Return the number of iterations in each bin of due time."""
        return self.outcomes.by_time()

    def own(self) -> Ints:
        """Return the number of bad iterations in each bin that the load generator has failed."""
        found: Ints = self.by_code()[:, OWN].sum(axis=1)
        return found

    def well(self) -> Ints:
        """Return the number of successful iterations in each bin."""
        found: Ints = self.by_code()[:, Outcome.OK]
        return found

    def slow(self, limit_ns: float, most_ns: float | Floats = math.inf) -> Ints:
        """Return the number of successes in each bin that took `limit_ns` or more.

        `most_ns`: longer ones are left out; a number for all bins, or one for each. Response times
        count as the lower bounds of their buckets.
        """
        response = self.response
        counts = response.counts()
        low = bounds_of(np.arange(counts.shape[1]) + response.lowest)[0]
        # fewer iterations reach less far, so that their bins may be narrower
        counts = together(counts, round(self.width_s / response.width_s))
        most = np.broadcast_to(most_ns, self.outcomes.used)[: len(counts), None]
        found = np.zeros(self.outcomes.used, np.int64)
        found[: len(counts)] = np.sum(counts, axis=1, where=(low >= limit_ns) & (low <= most))
        return found


def _punctual(matrix: LatencyMatrix, lateness: LatenessOverTime) -> LatencyMatrix:
    late, _ = lateness.by_bin(0.0, matrix.width_s, matrix.used)
    return matrix.with_bins(late < _LATE)


def together(counts: Ints, times: int) -> Ints:
    """Return the sums of groups of `times` successive bins; the last group may be smaller."""
    if times <= 1 or not len(counts):
        return counts
    found: Ints = np.add.reduceat(counts, np.arange(0, len(counts), times))
    return found
