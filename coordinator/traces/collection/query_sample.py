"""Selects the iterations whose traces are queried, and of what was found an even sample."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from osbench.common.outcomes import Outcome
from osbench.coordinator.traces.collection.retention import EXAMPLE, RANDOM
from osbench.coordinator.traces.collection.traced_iterations import TracedIterations

#: Part of all queries that traces to be kept may take; the rest is a random sample.
_KEPT_SHARE = 4
#: Percentiles of service time that bound the strata whose shares found are compared.
_STRATA = (0, 50, 90, 95, 99, 100)
#: Chi-square statistic with 4 degrees of freedom that chance exceeds once in 10,000.
_CHANCE = 23.51


def queried(
    rows: TracedIterations, reasons: NDArray[np.uint8], most: int
) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
    """A random sample of the iterations, and why others are queried too: about `most` in all.

    `reasons` are those of `Retention`. A random one is kept if it is in the sample.
    """
    own = np.flatnonzero((reasons > 0) & (reasons != RANDOM))
    if len(rows) > most:
        # examples first, then the slowest
        order = np.lexsort((-rows.service[own], reasons[own] != EXAMPLE))
        own = own[order[: most // _KEPT_SHARE]]
    drawn = rows.drawn((most - len(own)) / len(rows))
    wanted = drawn.copy()
    wanted[own] = True
    return drawn, np.where(wanted, reasons, 0).astype(np.uint8)


@dataclass(frozen=True, kw_only=True)
class EvenSample:
    """The part of a sample that was found, as even over service times as the sample itself."""

    #: By iteration.
    chosen: NDArray[np.bool_]
    #: Numbers of iterations that were found, and that were chosen of them.
    found: int
    used: int
    #: Smallest and largest share found of a stratum, by its percentiles, if they differ by more
    #: than chance; else None.
    uneven: tuple[float, float] | None


def even_sample(
    rows: TracedIterations, drawn: NDArray[np.bool_], found: NDArray[np.bool_]
) -> EvenSample:
    """Select among the found ones of a random sample so that no duration is overrepresented.

    Backends that sample by duration (tail sampling) have slow traces more often than others. If the
    shares found in strata of service time differ by more than chance, each stratum is thinned to
    the smallest share, by bits of the ids.
    """
    chosen = drawn & found
    lowest, highest = 1.0, 0.0
    for workload in np.unique(rows.workload[drawn]).tolist():
        mine = drawn & (rows.workload == workload) & ~rows.warming & (rows.outcome == Outcome.OK)
        at = np.flatnonzero(mine)
        at = at[np.argsort(rows.service[at], kind="stable")]
        bounds = [-(-len(at) * percent // 100) for percent in _STRATA]
        strata = [at[low:high] for low, high in pairwise(bounds) if low < high]
        shares = [float(found[stratum].mean()) for stratum in strata]
        if not _differ(shares, [len(stratum) for stratum in strata]):
            continue
        lowest, highest = min(lowest, *shares), max(highest, *shares)
        for stratum, share in zip(strata, shares, strict=True):
            if share:
                chosen[stratum] &= _uniform(rows, stratum) < min(shares) / share
    return EvenSample(
        chosen=chosen,
        found=int((drawn & found).sum()),
        used=int(chosen.sum()),
        uneven=(lowest, highest) if lowest < highest else None,
    )


def _differ(shares: list[float], sizes: list[int]) -> bool:
    """Whether shares of samples differ by more than chance (chi-square test of homogeneity)."""
    in_all = sum(share * size for share, size in zip(shares, sizes, strict=True)) / max(
        sum(sizes), 1
    )
    if not 0 < in_all < 1:
        return False
    apart = sum(size * (share - in_all) ** 2 for share, size in zip(shares, sizes, strict=True))
    return apart / (in_all * (1 - in_all)) > _CHANCE


def _uniform(rows: TracedIterations, at: NDArray[np.int64]) -> NDArray[np.float64]:
    """Numbers from 0 to 1, random and the same in every call, not those of `drawn`."""
    halves = np.ascontiguousarray(rows.traces[at, 12:16]).view(">u4").ravel()
    found: NDArray[np.float64] = halves / 2**32
    return found
