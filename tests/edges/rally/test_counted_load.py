"""Iterations granted ahead to a runner's own code."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from osbench.common.plugin.runner import Step
from osbench.common.values.intervals import Intervals
from osbench.edges.rally.scripted_dispatch import CountedLoad


class Ledger:
    """Numbers that were given out, and how many are settled."""

    def __init__(self) -> None:
        self.settled = 0
        self.allotted = 0

    def outstanding(self, name: str) -> int:
        return self.allotted - self.settled

    def allot(self, size: int, budget: int | None, name: str) -> Intervals:
        size = size if budget is None else min(size, budget - self.allotted)
        first = self.allotted + 1
        self.allotted += size
        return Intervals([(first, first + size)])


class Sent:
    """Batches by size."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def grant(self, grants: Any) -> None:
        self.sizes += [len(one.numbers) for one in grants]


def placed(ledger: Any, sent: Any, limit: int | None = None) -> CountedLoad:
    return CountedLoad(sent, ledger, limit)


WORKER: Any = SimpleNamespace(name="a", user_limit=50)


def test_two_for_each_user_are_granted_at_first_and_no_more_until_some_have_ended():
    ledger, sent = Ledger(), Sent()
    load = placed(ledger, sent)

    for at in range(5):
        load.place(Step(), [WORKER], at / 10, None)

    assert sent.sizes == [100]


def test_twice_what_ended_in_the_last_seconds_is_granted_in_addition():
    ledger, sent = Ledger(), Sent()
    load = placed(ledger, sent)
    load.place(Step(), [WORKER], 0.0, None)

    ledger.settled = 100
    load.place(Step(), [WORKER], 0.5, None)
    assert sent.sizes == [100, 300]

    # what ended long ago does not count
    load.place(Step(), [WORKER], 9.0, None)
    ledger.settled = 400
    for at in (20.0, 25.0):
        load.place(Step(), [WORKER], at, None)
    assert ledger.outstanding("a") == 700


def test_batches_with_rows_are_cut_and_end_with_the_rows():
    ledger, sent = Ledger(), Sent()
    load = placed(ledger, sent, limit=40)

    load.place(Step(budget=90), [WORKER], 0.0, None)
    load.place(Step(budget=90), [WORKER], 0.1, None)

    assert sent.sizes == [40, 40, 10]
