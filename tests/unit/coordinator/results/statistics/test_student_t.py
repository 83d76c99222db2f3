import math

import pytest

from osbench.coordinator.results.statistics.student_t import quantile, two_sided_p, upper_p


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.7062), (2, 4.30265), (4, 2.77645), (8, 2.30600), (30, 2.04227), (1000, 1.96234)],
)
def test_quantiles_are_those_of_printed_tables(freedom, expected):
    assert quantile(0.975, freedom) == pytest.approx(expected, rel=1e-5)


def test_one_degree_of_freedom_is_the_cauchy_distribution():
    for t in (-3.0, -0.5, 0.0, 0.1, 2.0, 50.0):
        assert upper_p(t, 1) == pytest.approx(0.5 - math.atan(t) / math.pi, abs=1e-12)


def test_small_probabilities_keep_their_digits():
    # two degrees of freedom have a closed form
    for t in (5.0, 50.0, 500.0):
        assert upper_p(t, 2) == pytest.approx((1 - t / math.sqrt(2 + t * t)) / 2, rel=1e-4)
    assert 0 < two_sided_p(40, 8) < 1e-9


def test_values_without_end_or_meaning():
    assert two_sided_p(math.inf, 5) == 0
    assert two_sided_p(math.nan, 5) == 1
