"""Tests of the difference between two groups of runs, each with one number a run.

The numbers are logarithms, so that a difference is a ratio. Welch's test (Biometrika 34, 1947),
the t-test with a common spread, and the paired t-test; two one-sided tests for equivalence
(Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987); Holm's correction for
several tests (Scandinavian Journal of Statistics 6, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from osbench.coordinator.results.statistics.student_t import quantile, two_sided_p, upper_p


@dataclass(frozen=True, kw_only=True)
class Shifted:
    """The shift of the mean from a first to a second group of runs, with its standard error.

    Values are logarithms, so the shift is the logarithm of a ratio.
    """

    by: float
    #: Standard error of it, and the degrees of freedom that this is known with.
    error: float
    freedom: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the shift, by Student's t."""
        half = quantile(0.975, self.freedom) * self.error
        return self.by - half, self.by + half

    @property
    def p(self) -> float:
        """Two-sided p-value of the hypothesis that the groups do not differ."""
        if self.error <= 0:
            return 0.0 if self.by else 1.0
        return two_sided_p(self.by / self.error, self.freedom)

    def findable(self, level: float, power: float = 0.8) -> float:
        """Return the least shift that a two-sided test finds with probability `power`.

        `level`: significance of the test, a fraction. `power` must be above 0.5.
        """
        deviates = quantile(1 - level / 2, self.freedom) + quantile(power, self.freedom)
        # a standard deviation of few comes out too low
        half = self.freedom / 2
        low = math.exp(math.lgamma(half + 0.5) - math.lgamma(half)) / math.sqrt(half)
        return deviates * self.error / low

    def equivalence_p(self, margin: float) -> float:
        """Return the p-value of the hypothesis that the shift is `margin` or more, up or down.

        A small p-value means that the groups are equivalent within `margin`, which is above 0.
        """
        if self.error <= 0:
            return 0.0 if abs(self.by) < margin else 1.0
        return max(
            upper_p((margin - self.by) / self.error, self.freedom),
            upper_p((margin + self.by) / self.error, self.freedom),
        )


def welch(first: Sequence[float], second: Sequence[float]) -> Shifted:
    """Return the shift between groups of two values or more whose spreads may differ (Welch)."""
    parts = [float(np.var(group, ddof=1)) / len(group) for group in (first, second)]
    error = math.sqrt(sum(parts))
    freedom = float(len(first) + len(second) - 2)
    if error > 0:
        each = sum(
            part * part / (len(group) - 1)
            for part, group in zip(parts, (first, second), strict=True)
        )
        freedom = error**4 / each
    return Shifted(by=_between(first, second), error=error, freedom=freedom)


def pooled_shift(
    first: Sequence[float], second: Sequence[float], others: Sequence[Sequence[float]] = ()
) -> Shifted | None:
    """Return the shift between two groups with a common spread (t-test with pooled variance).

    `others`: further groups of the same spread, which help to estimate it. None if no group has two
    values. Neither `first` nor `second` may be empty.
    """
    groups = [group for group in (first, second, *others) if len(group) > 1]
    freedom = sum(len(group) - 1 for group in groups)
    if not freedom:
        return None
    squares = sum(float(np.var(group)) * len(group) for group in groups)
    error = math.sqrt(squares / freedom * (1 / len(first) + 1 / len(second)))
    return Shifted(by=_between(first, second), error=error, freedom=freedom)


def paired_shift(first: Sequence[float], second: Sequence[float]) -> Shifted:
    """Return the shift between two groups whose values pair up by position; at least two pairs."""
    differences = np.asarray(second) - np.asarray(first)
    error = float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    return Shifted(by=float(differences.mean()), error=error, freedom=len(differences) - 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's method, in the given order.

    If each below 5 % is significant, the probability of any wrong result is at most 5 %.
    """
    order = np.argsort(p_values, kind="stable")
    found = [1.0] * len(p_values)
    greatest = 0.0
    for place, at in enumerate(order.tolist()):
        greatest = max(greatest, min(1.0, p_values[at] * (len(p_values) - place)))
        found[at] = greatest
    return found


def _between(first: Sequence[float], second: Sequence[float]) -> float:
    return float(np.mean(second) - np.mean(first))
