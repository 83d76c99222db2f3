"""Finds single runs that differ strongly from the other runs of their side of a comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from osbench.edges.history.comparison.comparison_result import Basis
from osbench.edges.history.comparison.evidence import Evidence
from osbench.edges.history.comparison.run_series import SeriesKey, log_values

#: Runs a side from which two that agree show a third to be odd.
_FEWEST = 3
#: Standard deviations of the other runs, and share, from which a run is odd in a percentile.
_DEVIATIONS, _SHARE = 6.0, 0.05


@dataclass(frozen=True, kw_only=True)
class OddRun:
    """A run that differs from the other runs of its side in at least half of the percentiles."""

    run_id: str
    #: The percentile in which it is most so, and how many times the median of its side that is.
    label: str
    ratio: float


def odd_runs(evidence: Evidence, keys: Sequence[SeriesKey]) -> list[OddRun]:
    """Return the odd runs of both sides, in order; `keys` are the compared percentiles.

    A run is odd if, in at least half of them, it is more than `_DEVIATIONS` standard deviations and
    `_SHARE` from its side's median. Empty with fewer than three runs a side, or in pairs.
    """
    sides = (evidence.before, evidence.after)
    if evidence.basis is Basis.PAIRS or min(map(len, sides)) < _FEWEST or not keys:
        return []
    apart = [np.array([log_values(side, key) for key in keys]).T for side in sides]
    apart = [one - np.median(one, axis=0) for one in apart]
    found = []
    for number, side in enumerate(sides):
        other = apart[1 - number]
        for at, run in enumerate(side):
            rest = np.concatenate([np.delete(apart[number], at, axis=0), other])
            # each side has given one of its numbers to its median
            spread = np.sqrt((rest**2).sum(axis=0) / max(len(rest) - 2, 1))
            own = np.abs(apart[number][at])
            if np.mean((own > _DEVIATIONS * spread) & (own > math.log1p(_SHARE))) >= 0.5:
                most = int(own.argmax())
                found.append(
                    OddRun(
                        run_id=run.run_id,
                        label=f"p{keys[most].percent:g} of"
                        f" {keys[most].action or keys[most].workload}",
                        ratio=math.exp(float(apart[number][at][most])),
                    )
                )
    return found
