"""Sizes of objects in tasks, and distributions of them."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.edges.openstack.common.byte_sizes import (
    MOST,
    SizeDistribution,
    byte_size,
    size_problems,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (0, 0),
        ("4096", 4096),
        ("64 KiB", 65536),
        ("64KiB", 65536),
        ("1.5 MiB", 1572864),
        ("1 kB", 1000),
        ("1 KB", 1000),
        ("5 GB", 5_000_000_000),
        ("5 TiB", MOST),
        (" 10 B ", 10),
    ],
)
def test_sizes_as_people_write_them(text: object, size: int) -> None:
    assert byte_size(text) == size


@pytest.mark.parametrize(
    "wish",
    [
        *(-1, 1.5, True, None, "", "many", "64 KX", "-1 KiB", "0.3 B", "6 TiB", "1e3", "1" * 40),
        *({}, {"min": 1}, {"min": 2, "max": 1}, {"min": 1, "max": 2, "mean": 1}),
        *({"min": 1, "max": 2, "distribution": "pareto"}, {"min": 1, "max": 2, "distribution": []}),
        {"min": 0, "max": 2, "distribution": "lognormal"},
        *([], [5], [{"weight": 1}], [{"size": 5, "weight": -1}], [{"size": 5, "weight": 0}]),
        *([{"size": 5, "weight": True}], [{"size": 5, "wieght": 1}], [{"size": 5, "weight": "x"}]),
        [{"size": 5, "weight": float("nan")}],
    ],
)
def test_what_is_no_size_is_one_message(wish: object) -> None:
    (problem,) = size_problems({"size": wish}, "size")

    assert problem.startswith("size")


@given(
    st.integers(1, 10**9),
    st.integers(0, 10**9),
    st.sampled_from(["uniform", "normal", "exponential", "lognormal"]),
    st.integers(),
)
def test_draws_stay_between_the_bounds(least: int, more: int, kind: str, seed: int) -> None:
    sizes = SizeDistribution({"min": least, "max": least + more, "distribution": kind})
    chance = random.Random(seed)

    found = [sizes.draw(chance) for _ in range(20)]

    assert all(least <= size <= least + more for size in found)
    assert (sizes.least, sizes.most) == (least, least + more)


def test_a_lognormal_size_has_its_middle_between_the_logarithms() -> None:
    sizes = SizeDistribution({"min": "1 KiB", "max": "1 MiB", "distribution": "lognormal"})
    chance = random.Random(1)

    found = [sizes.draw(chance) for _ in range(4000)]

    logarithms = [math.log2(size) for size in found]
    # log2 of 1 KiB and of 1 MiB are 10 and 20
    assert abs(statistics.mean(logarithms) - 15) < 0.2
    assert abs(statistics.stdev(logarithms) - 10 / 6) < 0.2


def test_weights_of_sizes_are_shares() -> None:
    sizes = SizeDistribution([{"size": "4 KiB", "weight": 90}, {"size": "1 MiB", "weight": 10}])
    chance = random.Random(1)

    found = [sizes.draw(chance) for _ in range(4000)]

    assert set(found) == {4096, 1 << 20}
    assert 0.07 < found.count(1 << 20) / len(found) < 0.13
