"""What a search has found, as its verdict says it."""

from __future__ import annotations

import pytest

from osbench.common.plugin.runner import Capacity
from osbench.coordinator.results.accounting.search.capacity_sentence import sentence

ABOVE = Capacity(kind="above", held=40, advice="raise `high`")
BELOW = Capacity(kind="below", broke=60, advice="lower `low`")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (ABOVE, "at least 40.0/s, the highest rate that was tried: raise `high`"),
        (BELOW, "below 60.0/s, the lowest rate that was tried: lower `low`"),
        (Capacity(kind="unfinished"), "the search ended before its first trial"),
    ],
)
def test_a_search_without_a_capacity_tells_its_bound_and_what_to_change(found, said):
    assert sentence(found, "") == said


def test_a_search_that_was_stopped_tells_the_bound_so_far():
    held = Capacity(kind="unfinished", held=40)
    broke = Capacity(kind="unfinished", broke=60)

    assert sentence(held, "").startswith("the search did not end; so far at least 40.0/s")
    assert sentence(broke, "1 of 2 failed").endswith("tried; at 60.0/s 1 of 2 failed")


def test_a_capacity_has_its_interval():
    found = Capacity(kind="found", rate=50, low=48, high=52, held=49, broke=51, precise=False)

    assert sentence(found, "p95 900ms") == (
        "capacity 50.0/s, between 48.0 and 52.0/s with 95 %, less precise than requested; "
        "at 51.0/s p95 900ms"
    )


def test_users_are_whole_and_have_no_rate():
    found = Capacity(kind="found", rate=12, low=11, high=1300, held=12, broke=14, unit="users")
    above = Capacity(kind="above", held=1, advice="raise `high`", unit="users")

    assert sentence(found, "p95 900ms") == (
        "capacity 12 users, between 11 and 1,300 users with 95 %; at 14 users p95 900ms"
    )
    assert sentence(above, "") == (
        "at least 1 user, the highest number of users that was tried: raise `high`"
    )
