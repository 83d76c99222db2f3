"""Failed iterations for charts: a sample of them, and an example of each type of error."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.statistics.latency_matrix import LatencyMatrix

Ints = NDArray[np.int64]

#: Failed iterations kept one by one.
KEPT = 2000
#: Types of error with an example.
TYPES = 100
#: Bins of time of a type of error.
BINS = 80

#: Fibonacci hashing (Knuth, The Art of Computer Programming, section 6.4): which iterations
#: are kept must not depend on the order they came in.
_HASH = np.uint64(0x9E3779B97F4A7C15)


@dataclass(slots=True)
class ErrorExample:
    """One type of error over time, with the iteration to look at."""

    iteration: int
    #: 16 bytes, empty where no iteration with this error was traced.
    trace: bytes
    #: Nanoseconds after t0, of the instants when the iterations were due.
    first_ns: int
    last_ns: int
    #: Response times over time.
    over_time: LatencyMatrix = field(default_factory=lambda: LatencyMatrix(BINS))

    def to_dict(self) -> dict[str, Any]:
        """For msgpack."""
        p50_ns = self.over_time.percentile(50)
        return {
            "iteration": self.iteration,
            "trace_id": str(UUID(bytes=self.trace)) if self.trace else "",
            "first_s": self.first_ns / 1e9,
            "last_s": self.last_ns / 1e9,
            "p50_s": p50_ns / 1e9,
            "bin_s": self.over_time.width_s,
            "counts": self.over_time.by_time().tolist(),
        }


class FailedIterations:
    """Bounded: a sample of points, and one example for each of the first types of error."""

    def __init__(self) -> None:
        #: A heap, the hash that goes next first: (-hash, iteration, due, duration).
        self._kept: list[tuple[int, int, int, int]] = []
        self.examples: dict[str, ErrorExample] = {}

    def add(self, iterations: Ints, due: Ints, durations: Ints) -> None:
        """Offer failed iterations as points: number, instant (ns after t0), nanoseconds."""
        hashes = iterations.astype(np.uint64) * _HASH
        if len(self._kept) == KEPT:
            # few of those that come later are kept
            low = np.flatnonzero(hashes <= np.uint64(-self._kept[0][0]))
            hashes, iterations = hashes[low], iterations[low]
            due, durations = due[low], durations[low]
        columns = (hashes, iterations, due, durations)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for key, *point in rows:
            entry = (-key, *point)
            if len(self._kept) < KEPT:
                heapq.heappush(self._kept, entry)
            elif entry > self._kept[0]:
                heapq.heapreplace(self._kept, entry)

    def add_type(
        self,
        etype: str,
        iterations: Ints,
        due: Ints,
        durations: Ints,
        traces: Mapping[int, bytes],
    ) -> None:
        """Count iterations that ended with a type of error; `traces` of those that have one.

        The example is the traced one with the lowest number, else the lowest.
        """
        example = self.examples.get(etype)
        if example is None and len(self.examples) >= TYPES:
            return
        numbers = iterations.tolist()
        best = min(numbers, key=lambda number: (number not in traces, number))
        trace = traces.get(best, b"")
        first, last = int(due.min()), int(due.max())
        if example is None:
            example = ErrorExample(best, trace, first, last)
            self.examples[etype] = example
        elif (not trace, best) < (not example.trace, example.iteration):
            example.iteration, example.trace = best, trace
        example.first_ns = min(example.first_ns, first)
        example.last_ns = max(example.last_ns, last)
        example.over_time.add(due, durations)

    def points(self) -> list[tuple[float, float, int]]:
        """What is kept, by time: seconds after t0, seconds it took, iteration number."""
        found = [(due, took, number) for _, number, due, took in self._kept]
        return [(due / 1e9, took / 1e9, number) for due, took, number in sorted(found)]
