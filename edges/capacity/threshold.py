"""The rate at which half of the trials succeed, estimated from trials that succeed or fail.

The probability that a trial at rate r succeeds is taken as logistic in log r, with a fraction of
trials that succeed or fail for another reason. Threshold and slope are unknown: both have a grid,
and the probability of each pair follows from Bayes' theorem (as in Kontsevich and Tyler, Vision
Research 39, 1999, for thresholds of perception).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Share of trials that say yes or no whatever the rate is.
LAPSES = 0.02
#: Points of the grid: thresholds, over the range and as far beyond it as `BEYOND` says; slopes.
THRESHOLDS, SLOPES = 801, 11
#: Factor by which the grid of thresholds is wider than the range, at each end.
BEYOND = 2.0
#: Widths of the logistic curve, in log rate: from 2 % to most of the rate decide.
NARROWEST, WIDEST = 0.005, 0.2
#: Probability that the threshold is in the reported interval.
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Estimate of a threshold (the rate at which half of the trials succeed), with its interval.

    All fields are rates, in the unit of the trials.
    """

    #: As probable to be above as below.
    median: float
    #: The central interval in which the threshold lies with `CONFIDENCE`.
    low: float
    high: float
    #: The rate below which the threshold is with the probability that was asked for.
    next: float


class ThresholdFit:
    """Estimates a threshold between `low` / BEYOND and `high` * BEYOND from trials.

    The threshold is the rate at which half of the trials succeed.
    """

    def __init__(self, low: float, high: float) -> None:
        """Prepare the grid of possible thresholds. Raises ValueError unless 0 < low < high."""
        if not 0 < low < high:
            raise ValueError(
                f"the lowest rate must be above 0 and below the highest, got {low:g} and {high:g}"
            )
        self._logs = np.linspace(math.log(low / BEYOND), math.log(high * BEYOND), THRESHOLDS)
        widths = np.geomspace(NARROWEST, WIDEST, SLOPES)
        self._widths: NDArray[np.float64] = widths[:, None]

    def of(self, trials: Sequence[tuple[float, bool]], at: float = 0.5) -> Threshold:
        """Return the threshold that `trials` show: (rate, whether the trial succeeded) for each.

        `at` is the probability, 0 to 1, with which the threshold is below `Threshold.next`. Without
        trials all of the grid is equally probable.
        """
        likelihood = np.zeros((SLOPES, THRESHOLDS))
        for rate, succeeded in trials:
            # beyond 500 the curve is flat, and exp would overflow
            distance = np.clip((math.log(rate) - self._logs) / self._widths, -500, 500)
            success = LAPSES / 2 + (1 - LAPSES) / (1 + np.exp(distance))
            likelihood += np.log(success if succeeded else 1 - success)
        weights = np.exp(likelihood - likelihood.max()).sum(axis=0)
        sums = np.cumsum(weights) / weights.sum()
        tail = (1 - CONFIDENCE) / 2
        wanted = [tail, 0.5, 1 - tail, at]
        low, median, high, next_ = np.exp(np.interp(wanted, sums, self._logs)).tolist()
        return Threshold(median=median, low=low, high=high, next=next_)
