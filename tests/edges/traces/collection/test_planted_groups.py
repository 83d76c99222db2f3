"""The slow step of a group of steps at once is named, whatever the shape of the group."""

from __future__ import annotations

import pytest

from helpers.examples import examples
from helpers.planted_groups import ALONE, MISSED, verdict

#: With --examples=many.
RUNS = 40


@pytest.mark.parametrize("seed", range(examples(RUNS)))
def test_no_other_step_than_the_slow_one_is_named(seed: int) -> None:
    shape, found, named = verdict(seed)
    print(f"seed {seed}: {shape}")

    # a short delay may stay without a name
    least = shape.extra_ms[0]
    assert found == ALONE or (found == MISSED and not named and least < 40)
