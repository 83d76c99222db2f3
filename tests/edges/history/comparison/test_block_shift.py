"""Changes between blocks of runs: what is said of drift, and of the blocks next to the change."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.queue_runs import compared_run
from osbench.edges.history.comparison.block_shift import block_shift
from osbench.edges.history.comparison.comparing import compare_sides
from osbench.edges.history.comparison.comparison_result import (
    Basis,
    ChangeVerdict,
    ComparisonResult,
)
from osbench.edges.history.comparison.evidence import Evidence, numbered_blocks
from osbench.edges.history.comparison.two_samples import pooled_shift

LEVELS = st.lists(st.floats(-1, 1), min_size=2, max_size=6)


def compared(before: list[float], after: list[float], size: int = 1) -> ComparisonResult:
    """Compare runs whose p50 are these, in milliseconds, in blocks of `size` runs."""
    few = (np.arange(2, dtype=np.int64) * 10**9, np.full(2, 10**7, np.int64))
    sides = [
        [
            compared_run(
                f"{name}{at}",
                few,
                latency={"service": {"ok": {"count": 900, "mean": one / 1e3, "p50": one / 1e3}}},
            )
            for at, one in enumerate(values)
        ]
        for name, values in (("A", before), ("B", after))
    ]
    return compare_sides(
        Evidence(before=sides[0], after=sides[1], blocks=numbered_blocks(*sides, size))
    )


@given(LEVELS, LEVELS)
def test_a_change_has_to_pass_both_tests(before: list[float], after: list[float]) -> None:
    found, means = block_shift(before, after), pooled_shift(before, after)

    assert found is not None
    assert means is not None
    assert found.p >= means.p
    assert found.p == max(found.p, found.other.p)
    expected = after[0] - before[-1] if found.is_step else means.by
    assert found.by == pytest.approx(expected)
    for margin in (0.01, 0.5):
        assert found.equivalence_p(margin) >= found.other.equivalence_p(margin)


def test_one_block_has_no_test() -> None:
    assert block_shift([0.1], [0.2, 0.3]) is None


def test_a_service_that_slows_down_all_the_time_is_not_slowed_down_by_the_change() -> None:
    # 3 % with each block, before and after: the means of the sides are 12 % apart
    levels = [20 * 1.03**at * (1 + 0.002 * (-1) ** at) for at in range(8)]

    result = compared(levels[:4], levels[4:])

    assert result.basis is Basis.BLOCKS
    assert result.verdict is ChangeVerdict.NO_EVIDENCE
    (row,) = result.workloads[0].rows
    assert row.before_s == pytest.approx(levels[3] / 1e3)
    assert row.after_s == pytest.approx(levels[4] / 1e3)
    drift, step = result.remarks[-3:-1]
    assert re.match(r"Drift: from one block to the next of a side, p50 of Queue.get moved", drift)
    assert "It rose with every block before the change, +8.8 % in all" in drift
    assert "It rose with every block after the change" in drift
    assert step.startswith("Before and after of p50 of Queue.get are the two blocks next to")


def test_a_change_above_all_drift_is_named_with_its_size() -> None:
    before, after = [20.0, 20.4, 20.1, 20.3], [25.2, 25.0, 25.5, 25.1]

    result = compared(before, after)

    assert result.verdict is ChangeVerdict.WORSE
    assert result.sentence.startswith("Worse: p50 of Queue.get takes 2")
    assert result.grounds.startswith("4 blocks with 4 runs before the change, and 4 with 4 runs")
    assert not result.apart_in_time
    (row,) = result.workloads[0].rows
    assert row.interval is not None
    assert row.interval[0] < row.ratio < row.interval[1]
    assert row.ratio == pytest.approx(25.2 / 20.25, rel=0.02)
    assert compared(after, before).verdict is ChangeVerdict.BETTER


def test_runs_of_one_block_count_once() -> None:
    # twelve runs a side, but only three starts of the service
    starts = [[20.0, 21.5, 20.6], [22.0, 21.0, 22.6]]
    before, after = ([one * (1 + at / 9e3) for one in side for at in range(4)] for side in starts)

    apart, alone = compared(before, after, size=4), compared(before, after)

    assert apart.verdict is ChangeVerdict.NO_EVIDENCE
    assert apart.block_size == 4
    blocks = apart.workloads[0].rows[0]
    assert blocks.ratio == pytest.approx(
        math.exp(np.mean(np.log(starts[1])) - np.mean(np.log(starts[0]))), rel=0.05
    )
    assert alone.block_size == 1


def test_blocks_that_lost_runs_still_count() -> None:
    few = [20.0, 20.4, 20.1, 20.3]
    whole = compared(few, [value * 1.3 for value in few])
    assert whole.block_size == 1
    sides = [
        [
            compared_run(f"{name}{at}", (np.arange(900) * 10**8, np.full(900, 10**7)))
            for at in (0, 1, 2)
        ]
        for name in "AB"
    ]
    uneven = {"A0": 0, "A1": 0, "A2": 1, "B0": 2, "B1": 3, "B2": 4}

    result = compare_sides(Evidence(before=sides[0], after=sides[1], blocks=uneven))

    assert result.block_size == 0
    assert result.grounds.startswith("2 blocks with 3 runs before the change, and 3 with 3 runs")


def test_blocks_are_by_time_however_the_runs_are_given() -> None:
    levels = [20.0, 20.4, 20.1, 25.2, 25.0, 25.5]
    few = (np.arange(2, dtype=np.int64) * 10**9, np.full(2, 10**7, np.int64))
    runs = [
        compared_run(
            f"run{at}",
            few,
            latency={"service": {"ok": {"count": 900, "mean": one / 1e3, "p50": one / 1e3}}},
        )
        for at, one in enumerate(value * twice for value in levels for twice in (1.0, 1.001))
    ]
    numbers = {run.run_id: at // 2 for at, run in enumerate(runs)}
    before, after = runs[:6], runs[6:]
    mixed = [before[at] for at in (4, 0, 3, 1, 5, 2)], [after[at] for at in (2, 5, 1, 0, 4, 3)]

    ordered = compare_sides(Evidence(before=before, after=after, blocks=numbers))
    found = compare_sides(Evidence(before=mixed[0], after=mixed[1], blocks=numbers))

    assert found.workloads == ordered.workloads
    assert found.grounds == ordered.grounds
    assert found.block_size == 2
