"""The Universal Scalability Law, fitted to throughput at several concurrencies.

    X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1))

N iterations are in flight and X end well per second. lambda is the throughput of a single one,
sigma the waiting of iterations for one another (contention), kappa their work for one another
(coherency). Throughput is greatest at N* = sqrt((1 - sigma) / kappa). (Gunther, Guerrilla Capacity
Planning, Springer 2007, chapters 4 and 5.)

N / X is linear in 1/lambda, sigma/lambda and kappa/lambda. It is fitted by least squares of
relative errors, with no coefficient below 0. Intervals are computed by linear regression, and
converted to the law's own terms by their derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.report.staircase.staircase import FittedTerm, ScalabilityFit
from osbench.coordinator.results.statistics.student_t import quantile

Floats = NDArray[np.float64]

#: Fewest different concurrencies for a fit, and least ratio of the greatest to the least.
FEWEST, SPREAD = 6, 2.0
#: Concurrencies closer than this share are one.
_SAME = 0.01
#: Typical relative error of throughput above which the law does not describe the steps.
POOREST = 0.15
#: Rounds of weighting by fitted values.
_ROUNDS = 20


@dataclass(frozen=True, kw_only=True)
class NoFit:
    """Result instead of a fit if the law could not be fitted: the reason as a message."""

    reason: str


def scalability(concurrency: float, rate: float, contention: float, coherency: float) -> float:
    """Return throughput per second by the law, with `concurrency` (N) iterations in flight.

    `rate` is lambda, `contention` sigma, `coherency` kappa.
    """
    others = concurrency - 1
    return rate * concurrency / (1 + contention * others + coherency * concurrency * others)


def fit_scalability(
    concurrency: Sequence[float], throughput: Sequence[float]
) -> ScalabilityFit | NoFit:
    """Fit the law to steps of a load; return the fit, or the reason why there is none.

    Both arguments have an entry per step: mean iterations in flight, and iterations that succeeded
    per second. Steps in which either is not finite or not above 0 are ignored. A fit needs `FEWEST`
    different concurrencies, the greatest at least `SPREAD` times the least, positive fitted times,
    and at most the error `POOREST`.
    """
    flights, rates = np.asarray(concurrency, float), np.asarray(throughput, float)
    usable = np.isfinite(flights) & np.isfinite(rates) & (flights > 0) & (rates > 0)
    flights, rates = flights[usable], rates[usable]
    refusal = _refusal(flights)
    if refusal:
        return NoFit(reason=refusal)
    design = np.column_stack([np.ones_like(flights), flights - 1, flights * (flights - 1)])
    found = _regression(design, flights / rates)
    if found is None:
        return NoFit(reason="The law does not describe these steps: it has no fit to them.")
    coefficients, covariance, error = found
    if error > POOREST:
        return NoFit(
            reason=f"The law does not describe these steps: throughput differs from it by"
            f" {100 * error:.0f} % on average."
        )
    half_width = quantile(0.975, len(flights) - design.shape[1])
    return _fit(coefficients, covariance * half_width**2, error, flights)


def _refusal(flights: Floats) -> str:
    """Return why these concurrencies do not suffice for a fit, as a message; "" if they do."""
    found = np.sort(flights)
    different = int(np.count_nonzero(np.diff(found) > _SAME * found[1:])) + 1 if len(found) else 0
    if different < FEWEST:
        known = "none" if not different else str(different)
        return f"A fit takes {FEWEST} steps of different concurrency or more; there are {known}."
    if found[-1] < SPREAD * found[0]:
        return (
            f"The concurrencies are too alike for a fit: {found[0]:.3g} to {found[-1]:.3g}, which"
            f" is less than {SPREAD:g} times as many."
        )
    return ""


def _regression(design: Floats, times: Floats) -> tuple[Floats, Floats, float] | None:
    """Fit `times` to the columns of `design` by relative errors, coefficients not below 0.

    Return the coefficients, their covariance and the relative error (root mean square by degrees of
    freedom); None if a fitted time, or the first coefficient, is 0 or less.
    """
    free = list(range(design.shape[1]))
    found = _least_squares(design, times)
    while found is not None and found[1:].min(initial=0.0) < 0:
        # the coefficient that is farthest below 0, relative to the whole, is 0
        parts = found * design[-1, free]
        del free[1 + int(parts[1:].argmin())]
        found = _least_squares(design[:, free], times)
    if found is None or found[0] <= 0:
        return None
    coefficients = np.zeros(design.shape[1])
    coefficients[free] = found
    fitted = design @ coefficients
    rows = design / fitted[:, None]
    squares = float((((times - fitted) / fitted) ** 2).sum())
    # the errors are for all coefficients, whichever of them are at their bounds
    variance = squares / (len(times) - design.shape[1])
    return coefficients, np.linalg.inv(rows.T @ rows) * variance, math.sqrt(variance)


def _least_squares(design: Floats, times: Floats) -> Floats | None:
    """Return coefficients by least squares of relative errors; None if a fitted time is 0 or less.

    Repeats up to `_ROUNDS` times, weighted by the fitted values of the round before.
    """
    scale: Floats = times
    coefficients: Floats = np.zeros(design.shape[1])
    for _ in range(_ROUNDS):
        solved = np.linalg.lstsq(design / scale[:, None], times / scale, rcond=None)[0]
        coefficients = np.asarray(solved, np.float64)
        fitted = design @ coefficients
        if fitted.min() <= 0:
            return None
        if np.allclose(fitted, scale, rtol=1e-9):
            break
        scale = fitted
    return coefficients


class _DeltaMethod:
    """Computes 95 % intervals of functions of fitted coefficients from the functions' gradients.

    The covariance is scaled so that its root is half a 95 % interval.
    """

    def __init__(self, covariance: Floats) -> None:
        self._covariance = covariance

    def term(self, value: float, gradient: Sequence[float]) -> FittedTerm:
        """Return the value with a 95 % interval symmetric around it, its lower bound at least 0.

        `gradient`: of the value, by coefficient.
        """
        width = self._half(gradient)
        return FittedTerm(value=value, low=max(0.0, value - width), high=value + width)

    def factor(self, value: float, gradient: Sequence[float]) -> FittedTerm:
        """Return the value with a 95 % interval that is symmetric on a logarithmic scale.

        `gradient`: of the value's logarithm, by coefficient.
        """
        width = min(self._half(gradient), 700.0)
        return FittedTerm(
            value=value, low=value * math.exp(-width), high=value * math.exp(min(width, 50.0))
        )

    def _half(self, gradient: Sequence[float]) -> float:
        slopes = np.asarray(gradient)
        return math.sqrt(max(0.0, float(slopes @ self._covariance @ slopes)))


def _fit(c: Floats, covariance: Floats, error: float, flights: Floats) -> ScalabilityFit:
    """Return the law's terms with 95 % intervals, from the fitted linear coefficients `c`.

    `covariance` is scaled so that its root is half a 95 % interval. `error`: relative error of the
    fit; `flights`: concurrencies of the steps.
    """
    base, alpha, beta = (float(value) for value in c)
    intervals = _DeltaMethod(covariance)
    sigma, kappa = alpha / base, beta / base
    coherency = intervals.term(kappa, [-kappa / base, 0, 1 / base])
    contention = intervals.term(sigma, [-sigma / base, 1 / base, 0])
    peak = greatest = ceiling = None
    if coherency.low > 0 and base - alpha > beta:
        # log N* = (log(base - alpha) - log(beta)) / 2, and 1 / X* = (base + alpha (N* - 1)) / N*
        # + beta (N* - 1), which does not change with N* at the peak
        many = math.sqrt((base - alpha) / beta)
        apart = 0.5 / (base - alpha)
        time = (base + alpha * (many - 1)) / many + beta * (many - 1)
        peak = intervals.factor(many, [apart, -apart, -0.5 / beta])
        slopes = [1 / many, (many - 1) / many, many - 1]
        greatest = intervals.factor(1 / time, [slope / time for slope in slopes])
    elif contention.low > 0:
        ceiling = intervals.factor(1 / alpha, [0, 1 / alpha, 0])
    return ScalabilityFit(
        rate=intervals.factor(1 / base, [1 / base, 0, 0]),
        contention=contention,
        coherency=coherency,
        peak_concurrency=peak,
        peak_throughput=greatest,
        ceiling=ceiling,
        error=error,
        steps=len(flights),
        least=float(flights.min()),
        most=float(flights.max()),
    )
