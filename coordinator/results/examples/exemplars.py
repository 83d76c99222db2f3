"""Exemplars: for the slowest buckets of a histogram, one iteration each with its trace id."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.common.histogram import HIGHEST_NS, highest_equivalent, indices

Ints = NDArray[np.int64]

#: Buckets that keep an exemplar.
KEPT = 10


@dataclass(frozen=True, kw_only=True, order=True)
class Exemplar:
    """A traced iteration that represents the slow ones."""

    #: Service time in nanoseconds.
    value: int
    iteration: int
    #: 16 bytes.
    trace: bytes


class Exemplars:
    """The slowest traced iteration (of equals: the lowest number) of each of the top buckets.

    What is kept depends on what was added, not on the order it came in.
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
        """Offer traced iterations: nanoseconds, numbers, and trace ids of 16 bytes a line."""
        slow = np.flatnonzero(values >= self._floor)
        if not len(slow):
            return
        found = values[slow].clip(0, HIGHEST_NS)
        index = indices(found, int(found.min()))
        # slowest first, so that the first of a bucket is the one to keep
        order = np.lexsort((iterations[slow], -found))
        tops, first = np.unique(index[order], return_index=True)
        for top, at in zip(tops[-KEPT:].tolist(), order[first[-KEPT:]].tolist(), strict=True):
            row = slow[at]
            exemplar = Exemplar(
                value=int(found[at]), iteration=int(iterations[row]), trace=traces[row].tobytes()
            )
            self._offer(top, exemplar)
        self._trim()

    def slowest(self) -> list[Exemplar]:
        """What is kept, slowest first."""
        return [self._kept[top] for top in sorted(self._kept, reverse=True)]

    def _offer(self, top: int, new: Exemplar) -> None:
        old = self._kept.get(top)
        if old is None or (-new.value, new.iteration) < (-old.value, old.iteration):
            self._kept[top] = new

    def _trim(self) -> None:
        kept = sorted(self._kept)[-KEPT:]
        self._kept = {top: self._kept[top] for top in kept}
        if len(kept) == KEPT:
            self._floor = highest_equivalent(kept[0] - 1) + 1
