"""Interval sets behave like sets of integers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from osbench.common.values.intervals import Intervals

# within few numbers, so that many touch
spans = st.tuples(st.integers(0, 15), st.integers(0, 6)).map(lambda p: (p[0], p[0] + p[1]))
steps = st.lists(st.tuples(st.sampled_from(["add", "remove"]), spans), max_size=30)


def build(script: list) -> tuple[Intervals, set[int]]:
    ours, model = Intervals(), set()
    for action, (low, high) in script:
        getattr(ours, action)(low, high)
        numbers = set(range(low, high))
        model = model | numbers if action == "add" else model - numbers
    return ours, model


@given(steps)
def test_adding_and_removing_agree_with_a_set(script: list) -> None:
    ours, model = build(script)

    assert ours.members().tolist() == sorted(model)
    assert len(ours) == len(model)
    assert bool(ours) == bool(model)
    assert all((number in ours) == (number in model) for number in range(-1, 24))


@given(steps)
def test_intervals_stay_disjoint_and_never_touch(script: list) -> None:
    ours, _ = build(script)

    edges = [edge for interval in ours for edge in interval]
    assert edges == sorted(set(edges))


@given(steps, steps, st.integers(0, 24))
def test_intersection_and_take_agree_with_sets(one: list, two: list, count: int) -> None:
    ours, model = build(one)
    other, others = build(two)

    both = ours.intersection(other)
    meets = ours.meets(other)
    taken = ours.take(count)

    assert both.members().tolist() == sorted(model & others)
    assert meets == bool(model & others)
    assert taken.members().tolist() == sorted(model)[:count]
    assert ours.members().tolist() == sorted(model)[count:]


@given(st.lists(st.integers(0, 100)))
def test_an_array_becomes_the_set_of_its_members(numbers: list[int]) -> None:
    found = Intervals.of(np.array(numbers, np.int64))

    assert found.members().tolist() == sorted(set(numbers))


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_numbers_far_apart_are_not_joined(numbers: list[int]) -> None:
    found = Intervals.of(np.array([-(2**63), *numbers, 2**63 - 1], np.int64))

    assert sum(high - low for low, high in found) == len({-(2**63), *numbers, 2**63 - 1})
