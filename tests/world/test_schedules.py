"""Random schedules break nothing; the same seed plays the same; a judge sees what breaks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from helpers.import_path import TESTS, import_path
from world.__main__ import findings_of
from world.schedule import played

#: Seeds that every test run plays: the first, how many, and how many at once.
FIRST, SCHEDULES, AT_ONCE = 1, 60, 5
#: Seeds whose schedules are played twice, in another process the second time.
SAME = (7, 8)


@pytest.mark.parametrize("first", range(FIRST, FIRST + SCHEDULES, AT_ONCE))
def test_nothing_is_lost_counted_twice_or_started_twice(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        one = played(seed)

        assert not one.findings, f"{findings_of(one)}: make world FIRST={seed} SEEDS=1"


def test_a_seed_plays_the_same_whatever_the_hashes() -> None:
    code = "from world import ports; from world.schedule import played; print(*(" + (
        f"played(seed).digest for seed in {SAME}))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "PYTHONHASHSEED": "7",
            **import_path(TESTS),
        },
        capture_output=True,
        text=True,
        check=True,
    )

    assert [played(seed).digest for seed in SAME] == other.stdout.split()


def test_schedules_reach_what_they_are_for() -> None:
    """Judges would find nothing in schedules in which nothing happens."""
    found = [played(seed) for seed in range(FIRST, FIRST + 20)]

    states = {name for one in found for name, count in one.states.items() if count}
    assert states >= {"ok", "dropped", "lost", "timed_out"}
    assert len({kind for one in found for kind in one.struck}) > 15
