"""What displays say of a snapshot."""

from __future__ import annotations

import pytest

from osbench.coordinator.results.storage.progress import left_words


@pytest.mark.parametrize(
    ("left_s", "said"),
    [
        (None, ""),
        (0.0, ", 0 s left"),
        (0.2, ", 1 s left"),
        (59.0, ", 59 s left"),
        (59.5, ", 1 min 00 s left"),
        (125.0, ", 2 min 05 s left"),
        (3599.2, ", 1 h 00 min left"),
        (7260.0, ", 2 h 01 min left"),
    ],
)
def test_the_time_that_is_left_is_told_in_units_that_are_read_at_once(
    left_s: float | None, said: str
) -> None:
    assert left_words({"left_s": left_s}) == said


def test_notes_of_older_releases_do_not_say_it() -> None:
    assert left_words({}) == ""
