from __future__ import annotations

import random

import pytest

from soak.growth import fit, grows
from soak.sampling import Series, limit_of

SECONDS = [10.0 * at for at in range(300)]


def _walk(seed: int) -> list[float]:
    """Memory as it is: steps up and down around a level, that last for a while."""
    chance, level, found = random.Random(seed), 100.0, []
    for _ in SECONDS:
        level += chance.choice([0.5, -0.5]) if chance.random() < 0.1 else 0.0
        level += (100.0 - level) * 0.3
        found.append(level)
    return found


@pytest.mark.parametrize("per_s", [0.002, -0.002, 0.1])
def test_the_slope_of_a_line_is_found_in_noise(per_s: float):
    found = [
        fit(SECONDS, [per_s * at + noise for at, noise in zip(SECONDS, _walk(seed), strict=True)])
        for seed in range(100)
    ]

    held = sum(abs(slope.per_s - per_s) <= slope.error_per_s for slope in found)
    assert held >= 85
    assert max(slope.error_per_s for slope in found) < 0.001


def test_what_does_not_grow_is_seldom_taken_for_growing():
    false = sum(fit(SECONDS, _walk(seed)).significant for seed in range(200))

    # one side of a 95 % interval is 2.5 %; samples that follow each other are alike
    assert false <= 200 * 0.10


def test_what_fills_at_the_beginning_does_not_count():
    filled = [min(at, 500.0) for at in SECONDS]

    assert not fit(SECONDS, filled).significant


def test_growth_counts_only_above_its_limit():
    slope = fit(SECONDS, [100.0 + 0.001 * at for at in SECONDS])

    assert slope.growth == pytest.approx(2.39)
    assert grows(slope, 2.0)
    assert not grows(slope, 3.0)


def test_noise_above_the_limit_is_no_growth():
    chance = random.Random(3)
    slope = fit(SECONDS, [chance.uniform(0, 1000) for _ in SECONDS])

    assert not grows(slope, 0.0)


def test_a_series_that_is_always_the_same_does_not_grow():
    assert not grows(fit(SECONDS, [7.0] * len(SECONDS)), 0.0)


def test_too_few_samples_are_refused():
    with pytest.raises(ValueError, match="take at least"):
        fit(SECONDS[:20], SECONDS[:20])


def test_a_series_of_a_process_that_has_ended_is_not_judged():
    series = Series()
    series.add(0.0, {"a": 1.0, "b": 2.0})
    series.add(1.0, {"a": 3.0, "late": 5.0})

    assert dict(series.whole()) == {"a": [1.0, 3.0], "late": [5.0, 5.0]}


def test_every_kind_of_series_has_a_limit():
    assert limit_of("worker 1: memory MB") == limit_of("supervisor: memory MB") == 4.0
    assert limit_of("coordinator: memory MB") == 24.0
    assert limit_of("Redis: keys") == 2.0
