"""What a workload's book counts where, warm-up included."""

from helpers.result_rows import row_of
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.columns import encode_rows
from osbench.common.protocol.messages import Block
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.workload_results import WorkloadResults

SECOND = 1_000_000_000


def block(rows):
    return Block(
        run="r",
        membership="m",
        incarnation="w",
        number=1,
        workload=0,
        columns=encode_rows(rows, [], 0),
    )


def book_of(count, **options):
    book = WorkloadResults(idempotent=False, sla=SlaEvaluator((), Plugins()), **options)
    book.ledger.cut("w", 1, book.ledger.allot(count, count))
    return book


def row(number, started_s, length_s=0.5, outcome=Outcome.OK, due_s=None):
    due, started = int((started_s if due_s is None else due_s) * SECOND), int(started_s * SECOND)
    ended = started + int(length_s * SECOND)
    return row_of(number, int(outcome), due, started, ended, 0, 0, (), None)


def test_rows_of_the_warm_up_count_in_the_ledger_alone():
    book = book_of(4, warmup_s=2)

    book.add(block([row(1, 0), row(2, 1.9), row(3, 2), row(4, 2.5)]))
    book.ledger.close(4)

    assert book.ledger.accounting().ok == 4
    assert book.statistics.ran == 2
    assert book.warmup_rows == 2
    assert book.statistics.first_start == 2 * SECOND
    assert book.busy_s == 2.0


def test_a_dropped_arrival_belongs_to_when_it_was_due():
    book = book_of(2, warmup_s=2)
    late = Outcome.DROPPED_LATE

    book.add(block([row(1, 2.9, 0, late, due_s=1.9), row(2, 3, 0, late, due_s=2)]))

    assert book.ledger.accounting().dropped == 2
    assert book.statistics.count("dropped") == 1


def test_without_a_warm_up_everything_counts():
    book = book_of(2)

    book.add(block([row(1, 0), row(2, 1)]))

    assert (book.statistics.ran, book.warmup_rows) == (2, 0)
