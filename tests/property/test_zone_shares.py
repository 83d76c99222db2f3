"""Users and arrivals are divided by zone so that shares are exact and none is lost or doubled."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from osbench.common.task import WHOLE
from osbench.coordinator.load.fleet.zones import ZoneShares, apportion, deal, zone_of

weights = st.lists(st.integers(1, WHOLE), min_size=1, max_size=6)
label = st.builds(
    lambda zone, end: zone + end,
    st.sampled_from(["eu", "us", "ap", "other", ""]),
    st.sampled_from(["", "/h1"]),
)
labels = st.lists(label, min_size=1)
shares = st.sampled_from(
    [
        {"eu": 300_000, "us": 700_000},
        {"eu": 300_000},
        {"eu": 333_333, "us": 333_333, "ap": 333_334},
        {},
    ]
)


@given(st.integers(0, 10**6), weights)
def test_parts_are_the_whole_and_near_their_quota(total: int, shared: list[int]) -> None:
    parts = apportion(total, shared)

    assert sum(parts) == total
    quotas = [Fraction(total * one, sum(shared)) for one in shared]
    far = [abs(part - quota) for part, quota in zip(parts, quotas, strict=True)]
    assert max(far) < max(1, len(shared) / 2)
    if all(quota.denominator == 1 for quota in quotas):
        assert parts == quotas


@given(st.integers(0, 10**6), weights)
def test_no_part_shrinks_when_the_total_grows(total: int, shared: list[int]) -> None:
    before, after = apportion(total, shared), apportion(total + 1, shared)

    grown = sorted(b - a for a, b in zip(before, after, strict=True))
    assert grown == [0] * (len(shared) - 1) + [1]


@given(st.integers(0, 500), shares, st.lists(st.tuples(label, st.integers(0, 90))))
def test_users_fit_their_workers_and_are_all_there_without_zones(
    total: int, shared: dict[str, int], workers: list[tuple[str, int]]
) -> None:
    names, capacity = [one for one, _ in workers], [many for _, many in workers]

    found = ZoneShares(shared).split(total, names, capacity)

    assert all(0 <= users <= most for users, most in zip(found, capacity, strict=True))
    assert sum(found) <= total
    if not any(zone_of(name) in shared for name in names):
        assert sum(found) == min(total, sum(capacity))


@given(st.lists(st.integers(0, 60), min_size=1, max_size=6), shares, labels)
def test_arrivals_go_to_zones_by_share_whatever_the_parts_in_which_they_come(
    sizes: list[int], shared: dict[str, int], names: list[str]
) -> None:
    divided, first = ZoneShares(shared), 1
    got = [np.empty(0, np.int64) for _ in names]
    for size in sizes:
        hands = divided.deal(np.arange(first, first + size), names, first)
        got = [np.concatenate(pair) for pair in zip(got, hands, strict=True)]
        first += size

    whole = divided.deal(np.arange(1, first), names, 1)
    assert [hand.tolist() for hand in got] == [hand.tolist() for hand in whole]
    assert sorted(np.concatenate(got).tolist()) == list(range(1, first))
    assert all(hand.tolist() == sorted(hand.tolist()) for hand in got)
    present = {zone_of(name) for name in names} & shared.keys()
    rest = WHOLE - sum(shared.values())
    others = [name for name in names if zone_of(name) not in shared]
    weight = {zone: shared[zone] for zone in present}
    if rest and others and present:
        weight["others"] = rest
    arrived: Counter[str] = Counter()
    for name, hand in zip(names, got, strict=True):
        arrived[zone_of(name) if zone_of(name) in shared else "others"] += len(hand)
    for zone, of_zone in weight.items():
        assert abs(arrived[zone] - (first - 1) * of_zone / sum(weight.values())) < 1.5


@given(st.integers(0, 60), st.integers(1, 8), st.integers(0, 10**6))
def test_hands_hold_all_instants_evenly_and_in_order(count: int, hands: int, turn: int) -> None:
    dealt = deal(np.arange(count), hands, turn)

    assert len(dealt) == hands
    assert sorted(np.concatenate(dealt).tolist()) == list(range(count))
    assert all(hand.tolist() == sorted(hand.tolist()) for hand in dealt)
    sizes = [len(hand) for hand in dealt]
    assert max(sizes) - min(sizes) <= 1
    if count:
        assert dealt[turn % hands][0] == 0
