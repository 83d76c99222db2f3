"""Fits a law to values at several populations: constant, log n, n, n log n or n squared.

The constant and the four growing laws `a + b f(n)` are fitted by weighted least squares. A law is
refuted if its weighted squares exceed the 99 % quantile of chi squared. The constant is chosen
unless it is refuted; then the law with the least squares of log n, n and n squared that are not
refuted; n log n only if these are, because it differs little from n. The exponent is the slope of
the logarithms between the two greatest populations, and needs no law.

Values are medians. Counts of spans do not vary with the speed of a machine, so that any difference
between the least and the greatest population refutes the constant. Their laws may miss them by
rounding. If iterations at one population differ as much as the populations, counts are `unclear`.
Times vary between runs even of equal load: `RUN_SPREAD` is added to their intervals,
unless several runs of a population measure it.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: Fewest populations that distinguish laws.
FEWEST = 3
#: Relative standard deviation of the medians of equal runs, if it is not measured.
RUN_SPREAD = 0.1
#: Least relative standard deviation that few measured medians of equal runs may show.
LEAST_SPREAD = 0.02
#: Growth from the least to the greatest population below which times do not grow: caches and
#: processors vary as much.
LEAST_GROWTH = 1.1
#: Standard deviation of a count that a law gives exactly and a service rounds, and relative one of
#: a population whose members are not quite alike.
_ROUNDING, _UNLIKE = 0.3, 0.003
#: Greatest logarithm of a predicted growth: neighbouring populations give exponents of hundreds.
_LARGEST = 600.0
#: A count of 0 in a logarithm.
_HALF = 0.5
#: Deviates of a two-sided 95 % interval.
DEVIATES = 1.96
#: 99 % quantiles of chi squared by degrees of freedom, from 1; beyond, by Wilson and Hilferty.
_CHI = (6.635, 9.210, 11.345, 13.277, 15.086, 16.812, 18.475, 20.090)


class Law(enum.StrEnum):
    """Law by which a value grows with the population n; the values are words of outputs."""

    CONSTANT = "constant"
    LOGARITHMIC = "logarithmic"
    LINEAR = "linear"
    LINEARITHMIC = "n log n"
    QUADRATIC = "quadratic"
    #: It grows, and none of the laws above describes it.
    POWER = "power"
    #: It is less at the greatest population than at the least, beyond chance.
    FALLS = "falls"
    #: It differs beyond chance, and is not greater at the greatest population.
    VARIES = "varies"
    #: It differs at two populations, which are too few for a law.
    GROWS = "grows"
    #: A count that differs, and that differs as much between iterations at one population.
    UNCLEAR = "unclear"
    #: It is known at fewer than two populations.
    UNKNOWN = "unknown"


#: Laws from the slowest growth to the fastest, as far as they are comparable.
ORDER = (Law.CONSTANT, Law.LOGARITHMIC, Law.LINEAR, Law.LINEARITHMIC, Law.QUADRATIC)

_NO_GROWTH = (Law.CONSTANT, Law.FALLS, Law.VARIES, Law.UNCLEAR, Law.UNKNOWN)

_FUNCTIONS: dict[Law, Callable[[float], float]] = {
    Law.LOGARITHMIC: math.log,
    Law.LINEAR: lambda n: n,
    Law.LINEARITHMIC: lambda n: n * math.log(n),
    Law.QUADRATIC: lambda n: n * n,
}


@dataclass(frozen=True, kw_only=True)
class Point:
    """A value at one population, with its 95 % interval."""

    population: int
    value: float
    low: float
    high: float
    #: Relative standard deviation between equal runs, for times; 0 for counts.
    spread: float = 0.0

    @property
    def deviation(self) -> float:
        """Standard deviation of the value, from its interval and from `spread`."""
        return math.hypot((self.high - self.low) / (2 * DEVIATES), self.spread * self.value)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class GrowthFit:
    """The law of a value, and the numbers that follow from it."""

    law: Law
    #: Other growing laws that describe the values, too.
    also: tuple[Law, ...] = ()
    #: a and b of `a + b f(n)`; the constant has only a. None without such a law.
    base: float | None = None
    slope: float | None = None
    #: Slope of the logarithms between the two greatest populations; None with fewer than two.
    exponent: Estimate | None = None
    #: Value at the requested population, with the 95 % interval by all laws that may hold.
    predicted: Estimate | None = None

    @property
    def grows(self) -> bool:
        """Whether the value is greater at greater populations."""
        return self.law not in _NO_GROWTH


def fit_growth(
    points: Sequence[Point], *, counts: bool, predict: int, likely: Law | None = None
) -> GrowthFit:
    """Return the law of values at different populations, in ascending order.

    `counts`: they are numbers of calls, which do not vary with speed. `predict`: population of the
    prediction. `likely`: law that is chosen if it is not refuted, such as the law of the work that
    takes the time. With two populations a value grows or does not, and has a prediction only if it
    does not.
    """
    if len(points) < 2:
        return GrowthFit(law=Law.UNKNOWN)
    deviations = [_deviation(one, counts=counts) for one in points]
    exponent = _exponent(points[-2:], deviations[-2:], counts=counts)
    overall = _exponent((points[0], points[-1]), (deviations[0], deviations[-1]), counts=counts)
    constant = _Fitted.of(points, deviations, None)
    if _is_flat(points, constant, counts=counts):
        if counts and _is_different(points):
            return GrowthFit(law=Law.UNCLEAR, exponent=exponent)
        return GrowthFit(
            law=Law.CONSTANT,
            base=constant.base,
            slope=0.0,
            exponent=exponent,
            predicted=constant.at(predict, points[-1].spread),
        )
    if overall.low <= 0:
        hides_growth = counts and _is_different((points[0], points[-1])) and overall.value > 0
        law = Law.UNCLEAR if hides_growth else Law.VARIES
        return GrowthFit(law=Law.FALLS if overall.high < 0 else law, exponent=exponent)
    if len(points) < FEWEST:
        return GrowthFit(law=Law.GROWS, exponent=exponent)
    return _growing_fit(points, deviations, exponent, predict, likely)


def _growing_fit(
    points: Sequence[Point],
    deviations: Sequence[float],
    exponent: Estimate,
    predict: int,
    likely: Law | None,
) -> GrowthFit:
    """Return the growing law of at least three values that are not constant."""
    fitted = {law: _Fitted.of(points, deviations, law) for law in _FUNCTIONS}
    kept = {law: one for law, one in fitted.items() if one.holds and one.slope > 0}
    spread = points[-1].spread
    if not kept and exponent.value <= 0:
        return GrowthFit(law=Law.VARIES, exponent=exponent)
    if not kept:
        last = points[-1]
        times = math.log(predict / last.population)
        value, low, high = (
            last.value * math.exp(min(power * times, _LARGEST))
            for power in (exponent.value, exponent.low, exponent.high)
        )
        return GrowthFit(
            law=Law.POWER,
            exponent=exponent,
            predicted=Estimate(value=value, low=min(value, low), high=max(value, high)),
        )
    plain = {law: one for law, one in kept.items() if law is not Law.LINEARITHMIC} or kept
    law = min(plain, key=lambda name: plain[name].squares)
    if likely in kept:
        law = likely
    predictions = [one.at(predict, spread) for one in kept.values()]
    return GrowthFit(
        law=law,
        also=tuple(name for name in kept if name is not law),
        base=kept[law].base,
        slope=kept[law].slope,
        exponent=exponent,
        predicted=Estimate(
            value=kept[law].at(predict, spread).value,
            low=min(one.low for one in predictions),
            high=max(one.high for one in predictions),
        ),
    )


def _deviation(point: Point, *, counts: bool) -> float:
    if not counts:
        return max(point.deviation, 1e-12)
    return math.hypot(point.deviation, _ROUNDING, _UNLIKE * point.value)


def _is_flat(points: Sequence[Point], constant: _Fitted, *, counts: bool) -> bool:
    first, last = points[0], points[-1]
    if counts:
        # no chance is in exact counts: equal ends, and no more than rounding between them
        exact = all(one.low == one.high for one in points)
        return constant.holds and not (exact and last.value > first.value)
    least = min(one.value for one in points)
    greatest = max(one.value for one in points)
    return constant.holds or greatest < LEAST_GROWTH * least


def _is_different(points: Sequence[Point]) -> bool:
    """Return whether counts differ by more than a tenth, and by more than one."""
    least, greatest = (side(one.value for one in points) for side in (min, max))
    return greatest >= LEAST_GROWTH * least and greatest - least > 1


def _exponent(points: Sequence[Point], deviations: Sequence[float], *, counts: bool) -> Estimate:
    """Return the slope of the logarithms of two values; counts of 0 are as 0.5."""
    before, after = points
    low, high = (max(one.value, _HALF if counts else 1e-12) for one in points)
    span = math.log(after.population / before.population)
    value = math.log(high / low) / span
    if counts:
        # rounding belongs to the laws: the counts themselves are known
        deviations = [one.deviation for one in points]
    error = math.hypot(*(sd / one for sd, one in zip(deviations, (low, high), strict=True)))
    width = DEVIATES * error / span
    return Estimate(value=value, low=value - width, high=value + width)


@dataclass(frozen=True, kw_only=True)
class _Fitted:
    """A law with its coefficients, their covariance, and the weighted squares of its misses."""

    law: Law | None
    base: float
    slope: float
    covariance: tuple[float, float, float]
    squares: float
    holds: bool

    @classmethod
    def of(cls, points: Sequence[Point], deviations: Sequence[float], law: Law | None) -> _Fitted:
        """Fit a law to values by weighted least squares; None is the constant."""
        weights = [1 / sd**2 for sd in deviations]
        values = [one.value for one in points]
        if law is None:
            sizes = [0.0] * len(points)
        else:
            sizes = [_FUNCTIONS[law](one.population) for one in points]
        total = sum(weights)
        size = sum(w * x for w, x in zip(weights, sizes, strict=True)) / total
        value = sum(w * y for w, y in zip(weights, values, strict=True)) / total
        spread = sum(w * (x - size) ** 2 for w, x in zip(weights, sizes, strict=True))
        slope = 0.0
        if spread:
            both = zip(weights, sizes, values, strict=True)
            slope = sum(w * (x - size) * (y - value) for w, x, y in both) / spread
        base = value - slope * size
        squares = sum(
            w * (y - base - slope * x) ** 2 for w, x, y in zip(weights, sizes, values, strict=True)
        )
        inverse = 1 / spread if spread else 0.0
        freedom = len(points) - (1 if law is None else 2)
        return cls(
            law=law,
            base=base,
            slope=slope,
            covariance=(1 / total + size**2 * inverse, -size * inverse, inverse),
            squares=squares,
            holds=freedom > 0 and squares <= _chi_squared(freedom),
        )

    def at(self, population: int, spread: float) -> Estimate:
        """Return the value at a population, of a run whose median varies by `spread`."""
        size = 0.0 if self.law is None else _FUNCTIONS[self.law](population)
        value = self.base + self.slope * size
        first, mixed, second = self.covariance
        variance = max(first + 2 * size * mixed + size**2 * second, 0.0)
        width = DEVIATES * math.hypot(math.sqrt(variance), spread * value)
        return Estimate(value=value, low=max(value - width, 0.0), high=value + width)


def _chi_squared(freedom: int) -> float:
    if freedom <= len(_CHI):
        return _CHI[freedom - 1]
    part = 2 / (9 * freedom)
    return float(freedom * (1 - part + 2.326 * math.sqrt(part)) ** 3)


def law_value(fit: GrowthFit, population: float) -> float | None:
    """Return the value of a fitted law at a population; None if there are no coefficients."""
    if fit.base is None or fit.slope is None:
        return None
    function = _FUNCTIONS.get(fit.law)
    return fit.base + (fit.slope * function(population) if function else 0.0)
