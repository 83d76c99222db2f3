"""Iterations to inspect: slow ones with a trace, failed ones, and an example per type of error."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from osbench.common.values.histogram import HIGHEST_NS, highest_equivalent, indices
from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix

Ints = NDArray[np.int64]

#: Buckets that keep an exemplar.
EXEMPLARS = 10


@dataclass(frozen=True, kw_only=True, order=True)
class Exemplar:
    """A traced iteration that a report shows as an example of slow iterations."""

    #: Service time in nanoseconds.
    value: int
    iteration: int
    #: 16 bytes.
    trace: bytes


class Exemplars:
    """Keeps the slowest traced iteration of each of the `EXEMPLARS` highest latency buckets.

    Of equally slow iterations, it keeps the lowest number. The result does not depend on the order
    in which iterations were added.
    """

    __slots__ = ("_floor", "_kept")

    def __init__(self) -> None:
        #: By position in the histogram's counts.
        self._kept: dict[int, Exemplar] = {}
        #: No value below this, in nanoseconds, can be among the top buckets any more.
        self._floor = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exemplars) and self._kept == other._kept

    __hash__ = None  # type: ignore[assignment]  # it changes

    def add(self, values: Ints, iterations: Ints, traces: NDArray[np.uint8]) -> None:
        """Keep the slowest of these traced iterations by bucket; forget iterations they displace.

        `values`: service times in ns; `traces`: an id of 16 bytes in each row.
        """
        slow = np.flatnonzero(values >= self._floor)
        if not len(slow):
            return
        found = values[slow].clip(0, HIGHEST_NS)
        index = indices(found, int(found.min()))
        # slowest first, so that the first of a bucket is the one to keep
        order = np.lexsort((iterations[slow], -found))
        tops, first = np.unique(index[order], return_index=True)
        for top, at in zip(
            tops[-EXEMPLARS:].tolist(), order[first[-EXEMPLARS:]].tolist(), strict=True
        ):
            row = slow[at]
            exemplar = Exemplar(
                value=int(found[at]), iteration=int(iterations[row]), trace=traces[row].tobytes()
            )
            self._offer(top, exemplar)
        self._trim()

    def slowest(self) -> list[Exemplar]:
        """Return the kept iterations, slowest first; empty if no iteration was traced."""
        return [self._kept[top] for top in sorted(self._kept, reverse=True)]

    def _offer(self, top: int, new: Exemplar) -> None:
        old = self._kept.get(top)
        if old is None or (-new.value, new.iteration) < (-old.value, old.iteration):
            self._kept[top] = new

    def _trim(self) -> None:
        kept = sorted(self._kept)[-EXEMPLARS:]
        self._kept = {top: self._kept[top] for top in kept}
        if len(kept) == EXEMPLARS:
            self._floor = highest_equivalent(kept[0] - 1) + 1


#: Failed iterations kept one by one.
POINTS = 2000
#: Types of error with an example.
TYPES = 100
#: Bins of time of a type of error.
BINS = 80

#: Fibonacci hashing (Knuth, The Art of Computer Programming, section 6.4): which iterations
#: are kept must not depend on the order they came in.
_HASH = np.uint64(0x9E3779B97F4A7C15)


@dataclass(slots=True)
class ErrorExample:
    """All iterations with one type of error: counts over time, and an example to inspect."""

    iteration: int
    #: 16 bytes, empty if no iteration with this error was traced.
    trace: bytes
    #: Nanoseconds after t0: the first and last due time of the iterations.
    first_ns: int
    last_ns: int
    #: Response times over time.
    over_time: LatencyMatrix = field(default_factory=lambda: LatencyMatrix(BINS))

    def to_dict(self) -> dict[str, Any]:
        """Return the example, times and counts per bin as values for msgpack.

        `first_s` and `last_s` are due times after t0, `p50_s` the median response time; seconds.
        `trace_id` is "" without a trace.
        """
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
    """A bounded sample of failed iterations, and an example for each of the first error types.

    The sample has at most `POINTS` iterations, chosen by a hash of their numbers; there are at most
    `TYPES` examples.
    """

    def __init__(self) -> None:
        #: A heap, the hash that goes next first: (-hash, iteration, due, duration).
        self._kept: list[tuple[int, int, int, int]] = []
        self.examples: dict[str, ErrorExample] = {}

    def add(self, iterations: Ints, due: Ints, durations: Ints) -> None:
        """Add failed iterations to the sample, which keeps the lowest hashes.

        Due times (after t0) and durations are in ns.
        """
        hashes = iterations.astype(np.uint64) * _HASH
        if len(self._kept) == POINTS:
            # few of the later iterations are kept
            low = np.flatnonzero(hashes <= np.uint64(-self._kept[0][0]))
            hashes, iterations = hashes[low], iterations[low]
            due, durations = due[low], durations[low]
        columns = (hashes, iterations, due, durations)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for key, *point in rows:
            entry = (-key, *point)
            if len(self._kept) < POINTS:
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
        """Count iterations that failed with the error type `etype`; ignored beyond `TYPES` types.

        There must be at least one. `due` is in ns after t0, `durations` in ns; `traces` has trace
        ids by iteration number, if traced. The example is the lowest traced iteration, else the
        lowest one.
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
        """Return (due s after t0, duration s, iteration number) of the sample, by due time."""
        found = [(due, took, number) for _, number, due, took in self._kept]
        return [(due / 1e9, took / 1e9, number) for due, took, number in sorted(found)]
