"""The division of users, arrivals and workers among zones."""

from __future__ import annotations

import numpy as np
import pytest

from osbench.coordinator.load.fleet.zones import NO_ZONES, ZoneShares, deal, zone_of

EU, US = "eu", "us/host-7"
THIRTY = ZoneShares({"eu": 300_000, "us": 700_000})
PART = ZoneShares({"eu": 300_000})


@pytest.mark.parametrize(("label", "zone"), [("eu", "eu"), ("eu/a/b", "eu"), ("", "")])
def test_the_zone_of_a_worker_is_its_label_up_to_a_slash(label: str, zone: str) -> None:
    assert zone_of(label) == zone


def test_users_are_split_by_share_and_evenly_within_a_zone() -> None:
    assert THIRTY.split(100, [EU, US, US], [99, 99, 99]) == [30, 35, 35]
    assert NO_ZONES.split(9, [EU, US, US], [99, 99, 99]) == [3, 3, 3]


def test_a_zone_that_cannot_carry_its_share_gets_less() -> None:
    assert THIRTY.split(100, [EU, US], [10, 99]) == [10, 70]


def test_other_workers_make_the_rest_and_none_if_there_is_no_rest() -> None:
    assert PART.split(10, [EU, US, "x"], [99, 99, 99]) == [3, 4, 3]
    assert THIRTY.split(10, [EU, US, "x"], [99, 99, 99]) == [3, 7, 0]
    assert (PART.admits("x"), THIRTY.admits("x"), NO_ZONES.admits("x")) == (True, False, True)


def test_a_zone_without_workers_leaves_its_share_to_others() -> None:
    assert THIRTY.split(10, [US, US], [99, 99]) == [5, 5]
    assert THIRTY.split(10, ["x", ""], [99, 99]) == [5, 5]
    assert THIRTY.absent([US]) == ["eu"]
    assert THIRTY.absent(["x"]) == ["eu", "us"]
    assert PART.absent([EU]) == [""]
    assert PART.absent([EU, US]) == []


def test_ten_arrivals_are_dealt_by_share_and_spread() -> None:
    eu, us = THIRTY.deal(np.arange(10), [EU, US], 1)

    assert eu.tolist() == [1, 4, 8]
    assert us.tolist() == [0, 2, 3, 5, 6, 7, 9]


def test_the_first_instant_goes_to_the_worker_whose_turn_it_is() -> None:
    hands = deal(np.array([1, 2, 3, 4, 5]), 3, turn=1)

    assert [hand.tolist() for hand in hands] == [[3], [1, 4], [2, 5]]


def test_a_run_takes_workers_of_zones_without_one_first_then_by_share() -> None:
    free = [US, US, US, EU, US, EU, "x"]

    assert list(THIRTY.order(free, [])) == [0, 3, 1, 2, 4, 5]
    assert list(THIRTY.order(free, [US, US])) == [3, 0, 1, 5, 2, 4]
    assert list(NO_ZONES.order(free, [])) == list(range(7))
    rare = ZoneShares({"eu": 990_000})
    assert list(rare.order([EU, EU, EU, "x"], [])) == [0, 3, 1, 2]


def test_loads_of_a_run_sum_up() -> None:
    both = ZoneShares({"eu": 1_000_000}, {})

    assert both.names == ("eu",)
    assert both.admits("x")
    assert list(both.order(["x", "x", EU], [])) == [2, 0, 1]


def test_each_zone_has_a_least_number_of_users_if_there_are_as_many() -> None:
    rare = ZoneShares({"eu": 30_000, "us": 970_000})

    assert rare.split(10, [EU, US], [99, 99]) == [0, 10]
    assert rare.split(10, [EU, US], [99, 99], 1) == [1, 9]
    assert rare.split(1, [EU, US], [99, 99], 1) == [0, 1]
