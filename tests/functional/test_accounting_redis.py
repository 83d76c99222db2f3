"""A real Redis that loses what it had; tests/world has all other ways in which it fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.arena import Arena, arena, wait_until

pytestmark = [pytest.mark.functional, pytest.mark.faults, pytest.mark.timeout(600)]

TIMES = 2000
#: About eight seconds on two hosts.
CLOSED = {"constant": {"times": TIMES, "concurrency": 6}}


@pytest.fixture
def pair() -> Iterator[Arena]:
    with arena() as found:
        found.start_hosts(2)
        yield found


def test_redis_that_comes_back_empty_costs_nothing(pair: Arena) -> None:
    load = pair.start_load(CLOSED)
    pair.await_started(load, 100)

    pair.fragile.begin_empty()

    code = pair.finish(load)
    sums = pair.exact(load)
    assert (code, sums["ok"]) == (0, TIMES), (sums, load.command.said())
    assert wait_until(pair.are_free)
