"""Synthetic runs: the latencies of a queue with one server (M/M/1), whose percentiles are known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.statistics.latency_matrix import LatencyMatrix

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Queue:
    """Arrivals and service times are exponential; latency is waiting time plus service time."""

    #: Arrivals a second.
    rate: float = 100.0
    #: Share of time that the server is busy.
    load: float = 0.5
    #: Seconds of a run.
    duration_s: float = 200.0

    @property
    def service_rate(self) -> float:
        """Services a second."""
        return self.rate / self.load

    def percentile_s(self, percent: float) -> float:
        """The true percentile of latency: it is exponential, too."""
        return -math.log(1 - percent / 100) / (self.service_rate - self.rate)

    def run(self, random: np.random.Generator, slower: float = 1.0) -> tuple[Ints, Ints]:
        """Arrivals and latencies in nanoseconds of a run of a server that is `slower` times slow.

        The queue is in equilibrium at the start (Lindley's recursion, begun long before it).
        """
        before_s = max(20.0, 20 / self.service_rate / (1 - math.sqrt(self.load)) ** 2)
        number = int((before_s + self.duration_s) * self.rate * 1.1) + 100
        arrivals = np.cumsum(random.exponential(1 / self.rate, number))
        services = random.exponential(slower / self.service_rate, number)
        steps = np.concatenate(([0.0], np.cumsum(services[:-1] - np.diff(arrivals))))
        latencies = steps - np.minimum.accumulate(steps) + services
        kept = (arrivals >= before_s) & (arrivals < before_s + self.duration_s)
        instants = ((arrivals[kept] - before_s) * 1e9).astype(np.int64)
        return instants, (latencies[kept] * 1e9).astype(np.int64)

    def matrix(self, random: np.random.Generator, slower: float = 1.0) -> LatencyMatrix:
        """The same as a run keeps it."""
        found = LatencyMatrix()
        found.add(*self.run(random, slower))
        return found
