"""Divides the counts of a run into blocks of time, to see how much a percentile's rank varies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Blocks of the finer and of the coarser division.
FINE, COARSE = 40, 20
#: Fewest blocks for any result: four seconds of bins of a quarter of a second.
FEWEST = 16
#: Correlation of neighbours beyond which blocks do not show how long dependence lasts.
_MOST = 0.9
#: Independent blocks at least that Student's t is taken for, less one.
_LEAST_FREEDOM = 2.0


@dataclass(frozen=True)
class Division:
    """Counts of a run's iterations by block of time, and cumulated by bucket of latency."""

    #: Iterations of each block.
    sizes: Floats
    #: Iterations of each block in a bucket or below.
    below: Ints

    @property
    def blocks(self) -> int:
        """Number of blocks of the finer division, from `FEWEST` to `FINE`."""
        return len(self.sizes)

    def deviations(self, share: float) -> Floats:
        """Return each block's number of iterations below a percentile, minus the expected one.

        The percentile is of the whole run: the fraction `share` (0 to 1) of all iterations lies
        below it, and as much is expected of each block. Linear within a bucket.
        """
        sums = self.below.sum(axis=0)
        wanted = share * float(sums[-1])
        column = int(np.searchsorted(sums, wanted))
        below = self.below[:, column].astype(np.float64)
        before = self.below[:, column - 1] if column else np.zeros(self.blocks)
        inside = float(below.sum() - before.sum())
        if inside > 0:
            below = before + (below - before) * ((wanted - before.sum()) / inside)
        found: Floats = below - share * self.sizes
        return found

    def variances(self, share: float) -> Iterator[tuple[float, float]]:
        """Yield (variance, degrees of freedom) of a percentile's rank, for each division.

        The finer division first, then the coarser, if it differs. `share`: the percentile as a
        fraction 0 to 1.
        """
        fine = self.deviations(share)
        yield _variance(fine)
        if self.blocks > COARSE:
            yield _variance(coarser(fine))


def division_of(counts: Ints) -> Division | None:
    """Divide a run into up to `FINE` blocks of time; None if there are fewer than `FEWEST` bins.

    `counts` has a row per bin of time and a column per bucket of latency.
    """
    if len(counts) < FEWEST:
        return None
    blocks = min(FINE, len(counts))
    by_block = np.add.reduceat(counts, np.arange(blocks) * len(counts) // blocks, axis=0)
    below = np.cumsum(by_block, axis=1)
    return Division(sizes=below[:, -1].astype(np.float64), below=below)


def coarser(values: Floats) -> Floats:
    """Return the sums of `COARSE` groups of successive values; there must be at least `COARSE`."""
    found: Floats = np.add.reduceat(values, np.arange(COARSE) * len(values) // COARSE)
    return found


def correlation(values: Floats) -> float:
    """Return the correlation of neighbouring blocks, 0 to `_MOST`, corrected for few blocks.

    `values`: deviations by block. Of n blocks of a process with coefficient r, it comes out as r -
    (1 + 4 r) / n (Marriott and Pope, Biometrika 41, 1954). If dependence lasts long, it is still
    too low in the runs that saw little of it: its square is added, which was measured. 0 if all
    values are 0.
    """
    power = float(values @ values)
    if power <= 0:
        return 0.0
    size = len(values)
    found = (float(values[1:] @ values[:-1]) / power + 1 / size) / (1 - 4 / size)
    found = max(found, 0.0)
    return min(found + found * found, _MOST)


def _variance(values: Floats) -> tuple[float, float]:
    size, by = len(values), correlation(values)
    variance = size / (size - 1) * float(values @ values) * (1 + by) / (1 - by)
    freedom = (size - 1) * (1 - by * by) / (1 + by * by)
    return variance, max(freedom, _LEAST_FREEDOM)
