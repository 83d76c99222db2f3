"""The Universal Scalability Law, fitted."""

import numpy as np
import pytest

from osbench.coordinator.report.staircase.staircase import ScalabilityFit
from osbench.edges.staircase.scalability import (
    FEWEST,
    NoFit,
    fit_scalability,
    scalability,
)

USERS = (1, 2, 4, 8, 12, 16, 24, 32, 48)


def noisy(random, users, terms, noise):
    exact = np.array([scalability(many, *terms) for many in users])
    return exact * np.exp(noise * random.standard_normal(len(users)))


def holds(term, value):
    return term.low <= value <= term.high


def test_exact_steps_give_the_law_that_made_them():
    terms = (100.0, 0.05, 0.002)

    fit = fit_scalability(USERS, [scalability(many, *terms) for many in USERS])

    assert isinstance(fit, ScalabilityFit)
    assert (fit.rate.value, fit.contention.value, fit.coherency.value) == pytest.approx(terms)
    assert fit.peak_concurrency.value == pytest.approx(((1 - 0.05) / 0.002) ** 0.5)
    assert fit.peak_throughput.value == pytest.approx(
        scalability(fit.peak_concurrency.value, *terms)
    )
    assert (fit.steps, fit.least, fit.most) == (9, 1, 48)
    assert fit.error < 1e-9


def test_the_order_of_steps_does_not_matter_and_steps_may_repeat():
    random = np.random.default_rng(1)
    users = np.array([*USERS, *USERS], float)
    rates = noisy(random, users, (100.0, 0.05, 0.002), 0.03)
    order = random.permutation(len(users))

    fit, other = fit_scalability(users, rates), fit_scalability(users[order], rates[order])

    assert fit.rate.value == pytest.approx(other.rate.value)
    assert fit.coherency.low == pytest.approx(other.coherency.low)


@pytest.mark.parametrize(
    ("users", "noise", "terms"),
    [
        ((1, 2, 4, 8, 16, 32), 0.01, (100.0, 0.05, 0.002)),
        ((1, 2, 4, 8, 16, 32), 0.03, (100.0, 0.05, 0.002)),
        (USERS, 0.03, (100.0, 0.05, 0.002)),
        ((5, 10, 15, 20, 25, 30, 35, 40), 0.03, (100.0, 0.05, 0.002)),
        (USERS, 0.02, (100.0, 0.7, 0.01)),
    ],
)
def test_intervals_hold_the_true_terms_in_95_of_100_cases(users, noise, terms):
    most = ((1 - terms[1]) / terms[2]) ** 0.5
    true = (*terms, most, scalability(most, *terms))
    random = np.random.default_rng(7)
    held = []

    for _ in range(400):
        fit = fit_scalability(users, noisy(random, users, terms, noise))
        found = (fit.rate, fit.contention, fit.coherency, fit.peak_concurrency, fit.peak_throughput)
        if fit.peak_concurrency is not None:
            held.append([holds(term, value) for term, value in zip(found, true, strict=True)])

    # all but a few have a peak, and 400 cases tell 95 % to within 3 %
    assert len(held) > 390
    assert np.mean(held, axis=0) == pytest.approx([0.95] * 5, abs=0.035)


@pytest.mark.parametrize("terms", [(50.0, 0.02, 0.0), (50.0, 0.0, 0.0005)])
def test_intervals_are_not_too_narrow_where_a_term_is_0(terms):
    random = np.random.default_rng(8)
    held = []

    for _ in range(400):
        fit = fit_scalability(USERS, noisy(random, USERS, terms, 0.03))
        found = (fit.rate, fit.contention, fit.coherency)
        held.append([holds(term, value) for term, value in zip(found, terms, strict=True)])

    assert np.mean(held, axis=0).min() > 0.93


def test_a_law_without_coherency_has_a_peak_in_one_case_of_forty_at_most():
    random = np.random.default_rng(9)
    fits = [
        fit_scalability(USERS, noisy(random, USERS, (50.0, 0.1, 0.0), 0.03)) for _ in range(400)
    ]

    # one-sided: 2.5 % of intervals lie above 0
    assert sum(fit.peak_concurrency is not None for fit in fits) <= 20
    ceilings = [fit.ceiling for fit in fits if fit.ceiling is not None]
    assert len(ceilings) > 300
    assert np.mean([holds(one, 500) for one in ceilings]) > 0.9


def queue(random, arrivals_per_s, lasts_s):
    """What is in flight in an M/M/1 queue of 100/s, and what ends per second, while it lasts."""
    number = random.poisson(arrivals_per_s * lasts_s)
    arrived = np.sort(random.uniform(0, lasts_s, number))
    services = random.exponential(0.01, number)
    served = np.cumsum(services)
    ended = served + np.maximum.accumulate(arrived - np.concatenate(([0], served[:-1])))
    busy_s = np.minimum(ended, lasts_s) - arrived
    return busy_s.sum() / lasts_s, np.count_nonzero(ended <= lasts_s) / lasts_s


def test_a_queue_under_open_load_approaches_what_its_server_can_do():
    # X = 100 N / (1 + N), which is the law with 50, 1/2 and 0
    random = np.random.default_rng(10)
    fits = []
    for _ in range(100):
        steps = [queue(random, rate, 60) for rate in (30, 50, 70, 80, 90, 100, 110)]
        fits.append(fit_scalability(*zip(*steps, strict=True)))

    assert np.mean([holds(fit.rate, 50) for fit in fits]) > 0.85
    assert np.mean([holds(fit.contention, 0.5) for fit in fits]) > 0.88
    assert np.mean([holds(fit.coherency, 0) for fit in fits]) > 0.92
    assert np.median([fit.ceiling.value for fit in fits if fit.ceiling]) == pytest.approx(100, 0.03)


@pytest.mark.parametrize(
    ("users", "said"),
    [
        ((), "there are none"),
        ((4,), "there are 1"),
        ((1, 2, 3, 4, 5), f"{FEWEST} steps of different concurrency or more; there are 5"),
        ((1, 2, 3, 4, 5, 5, 5.01), "there are 5"),
        ((50, 52, 54, 56, 58, 60), "too alike for a fit: 50 to 60"),
    ],
)
def test_too_few_steps_have_no_fit_and_it_says_why(users, said):
    fit = fit_scalability(users, [10.0] * len(users))

    assert isinstance(fit, NoFit)
    assert said in fit.reason


def test_steps_in_which_nothing_ended_well_do_not_count():
    users = [*USERS[:5], 100, 200]
    rates = [*(scalability(many, 10, 0.1, 0.01) for many in USERS[:5]), 0.0, float("nan")]

    assert "there are 5" in fit_scalability(users, rates).reason


@pytest.mark.parametrize(
    "rates",
    [
        (10, 300, 5, 80, 2, 90, 1, 200, 4),
        # more than proportional growth: contention below 0
        tuple(many**2 for many in USERS),
        (1e-9, 1e9, 1e-9, 1e9, 1e-9, 1e9, 1e-9, 1e9, 1e-9),
    ],
)
def test_steps_that_do_not_follow_the_law_have_no_fit(rates):
    fit = fit_scalability(USERS, rates)

    assert isinstance(fit, NoFit)
    assert fit.reason.startswith("The law does not describe these steps")


def test_linear_growth_has_neither_peak_nor_ceiling():
    random = np.random.default_rng(11)

    fit = fit_scalability(USERS, noisy(random, USERS, (10.0, 0.0, 0.0), 0.02))

    assert fit.rate.value == pytest.approx(10, 0.05)
    assert (fit.contention.low, fit.coherency.low) == (0, 0)
    assert fit.peak_concurrency is fit.ceiling is None


def test_throughput_that_falls_from_the_first_on_has_no_peak():
    fit = fit_scalability(USERS, [scalability(many, 10, 0.9, 0.5) for many in USERS])

    assert fit.coherency.value == pytest.approx(0.5)
    assert fit.peak_concurrency is None
