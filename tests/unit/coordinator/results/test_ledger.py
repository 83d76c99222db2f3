"""The ledger of one workload, case by case."""

from __future__ import annotations

import numpy as np
import pytest

from osbench.common.intervals import Intervals
from osbench.common.outcomes import Outcome
from osbench.coordinator.results.ledger import Ledger

OK, FAILED, LATE_DROP = Outcome.OK, Outcome.FAILED, Outcome.DROPPED_LATE


def place(ledger: Ledger, batch: int, worker: str, count: int, budget: int | None = 100) -> list:
    numbers = ledger.allot(count, budget)
    ledger.cut(batch, worker, numbers)
    return numbers.members().tolist()


def report(ledger: Ledger, worker: str, numbers: list[int], outcome: int = OK) -> list[bool]:
    outcomes = np.full(len(numbers), outcome, np.uint8)
    return ledger.report(worker, np.array(numbers, np.int64), outcomes).tolist()


def give_up(ledger: Ledger, worker: str, claimed: set[int]) -> None:
    ledger.fence(worker)
    for batch in ledger.batches_of(worker):
        if batch in claimed:
            ledger.claimed(batch)
        else:
            ledger.revoked(batch)


def test_numbers_are_given_out_in_order_up_to_the_budget():
    ledger = Ledger()

    assert place(ledger, 1, "w1", 3, budget=5) == [1, 2, 3]
    assert ledger.available(5) == 2
    assert place(ledger, 2, "w2", 3, budget=5) == [4, 5]
    assert ledger.available(5) == 0
    assert ledger.available(None) is None
    assert ledger.outstanding("w1") == 3
    assert ledger.outstanding("nobody") == 0


def test_a_whole_run_adds_up():
    ledger = Ledger()
    place(ledger, 1, "w1", 5, budget=5)

    report(ledger, "w1", [1, 2, 3])
    report(ledger, "w1", [4], FAILED)
    report(ledger, "w1", [5], Outcome.TIMED_OUT)
    ledger.close(5)

    sums = ledger.accounting(duplicates=3, refused=2)
    assert (sums.planned, sums.ok, sums.failed, sums.timed_out) == (5, 3, 1, 1)
    assert (sums.lost, sums.not_started, sums.duplicates, sums.refused) == (0, 0, 3, 2)
    assert not ledger.open
    assert ledger.settled == ledger.decided == 5


def test_drops_are_counted_by_reason():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)

    report(ledger, "w1", [1, 2], LATE_DROP)
    report(ledger, "w1", [3], Outcome.DROPPED_CAPACITY)

    assert ledger.accounting().drops == {"late": 2, "capacity": 1}
    assert ledger.accounting().dropped == 3


def test_what_was_reported_twice_is_stale():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)
    report(ledger, "w1", [1, 2])

    assert report(ledger, "w1", [2, 3]) == [False, True]
    assert ledger.stale == 1
    assert ledger.accounting().ok == 3


def test_a_number_twice_in_one_block_counts_once():
    ledger = Ledger()
    place(ledger, 1, "w1", 2)

    taken = report(ledger, "w1", [2, 1, 2])

    assert taken == [True, True, False]
    assert ledger.accounting().ok == 2
    assert ledger.stale == 1


def test_what_a_worker_never_had_is_stale():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)

    assert report(ledger, "w2", [1, 99]) == [False, False]
    assert ledger.outstanding("w1") == 3


def test_numbers_given_back_are_placed_again_first():
    ledger = Ledger()
    place(ledger, 1, "w1", 5)

    ledger.give_back("w1", [(2, 4)])

    assert ledger.available(5) == 2
    assert place(ledger, 2, "w2", 3) == [2, 3, 6]
    assert ledger.outstanding("w1") == 3


def test_what_nobody_has_cannot_be_given_back():
    ledger = Ledger()
    place(ledger, 1, "w1", 2)
    report(ledger, "w1", [1])

    ledger.give_back("w1", [(1, 2), (50, 60)])
    ledger.give_back("w2", [(2, 3)])

    assert not ledger.pool


def test_a_revoked_batch_can_be_placed_again():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)

    back = ledger.revoked(1)

    assert back == ledger.pool == Intervals([(1, 4)])
    assert not ledger.open


def test_open_batches_are_newest_first_without_claimed_and_finished_ones():
    ledger = Ledger()
    for batch in (1, 2, 3, 4):
        place(ledger, batch, "w1", 2)
    place(ledger, 5, "w2", 2)

    report(ledger, "w1", [3, 4])
    ledger.claimed(3)

    assert ledger.open_batches("w1") == [4, 1]
    assert ledger.open_batches("w2") == [5]
    assert ledger.open_batches("nobody") == []


def test_batches_that_are_over_are_forgotten():
    ledger = Ledger()
    for batch in range(1, 101):
        place(ledger, batch, "w1", 1)
        if batch % 2:
            report(ledger, "w1", [batch])
        else:
            ledger.give_back("w1", [(batch, batch + 1)])
            ledger.allot(1, 0)

    assert not ledger.batches


def test_a_number_that_comes_back_to_its_worker_is_in_the_new_batch_alone():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)
    ledger.give_back("w1", [(2, 3)])
    place(ledger, 2, "w1", 1)

    give_up(ledger, "w1", claimed={1})

    assert ledger.pool == Intervals([(2, 3)])
    assert ledger.decided == 2


def test_claimed_numbers_of_a_worker_given_up_are_lost_where_nobody_reports_them():
    ledger = Ledger()
    place(ledger, 1, "w1", 2)
    place(ledger, 2, "w1", 2)

    give_up(ledger, "w1", claimed={1})
    assert ledger.decided == 2
    place(ledger, 3, "w2", 2)
    report(ledger, "w2", [3, 4])
    ledger.close(4)

    sums = ledger.accounting()
    assert (sums.ok, sums.lost, sums.late) == (2, 2, 0)


def test_results_behind_the_fence_settle_suspect_numbers():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)
    give_up(ledger, "w1", claimed={1})

    assert report(ledger, "w1", [1, 2, 99]) == [True, True, False]
    ledger.close(3)

    sums = ledger.accounting()
    assert (sums.ok, sums.lost, sums.late, sums.stale) == (2, 1, 2, 1)


def test_results_before_the_batches_were_taken_away_count_too():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)
    ledger.fence("w1")

    assert report(ledger, "w1", [1]) == [True]
    ledger.claimed(1)
    ledger.close(3)

    assert (ledger.accounting().ok, ledger.accounting().lost) == (1, 2)


def test_suspect_numbers_that_are_given_back_can_be_placed_again():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)
    give_up(ledger, "w1", claimed={1})

    ledger.give_back("w1", [(2, 4)])

    assert ledger.pool == Intervals([(2, 4)])
    assert ledger.decided == 1


def rerun() -> Ledger:
    """Numbers 1 and 2 were claimed by w1, which was given up, and are run again by w2."""
    ledger = Ledger(idempotent=True)
    place(ledger, 1, "w1", 2)
    give_up(ledger, "w1", claimed={1})
    place(ledger, 2, "w2", 2)
    return ledger


def test_idempotent_numbers_are_run_again():
    ledger = rerun()

    report(ledger, "w2", [1, 2])
    ledger.close(2)

    assert (ledger.accounting().ok, ledger.accounting().reruns) == (2, 2)


def test_the_first_result_counts_wherever_it_comes_from():
    ledger = rerun()

    assert report(ledger, "w1", [1]) == [True]
    assert report(ledger, "w2", [1, 2], FAILED) == [False, True]
    ledger.close(2)

    sums = ledger.accounting()
    assert (sums.ok, sums.failed, sums.late, sums.stale) == (1, 1, 1, 1)


def test_what_waits_to_be_run_again_need_not_be_once_it_is_reported():
    ledger = Ledger(idempotent=True)
    place(ledger, 1, "w1", 2)
    give_up(ledger, "w1", claimed={1})

    report(ledger, "w1", [1])

    assert ledger.pool == Intervals([(2, 3)])
    assert ledger.reruns == 1


@pytest.mark.parametrize("how", ["revoked", "given up", "given back"])
def test_a_rerun_that_was_settled_late_is_not_placed_a_third_time(how):
    ledger = rerun()
    report(ledger, "w1", [1])

    if how == "revoked":
        ledger.revoked(2)
    elif how == "given up":
        give_up(ledger, "w2", claimed={2})
    else:
        ledger.give_back("w2", [(1, 3)])

    assert ledger.pool == Intervals([(2, 3)])


def test_reruns_that_were_not_placed_are_lost():
    ledger = Ledger(idempotent=True)
    place(ledger, 1, "w1", 2, budget=None)
    give_up(ledger, "w1", claimed={1})

    ledger.release_unused()
    ledger.close(None)

    sums = ledger.accounting()
    assert (sums.planned, sums.lost, sums.reruns) == (2, 2, 0)


def test_arrivals_that_are_too_late_to_be_placed_are_dropped():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)
    give_up(ledger, "w1", claimed=set())

    ledger.drop(Intervals([(1, 3)]), Outcome.DROPPED_WORKER_LOST)

    assert ledger.pool == Intervals([(3, 4)])
    assert ledger.accounting().drops == {"worker_lost": 2}


def test_reruns_that_are_too_late_are_not_dropped_for_they_may_have_started():
    ledger = Ledger(idempotent=True)
    place(ledger, 1, "w1", 2)
    give_up(ledger, "w1", claimed={1})

    ledger.drop(ledger.pool.copy(), Outcome.DROPPED_WORKER_LOST)
    report(ledger, "w1", [1])
    ledger.close(2)

    sums = ledger.accounting()
    assert (sums.ok, sums.dropped, sums.lost, sums.reruns) == (1, 0, 1, 0)


def test_unused_numbers_leave_the_plan_of_a_duration():
    ledger = Ledger()
    place(ledger, 1, "w1", 5, budget=None)
    report(ledger, "w1", [1, 2])
    ledger.give_back("w1", [(3, 6)])

    ledger.release_unused()
    ledger.close(None)

    assert (ledger.accounting().planned, ledger.accounting().ok) == (2, 2)
    assert ledger.accounting().not_started == 0


def test_what_was_never_given_out_was_not_started():
    ledger = Ledger()
    place(ledger, 1, "w1", 5)
    ledger.give_back("w1", [(4, 6)])

    ledger.close(10)

    sums = ledger.accounting()
    assert (sums.planned, sums.lost, sums.not_started) == (10, 3, 7)


def test_results_after_the_close_take_numbers_out_of_the_lost_ones():
    ledger = Ledger()
    place(ledger, 1, "w1", 5)
    ledger.close(5)

    assert report(ledger, "w1", [1, 2]) == [True, True]
    ledger.give_back("w1", [(3, 4)])
    ledger.give_back("w1", [(1, 2)])

    sums = ledger.accounting()
    assert (sums.ok, sums.lost, sums.not_started, sums.planned) == (2, 2, 1, 5)


def test_a_rerun_given_back_after_the_close_stays_lost():
    ledger = rerun()
    ledger.close(2)

    ledger.give_back("w2", [(1, 3)])
    report(ledger, "w1", [1])

    sums = ledger.accounting()
    assert (sums.ok, sums.lost, sums.not_started) == (1, 1, 0)


def test_closing_again_changes_nothing():
    ledger = Ledger()
    place(ledger, 1, "w1", 3, budget=None)
    ledger.give_back("w1", [(3, 4)])
    ledger.release_unused()
    ledger.close(None)
    before = ledger.accounting()

    ledger.release_unused()
    ledger.close(None)

    assert ledger.accounting() == before
    assert (before.planned, before.lost) == (2, 2)


def test_new_numbers_leave_those_to_be_placed_again_where_they_are():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)
    ledger.revoked(1)

    assert ledger.allot_new(2) == Intervals([(4, 6)])
    assert ledger.pool == Intervals([(1, 4)])
    assert not ledger.allot_new(0)
