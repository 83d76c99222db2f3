"""Student's t distribution: tail probabilities and quantiles.

By the incomplete beta function and its continued fraction (Press et al., Numerical Recipes, 3rd
edition, section 6.4), so that no library is needed for two functions.
"""

from __future__ import annotations

import math
from functools import lru_cache

_STEPS = 300
_ACCURACY = 1e-15
_TINY = 1e-300


def two_sided_p(t: float, freedom: float) -> float:
    """Return the probability that Student's |T| is at least |`t`|; 1 if `t` is NaN, 0 if infinite.

    `freedom`: degrees of freedom.
    """
    if math.isnan(t):
        return 1.0
    if math.isinf(t):
        return 0.0
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def upper_p(t: float, freedom: float) -> float:
    """Return the probability that Student's T is above `t`; `freedom`: degrees of freedom."""
    half = two_sided_p(t, freedom) / 2
    return half if t >= 0 else 1 - half


@lru_cache(maxsize=1024)
def quantile(probability: float, freedom: float) -> float:
    """Return the value that Student's T exceeds with probability 1 - `probability`.

    `probability` is above 0.5: 0.975 for a two-sided 95 % interval. `freedom`: degrees of freedom.
    Results are cached.
    """
    wanted = 1 - probability
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(
        freedom * math.pi
    )
    # Newton's steps from below the value never leave it: the tail is convex there
    t = 0.0
    for _ in range(100):
        density = scale * (1 + t * t / freedom) ** (-(freedom + 1) / 2)
        step = (upper_p(t, freedom) - wanted) / density
        t += step
        if abs(step) < 1e-9 * (1 + t):
            break
    return t


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return I_x(a, b), the probability that a beta variable of `a` and `b` is below `x`."""
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function I_x(a, b) (Lentz's method)."""
    c, d = 1.0, 1 / _away_from_0(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_0(1 + term * d)
            c = _away_from_0(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < _ACCURACY:
            break
    return value


def _away_from_0(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
