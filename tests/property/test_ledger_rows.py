"""The ledger against a plain set of numbers: whatever blocks hold, a number counts once."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from osbench.common.intervals import Intervals
from osbench.common.outcomes import Outcome
from osbench.coordinator.results.ledger import Ledger

outcomes = st.sampled_from([int(outcome) for outcome in Outcome])
block = st.lists(st.tuples(st.integers(1, 40), outcomes), max_size=15)


@given(st.integers(0, 40), st.lists(block, max_size=8), st.integers(0, 60))
def test_a_number_counts_with_its_first_outcome(
    placed: int, blocks: list[list[tuple[int, int]]], budget: int
) -> None:
    ledger = Ledger()
    ledger.cut(1, "w", ledger.allot(placed, None))
    first: dict[int, int] = {}

    for rows in blocks:
        numbers = np.array([number for number, _ in rows], np.int64)
        kinds = np.array([outcome for _, outcome in rows], np.uint8)
        taken = ledger.report("w", numbers, kinds).tolist()
        for (number, outcome), counts in zip(rows, taken, strict=True):
            assert counts == (number <= placed and number not in first)
            if counts:
                first[number] = outcome
    ledger.close(budget)

    sums = ledger.accounting()
    counted = Counter(first.values())
    assert sums.ok == counted[Outcome.OK]
    assert sums.dropped == sum(counted[outcome] for outcome in Outcome if outcome > 3)
    assert sums.stale == sum(len(rows) for rows in blocks) - len(first)
    assert sums.lost == placed - len(first)
    assert sums.planned == sums.settled == max(placed, budget)


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=30), st.integers(0, 50))
def test_numbers_are_given_out_once_unless_they_came_back(
    calls: list[tuple[int, bool]], budget: int
) -> None:
    ledger = Ledger()
    out = Intervals()

    for batch, (count, returned) in enumerate(calls, start=1):
        available = ledger.available(budget)
        numbers = ledger.allot(count, budget)
        assert len(numbers) == min(count, available)
        assert not numbers.intersection(out)
        if numbers:
            ledger.cut(batch, "w", numbers)
            out.update(numbers)
        if returned and numbers:
            assert ledger.revoked(batch) == numbers
            out.subtract(numbers)

    assert ledger.outstanding("w") == len(out)
    assert ledger.allotted == len(out) + len(ledger.pool) <= budget
