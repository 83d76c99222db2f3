"""A workload's book: blocks become states, statistics and sums."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from helpers.result_rows import row_of
from osbench.common.errors import Untrusted
from osbench.common.protocol.columns import encode_rows
from osbench.common.protocol.messages import Block
from osbench.common.task import Named
from osbench.common.values.outcomes import LifeEvent, Outcome
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.plugins.sla.failure_rate import FailureRate
from osbench.coordinator.results.accounting.workload_results import WorkloadResults

S = 10**9


def row(number: int, outcome: int = Outcome.OK, length_s: float = 1.0) -> tuple:
    return row_of(number, int(outcome), 0, 0, int(length_s * S), 0, int(outcome == 2), (), None)


def block(worker: str, number: int, rows: list[tuple] = (), **fields) -> Block:
    columns = encode_rows(rows, (), 0) if rows else {}
    fields.setdefault("columns", columns)
    return Block(run="r", incarnation=worker, membership="m", number=number, workload=0, **fields)


@pytest.fixture
def book():
    found = WorkloadResults(idempotent=False, sla=SlaEvaluator((), None))
    found.ledger.cut("w1", 1, found.ledger.allot(5, 5))
    return found


def test_rows_are_counted_and_their_work_is_told(book):
    ran, busy_s = book.add(
        block("w1", 1, [row(1), row(2, length_s=2.5), row(3, Outcome.DROPPED_LATE)])
    )

    assert (ran, busy_s) == (2, 3.5)
    assert book.ledger.accounting().ok == 2
    assert book.ledger.accounting().drops == {"late": 1}
    assert book.statistics.busy_s == pytest.approx(3.5)


def test_numbers_given_back_can_be_placed_again(book):
    assert book.add(block("w1", 1, returned=[[4, 6]])) == (0, 0.0)

    assert book.ledger.available(5) == 2


def test_rows_that_do_not_count_are_not_in_the_statistics(book):
    book.add(block("w1", 1, [row(1), row(2)]))

    book.add(block("w1", 2, [row(2), row(3, length_s=4.0)]))

    assert book.ledger.stale == 1
    assert book.statistics.busy_s == pytest.approx(1 + 1 + 4)


def test_failures_are_told_by_what_went_wrong(book):
    failure = [1, "ValueError", "no such thing", "Traceback: here"]

    book.add(block("w1", 1, [row(1, Outcome.FAILED)], failures=[failure]))

    (group,) = book.statistics.errors.groups()
    assert (group.etype, group.message, group.count) == ("ValueError", "no such thing", 1)


def test_waiting_and_cut_outputs_are_summed(book):
    book.add(block("w1", 1, want_ns=5, cut=1))
    book.add(block("w1", 2, want_ns=7, cut=2))

    assert (book.want_ns, book.cut) == (12, 3)


@pytest.mark.parametrize(
    "spoilt",
    [
        {"columns": {"rows": 3}},
        {"returned": [[4, "six"]]},
        {"returned": [4]},
        {"failures": [["one", "ValueError", "", ""]]},
        {"failures": [[1]]},
        {"failures": [[2**32, "ValueError", "", ""]]},
        {"life": [[int(LifeEvent.NOT_BEGUN), 1, 0, 1, 2**32]]},
    ],
)
def test_a_block_of_another_shape_is_refused_and_changes_nothing(book, spoilt):
    with pytest.raises(Untrusted):
        book.add(block("w1", 1, **{"rows": [row(1)], "want_ns": 5, **spoilt}))

    assert book.want_ns == 0
    assert book.ledger.accounting().ok == 0
    assert book.ledger.outstanding("w1") == 5


def test_rows_of_the_warm_up_count_in_the_ledger_alone():
    book = WorkloadResults(idempotent=False, sla=SlaEvaluator((), None), warmup_s=1.0)
    book.ledger.cut("w1", 1, book.ledger.allot(4, 4))
    early = [row(1), row(2, Outcome.DROPPED_LATE, length_s=0.0)]
    later = row_of(3, int(Outcome.OK), 0, 2 * S, 3 * S, 0, 0, (), None)

    assert book.add(block("w1", 1, [*early, later])) == (2, 2.0)
    book.add(block("w1", 2, [(4, *later[1:])]))

    assert book.ledger.accounting().ok == 3
    assert book.warmup_rows == 2
    assert book.statistics.ran == 2
    assert book.busy_s == pytest.approx(3.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"lags": b"123"},
        {"blocked": [["a", -1]]},
        {"blocked": [["a"]]},
        {"blocked": [7]},
        {"asides": [["a", "b"]]},
    ],
)
def test_what_is_no_measure_of_an_event_loop_is_refused(book, wrong):
    with pytest.raises(Untrusted):
        book.add(block("w1", 1, **wrong))

    assert book.statistics.loop_lag.count == 0


def test_how_late_event_loops_were_is_added_up(book):
    lags = np.array([5, 7 * S], "<i8").tobytes()
    book.add(block("w1", 1, lags=lags, blocked=[["shop.py:3", S], ["shop.py:9", S]]))
    book.add(block("w2", 1, lags=lags, blocked=[["shop.py:3", S]]))

    assert (book.statistics.loop_lag.count, book.statistics.loop_lag.max) == (4, 7 * S)
    assert book.statistics.blocked.most_common(1) == [("shop.py:3", 2 * S)]


def test_a_load_is_judged_once_an_iteration_has_ended_and_at_its_end():
    plugins = SimpleNamespace(get=lambda kind, name: FailureRate)
    empty, under_load = (
        WorkloadResults(
            idempotent=False,
            sla=SlaEvaluator((Named(name="failure_rate", config={"max": 0}),), plugins),
        )
        for _ in range(2)
    )
    under_load.ledger.cut("w1", 1, under_load.ledger.allot(5, 5))

    before = under_load.judge()
    under_load.add(block("w1", 1, [row(1)]))
    empty.ledger.close(0)

    assert before == ()
    assert [one.success for one in under_load.judge()] == [True]
    assert len(empty.judge()) == 1
