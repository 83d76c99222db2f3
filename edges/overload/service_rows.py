"""Iterations of a phase, in which a drop is never the service's: the generator did not start it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from osbench.common.protocol.columns import Columns
from osbench.common.protocol.exchanges import sent_twice
from osbench.common.values.outcomes import DROP_REASONS, Outcome
from osbench.coordinator.results.accounting.drill_rows import LACKING, PhaseRows
from osbench.coordinator.results.statistics.latency_matrix import percentiles_of

Ints = NDArray[np.int64]

_OWN = [*DROP_REASONS, LACKING]
_RAN = [Outcome.OK, Outcome.FAILED, Outcome.TIMED_OUT]


class ServiceRows(PhaseRows):
    """Counts iterations by bin of due time, with service times instead of response times.

    All drops are the generator's own: an arrival that waits in osbench, for a free user or
    until the process wakes up, is not in a queue of the service.
    """

    def own(self) -> Ints:
        """Return the number of iterations in each bin that never reached the service."""
        found: Ints = self.by_code()[:, _OWN].sum(axis=1)
        return found

    def ran(self) -> Ints:
        """Return the number of iterations in each bin that ran, without lacking resources."""
        found: Ints = self.by_code()[:, _RAN].sum(axis=1)
        return found

    def between(self, begin_s: float, end_s: float) -> ServiceRows:
        """Return a copy with the iterations due between two times (s), rounded to bins."""
        return ServiceRows(
            self.outcomes.between(begin_s, end_s), self.response.between(begin_s, end_s)
        )

    def percentiles_s(self, *percents: float) -> list[float | None]:
        """Return percentiles (0 to 100) of service times of successes, seconds; None without."""
        if not self.response.total:
            return [None] * len(percents)
        sums = self.response.summed()
        return [one / 1e9 for one in percentiles_of(sums, self.response.lowest, percents)]

    def blocks(self, number: int) -> Iterator[tuple[float, ServiceRows]]:
        """Yield `number` equal stretches of time: the middle of each (s), and its iterations.

        Fewer if there are fewer bins of time; the last may be shorter.
        """
        bins = len(self.counts())
        each = max(1, -(-bins // number))
        for begin in range(0, bins, each):
            end = min(begin + each, bins)
            span = begin * self.width_s, end * self.width_s
            yield sum(span) / 2, self.between(*span)


def with_service_times(columns: Columns) -> Columns:
    """Return rows whose response time is the service time: they end as if started when due."""
    late = np.where(columns.outcome <= Outcome.TIMED_OUT, columns.started - columns.due, 0)
    return replace(columns, ended=columns.ended - late)


@dataclass(kw_only=True)
class StretchSums:
    """Sums over the iterations of one stretch of a load."""

    #: All arrivals, also dropped ones.
    arrivals: int = 0
    #: Iterations that ran, and nanoseconds from their start to their end.
    ran: int = 0
    busy_ns: int = 0
    requests: int = 0
    connections: int = 0

    def add(self, columns: Columns, rows: NDArray[np.bool_]) -> None:
        """Count the rows of a mask; requests that a client sent twice count twice."""
        self.ran += int(np.count_nonzero(rows))
        self.busy_ns += int((columns.ended - columns.started)[rows].sum())
        exchanges = columns.exchanges[rows[columns.exchanged]]
        if len(exchanges):
            twice = int(np.count_nonzero(sent_twice(exchanges["client"])))
            self.requests += len(exchanges) + twice
            self.connections += int(np.count_nonzero(exchanges["connect"] > 0))

    def __add__(self, other: StretchSums) -> StretchSums:
        """Return the sums of both."""
        return StretchSums(
            arrivals=self.arrivals + other.arrivals,
            ran=self.ran + other.ran,
            busy_ns=self.busy_ns + other.busy_ns,
            requests=self.requests + other.requests,
            connections=self.connections + other.connections,
        )

    def per_iteration(self, number: float) -> float:
        """Return a sum divided by the iterations that ran; 0 without any."""
        return number / self.ran if self.ran else 0.0
