"""What charts show of a matrix agrees with the durations that were put in."""

from __future__ import annotations

import numpy as np
import pytest

from osbench.coordinator.report.html.latency_series import (
    PER_DECADE,
    bands,
    curve,
    heat,
    heat_table,
)
from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix

MS = 1_000_000


def matrix(count: int, seconds: float, seed: int = 3) -> tuple[LatencyMatrix, np.ndarray]:
    chance = np.random.default_rng(seed)
    due = (np.arange(count) * (seconds * 1e9 / count)).astype(np.int64)
    took = (chance.lognormal(np.log(40), 0.5, count) * MS).astype(np.int64)
    made = LatencyMatrix()
    made.add(due, took)
    return made, took


def test_bins_hold_enough_iterations_to_know_their_percentiles() -> None:
    made, took = matrix(2000, 60)

    found = bands(made, 60.0)

    assert sum(int(row[1] or 0) for row in found.rows) == 2000
    assert all((row[1] or 0) >= 20 for row in found.rows)
    assert found.p99_width_s >= found.width_s
    middle = sorted(row[2] for row in found.rows if row[2] is not None)
    assert middle[len(middle) // 2] == pytest.approx(np.median(took) / MS, rel=0.1)


def test_a_bin_shows_no_percentile_that_it_cannot_know() -> None:
    made, _ = matrix(50, 60)

    (row, *_) = bands(made, 60.0).rows

    assert row[2] is not None
    assert row[5] is None
    assert bands(made, 60.0).p99 == []


def test_every_iteration_is_in_a_cell_of_the_heat_map() -> None:
    made, took = matrix(5000, 3000)

    found = heat(made)

    assert sum(count for _, _, count in found.cells) == 5000
    assert max(cell[0] for cell in found.cells) < 240
    lowest = min(cell[1] for cell in found.cells)
    assert 10 ** (lowest / PER_DECADE) <= took.min() / MS * 1.02


def test_the_table_of_the_heat_map_has_the_same_sum() -> None:
    made, _ = matrix(5000, 3000)

    table = heat_table(heat(made))

    assert sum(sum(row.counts) for row in table.rows) == 5000
    assert len(table.heads) <= 12
    assert [row.low_s for row in table.rows] == sorted((r.low_s for r in table.rows), reverse=True)


def test_the_curve_rises_to_the_greatest() -> None:
    made, took = matrix(5000, 60)

    found = curve(made, took.max() / 1e9)

    values = [value for _, value in found]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(took.max() / MS)
    (at_90,) = [value for rare, value in found if abs(rare - 1) < 0.008][:1]
    assert at_90 == pytest.approx(np.percentile(took, 90) / MS, rel=0.03)


def test_nothing_is_drawn_of_nothing() -> None:
    empty = LatencyMatrix(1)

    assert bands(empty, 1.0).rows == []
    assert heat(empty).cells == []
    assert heat_table(heat(empty)).rows == []
    assert curve(empty, None) == []
