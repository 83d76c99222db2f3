"""Steps of a load that was raised, their knee and what is said of them."""

from dataclasses import replace

import pytest

from osbench.coordinator.report.staircase.staircase import StaircaseStep, staircase_of
from osbench.edges.staircase.scalability import scalability


def step(load, throughput, p95_s, **more):
    known = {"concurrency": throughput * 0.1, "count": 1000, "p50_s": 0.01, "p99_s": 0.5}
    return StaircaseStep(load=load, throughput=throughput, p95_s=p95_s, **{**known, **more})


RISING = [
    step(10, 10, 0.1),
    step(20, 20, 0.1),
    step(30, 30, 0.11),
    step(40, 40, 0.2),
    step(50, 42, 0.9),
]


def test_the_knee_is_where_p95_begins_to_grow_faster_than_throughput():
    found = staircase_of(reversed(RISING), is_open=True)

    assert [one.load for one in found.steps] == [10, 20, 30, 40, 50]
    assert (found.knee.load, found.knee.below, found.knee.above) == (30, 20, 40)
    assert (found.knee.throughput, found.knee.p95_s) == (30, 0.11)
    assert found.knee_sentence.startswith("The knee is near 30/s, between 20 and 40/s")


def test_steps_of_one_load_count_as_one():
    down = [step(30, 28, 0.3), step(10, 10, 0.1)]

    found = staircase_of([*RISING, *down], is_open=True)

    # 29 ok/s with 0.205 s on average is less power than 20 with 0.1 s
    assert found.knee.load == 20
    assert len(found.steps) == 7


def test_without_a_knee_it_says_on_which_side_of_the_steps_it_may_be():
    up = staircase_of(RISING[:3], is_open=False)
    down = staircase_of(RISING[2:], is_open=False)

    assert up.knee is down.knee is None
    assert "up to the greatest load, 30 users" in up.knee_sentence
    assert "from the least load, 30 users" in down.knee_sentence


@pytest.mark.parametrize(
    "poor", [{"count": 19}, {"failed": 60}, {"p95_s": None, "count": 0, "throughput": 0.0}]
)
def test_steps_with_few_iterations_or_many_failures_are_shown_and_tell_nothing(poor):
    steps = [RISING[0], replace(RISING[2], **poor), RISING[4]]

    found = staircase_of(steps, is_open=True)

    assert len(found.steps) == 3
    assert found.knee is None
    assert "takes 3 loads" in found.knee_sentence


def test_one_load_is_no_staircase():
    assert staircase_of([], is_open=True) is None
    assert staircase_of([RISING[0], RISING[0]], is_open=True) is None


def on_the_law(terms, users=(1, 2, 4, 8, 16, 32)):
    return [
        step(
            many,
            scalability(many, *terms) * (1.01 if at % 2 else 0.99),
            0.1 * (1 + many / 8),
            concurrency=many,
        )
        for at, many in enumerate(users)
    ]


def test_the_law_is_said_with_its_terms_and_where_throughput_is_greatest():
    found = staircase_of(on_the_law((100, 0.05, 0.002)), is_open=False)

    assert found.fit.peak_concurrency.value == pytest.approx(21.8, rel=0.1)
    assert found.fit_sentence.startswith("Universal Scalability Law: lambda 9")
    assert "Throughput is greatest with 2" in found.fit_sentence
    assert "more than was tried" not in found.fit_sentence


def test_a_peak_beyond_the_steps_says_so():
    found = staircase_of(on_the_law((100, 0.05, 0.002), (1, 2, 3, 4, 6, 8, 12, 14, 15)), is_open=0)

    assert "in flight, more than was tried" in found.fit_sentence


def test_without_a_peak_it_says_what_throughput_approaches():
    found = staircase_of(on_the_law((100, 0.2, 0)), is_open=False)

    assert "throughput has no peak; with kappa 0 it approaches 5" in found.fit_sentence


def test_too_few_steps_for_the_law_say_so():
    found = staircase_of(RISING, is_open=True)

    assert found.fit is None
    assert found.fit_sentence.startswith("A fit takes 6 steps")
