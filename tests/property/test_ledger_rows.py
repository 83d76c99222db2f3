"""The ledger against a plain set of numbers: whatever comes, a number counts once."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import RAN, Outcome
from osbench.coordinator.results.accounting.ledger import Ledger

MEMBERS = ("a", "b", "c")
outcomes = st.sampled_from([int(outcome) for outcome in Outcome])
block = st.lists(st.tuples(st.integers(1, 40), outcomes), max_size=15)
members = st.sampled_from(MEMBERS)


@given(st.integers(0, 40), st.lists(block, max_size=8), st.integers(0, 60))
def test_a_number_counts_with_its_first_outcome(
    placed: int, blocks: list[list[tuple[int, int]]], budget: int
) -> None:
    ledger = Ledger()
    ledger.cut("w", 1, ledger.allot(placed, None))
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
    assert sums.dropped == sum(counted[outcome] for outcome in Outcome if outcome not in RAN)
    assert sums.stale == sum(len(rows) for rows in blocks) - len(first)
    assert sums.lost == placed - len(first)
    assert sums.planned == sums.settled == max(placed, budget)


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=30), st.integers(0, 50))
def test_numbers_are_given_out_once_unless_they_came_back(
    calls: list[tuple[int, bool]], budget: int
) -> None:
    ledger = Ledger()
    out = Intervals()

    for seq, (count, returned) in enumerate(calls, start=1):
        available = ledger.available(budget)
        numbers = ledger.allot(count, budget)
        assert len(numbers) == min(count, available)
        assert not numbers.intersection(out)
        if numbers:
            ledger.cut("w", seq, numbers)
            out.update(numbers)
        if returned and numbers:
            ledger.reject("w", [seq])
            assert not ledger.batch("w", seq)
            out.subtract(numbers)

    assert ledger.outstanding("w") == len(out)
    assert ledger.allotted == len(out) + len(ledger.pool) <= budget


class LedgerMachine(RuleBasedStateMachine):
    """Plain sets beside the ledger: who has what open, and what each number came to."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(idempotent=True)
        self.open: dict[str, set[int]] = {name: set() for name in MEMBERS}
        self.released: dict[str, set[int]] = {name: set() for name in MEMBERS}
        self.lost: set[str] = set()
        self.settled: dict[int, int] = {}
        self.pool: set[int] = set()
        self.next = 1
        self.seq = 0
        self.late = self.stale = 0
        self.closed = False
        self.not_started: set[int] = set()

    def elsewhere(self, member: str, number: int, *, kept: bool = False) -> bool:
        return any(
            number in self.open[name] and not (kept and number in self.released[name])
            for name in MEMBERS
            if name != member
        )

    @precondition(lambda self: not self.closed)
    @rule(member=members, count=st.integers(1, 6))
    def grant(self, member: str, count: int) -> None:
        numbers = self.ledger.allot(count, None, member)
        found = numbers.members().tolist()
        mine = sorted(self.pool - self.open[member])[:count]
        assert found == mine + list(range(self.next, self.next + count - len(mine)))
        self.next += count - len(mine)
        self.seq += 1
        self.ledger.cut(member, self.seq, numbers)
        self.pool -= set(found)
        self.open[member] |= set(found)

    @rule(member=members, rows=st.dictionaries(st.integers(1, 30), outcomes, max_size=8))
    def report(self, member: str, rows: dict[int, int]) -> None:
        numbers = np.array(list(rows), np.int64)
        taken = self.ledger.report(member, numbers, np.array(list(rows.values()), np.uint8))
        for (number, outcome), accepted in zip(rows.items(), taken.tolist(), strict=True):
            had = number in self.open[member]
            assert accepted == (had and number not in self.settled)
            self.open[member].discard(number)
            self.released[member].discard(number)
            self.stale += not accepted
            if accepted:
                self.settled[number] = outcome
                self.pool.discard(number)
                self.late += self.closed or member in self.lost

    def come_back(self, member: str, numbers: set[int]) -> None:
        for number in numbers & self.open[member]:
            self.open[member].discard(number)
            self.released[member].discard(number)
            if number in self.settled:
                continue
            if self.closed and not self.elsewhere(member, number):
                self.not_started.add(number)
            if not self.closed and not self.elsewhere(member, number, kept=True):
                self.pool.add(number)

    @rule(member=members, numbers=st.sets(st.integers(1, 30), max_size=8))
    def give_back(self, member: str, numbers: set[int]) -> None:
        self.ledger.give_back(member, Intervals.of(np.array(sorted(numbers), np.int64)))
        self.come_back(member, numbers)

    @rule(member=members)
    def consent(self, member: str) -> None:
        self.ledger.consent(member)
        self.come_back(member, set(self.open[member]))

    @rule(member=members)
    def lose(self, member: str) -> None:
        self.ledger.mark_lost(member)
        self.lost.add(member)

    @rule(member=members)
    def hear(self, member: str) -> None:
        self.ledger.heard(member)
        self.lost.discard(member)

    @precondition(lambda self: not self.closed)
    @rule(member=members)
    def again(self, member: str) -> None:
        self.ledger.offer_again(member)
        fresh = self.open[member] - self.released[member] - set(self.settled)
        self.released[member] |= fresh
        self.pool |= {one for one in fresh if not self.elsewhere(member, one, kept=True)}

    @precondition(lambda self: not self.closed and self.pool)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        numbers = data.draw(st.sets(st.sampled_from(sorted(self.pool)), min_size=1))
        self.ledger.drop(
            Intervals.of(np.array(sorted(numbers), np.int64)), Outcome.DROPPED_WORKER_LOST
        )
        for number in numbers:
            self.pool.discard(number)
            self.settled[number] = int(Outcome.DROPPED_WORKER_LOST)

    @precondition(lambda self: self.next > 12)
    @rule()
    def close(self) -> None:
        self.ledger.close(None)
        if not self.closed:
            maybe = set().union(*self.open.values())
            self.not_started = self.pool - maybe
        self.closed = True

    @invariant()
    def sums_are_those_of_the_sets(self) -> None:
        sums = self.ledger.accounting()
        counts = Counter(self.settled.values())
        assert (sums.ok, sums.failed) == (counts[Outcome.OK], counts[Outcome.FAILED])
        assert sums.dropped == sum(counts[one] for one in Outcome if one not in RAN)
        assert (sums.late, sums.stale) == (self.late, self.stale)
        assert sums.planned == self.next - 1
        if self.closed:
            maybe = set().union(*self.open.values()) - set(self.settled)
            assert (sums.lost, sums.not_started) == (len(maybe), len(self.not_started))
            assert sums.settled == sums.planned
        else:
            assert set(self.ledger.pool.members().tolist()) == self.pool
            for name in MEMBERS:
                assert set(self.ledger.held(name).members().tolist()) == self.open[name]


TestLedgerMachine = LedgerMachine.TestCase
