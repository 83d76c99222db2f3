"""Finds stretches of time in which more iterations were bad than usual.

Every stretch of bins is compared with the usual fraction. So many bad iterations, or more, come by
chance with a probability of at most exp(-n KL(fraction || usual)) (Chernoff, Annals of Mathematical
Statistics 23, 1952). A stretch counts if this probability is below `LEVEL` divided by the number of
stretches. The clearest stretch counts first, then the clearest of the time after it, until none is
left (a scan statistic: Kulldorff, Communications in Statistics 26, 1997).

docs/adr/0048-drills.md has the reasons, and the trials.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Probability of any stretch in a load without a change.
LEVEL = 0.025
#: Half of the 95 % point of chi-squared with one degree of freedom: by so much the logarithm of a
#: likelihood may fall below the greatest.
_LIKELY = 1.92


@dataclass(frozen=True, kw_only=True)
class OffStretch:
    """A stretch of bins with too many bad iterations: bins `begin` to `end`, `end` excluded."""

    begin: int
    end: int
    #: Earliest and latest end that are nearly as likely, bins.
    earliest_end: int
    latest_end: int


def evidence_needed(bins: int, effect: float = 1.0) -> float:
    """Return the least log-likelihood ratio of a significant stretch in `bins` bins of load.

    `effect`: variance of numbers of bad iterations, divided by the variance if independent.
    """
    return effect * math.log(max(1, bins * (bins + 1) / 2) / LEVEL)


def fewest_bad(bins: int, usual: float, effect: float = 1.0) -> int:
    """Return how many bad iterations in a row make a stretch significant, at least 1.

    `bins`: bins of the load; `usual`: fraction of bad iterations, above 0 and below 1; `effect` as
    for `evidence_needed`.
    """
    return max(1, math.ceil(evidence_needed(bins, effect) / -math.log(usual)))


def last_off(bad: Ints, counts: Ints, usual: float, effect: float = 1.0) -> OffStretch | None:
    """Return the last stretch with significantly more bad iterations than usual; None without one.

    `bad` and `counts`: bad and all iterations per bin. `usual`: fraction of bad iterations, above 0
    and below 1; `effect` as for `evidence_needed`.
    """
    needed = evidence_needed(len(counts), effect)
    bad_sums = np.concatenate(([0], np.cumsum(bad)))
    sums = np.concatenate(([0], np.cumsum(counts)))
    every = _evidence(bad_sums, sums, usual)
    found, begin = None, 0
    while begin < len(counts):
        evidence = every[begin:, begin:]
        first, last = np.unravel_index(int(evidence.argmax()), evidence.shape)
        greatest = float(evidence[first, last])
        if greatest < needed:
            break
        likely = np.flatnonzero(evidence[first] >= greatest - _LIKELY * effect)
        found = OffStretch(
            begin=begin + int(first),
            end=begin + int(last),
            earliest_end=begin + int(likely[0]),
            latest_end=begin + int(likely[-1]),
        )
        begin = found.end
    return found


def _evidence(bad_sums: Ints, sums: Ints, usual: float) -> Floats:
    """Return the log-likelihood ratio of each stretch, by first and last edge.

    0 if a stretch is not worse than `usual`, the fraction of bad iterations. The sums are
    cumulative counts by edge: one more than there are bins.
    """
    counts = np.maximum(sums[None, :] - sums[:, None], 0).astype(np.float64)
    bad = np.maximum(bad_sums[None, :] - bad_sums[:, None], 0).astype(np.float64)
    share = np.divide(bad, counts, out=np.zeros_like(bad), where=counts > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        above = bad * np.log(share / usual)
        below = (counts - bad) * np.log((1 - share) / (1 - usual))
    found: Floats = np.where(share > usual, np.nan_to_num(above) + np.nan_to_num(below), 0.0)
    return found
