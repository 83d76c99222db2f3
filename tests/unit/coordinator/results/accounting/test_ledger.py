"""The ledger of one workload, case by case."""

from __future__ import annotations

import numpy as np
import pytest

from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.ledger import Ledger

OK, FAILED, LATE_DROP = Outcome.OK, Outcome.FAILED, Outcome.DROPPED_LATE
WORKER_LOST = Outcome.DROPPED_WORKER_LOST


def place(ledger: Ledger, seq: int, member: str, count: int, budget: int | None = 100) -> list:
    numbers = ledger.allot(count, budget, member)
    ledger.cut(member, seq, numbers)
    return numbers.members().tolist()


def report(ledger: Ledger, member: str, numbers: list[int], outcome: int = OK) -> list[bool]:
    outcomes = np.full(len(numbers), outcome, np.uint8)
    return ledger.report(member, np.array(numbers, np.int64), outcomes).tolist()


def test_numbers_are_given_out_in_order_up_to_the_budget():
    ledger = Ledger()

    assert place(ledger, 1, "w1", 3, budget=5) == [1, 2, 3]
    assert ledger.available(5) == 2
    assert place(ledger, 1, "w2", 3, budget=5) == [4, 5]
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
    numbers = ledger.allot_new(2)
    ledger.drop(numbers, Outcome.DROPPED_COORDINATOR_GONE)

    drops = {"late": 2, "capacity": 1, "coordinator_gone": 2}
    assert ledger.accounting().drops == drops
    assert ledger.accounting().dropped == 5


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


def test_what_a_member_never_had_is_stale():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)

    assert report(ledger, "w2", [1, 99]) == [False, False]
    assert ledger.outstanding("w1") == 3


# consent


def test_numbers_given_back_are_placed_again_first():
    ledger = Ledger()
    place(ledger, 1, "w1", 5)

    ledger.give_back("w1", [(2, 4)])

    assert ledger.available(5) == 2
    assert place(ledger, 1, "w2", 3) == [2, 3, 6]
    assert ledger.outstanding("w1") == 3


def test_what_nobody_has_cannot_be_given_back():
    ledger = Ledger()
    place(ledger, 1, "w1", 2)
    report(ledger, "w1", [1])

    ledger.give_back("w1", [(1, 2), (50, 60)])
    ledger.give_back("w2", [(2, 3)])

    assert not ledger.pool


def test_batches_that_are_void_come_back():
    ledger = Ledger()
    for seq in (1, 2, 3):
        place(ledger, seq, "w1", 2)
    report(ledger, "w1", [3])

    ledger.reject("w1", [2, 3, 9])

    assert ledger.pool == Intervals([(4, 7)])
    assert ledger.open_batches("w1") == [1]


def test_a_final_block_gives_everything_back():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)
    place(ledger, 2, "w1", 3)
    report(ledger, "w1", [1, 4])

    ledger.consent("w1")
    ledger.consent("nobody")

    assert ledger.pool == Intervals([(2, 4), (5, 7)])
    assert not ledger.open


def test_silence_moves_nothing():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)

    ledger.mark_lost("w1")

    assert not ledger.pool
    assert ledger.open
    ledger.close(3)
    assert ledger.accounting().lost == 3


@pytest.mark.parametrize(
    ("seq", "number", "expected"),
    [
        (0, 0, [(2, 10)]),
        (1, 2, [(3, 10)]),
        (1, 3, [(4, 10)]),
        (2, 5, [(6, 10)]),
        (3, 9, []),
    ],
)
def test_what_lies_behind_the_last_number_that_was_taken(seq, number, expected):
    ledger = Ledger()
    for one in (1, 2, 3):
        place(ledger, one, "w1", 3)
    report(ledger, "w1", [1])

    assert ledger.behind("w1", seq, number) == Intervals(expected)
    assert not ledger.behind("nobody", 0, 0)


def test_what_lies_behind_follows_batches_not_numbers():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)
    place(ledger, 2, "w1", 3)
    ledger.give_back("w1", [(1, 3)])
    assert place(ledger, 3, "w1", 2) == [1, 2]

    assert ledger.behind("w1", 2, 5) == Intervals([(1, 3), (6, 7)])
    assert ledger.batch("w1", 1) == Intervals([(3, 4)])
    assert ledger.batch("w1", 3) == Intervals([(1, 3)])


def test_open_batches_are_newest_first_without_finished_ones():
    ledger = Ledger()
    for seq in (1, 2, 3, 4):
        place(ledger, seq, "w1", 2)
    place(ledger, 1, "w2", 2)

    report(ledger, "w1", [3, 4])

    assert ledger.open_batches("w1") == [4, 3, 1]
    assert ledger.open_batches("w2") == [1]
    assert ledger.open_batches("nobody") == []


def test_batches_that_are_over_are_forgotten():
    ledger = Ledger()
    for seq in range(1, 101):
        place(ledger, seq, "w1", 1)
        if seq % 2:
            report(ledger, "w1", [seq])
        else:
            ledger.give_back("w1", [(seq, seq + 1)])
            ledger.drop(ledger.pool.copy(), WORKER_LOST)

    assert not ledger._held["w1"].batches


def test_numbers_that_were_allotted_and_not_granted_are_not_lost():
    ledger = Ledger()
    place(ledger, 1, "w1", 2, budget=None)
    ledger.allot(3, None)

    ledger.close(None)

    sums = ledger.accounting()
    assert (sums.planned, sums.lost, sums.not_started) == (5, 2, 3)


# lost members


def test_results_of_a_lost_member_count_and_are_late():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)
    ledger.mark_lost("w1")

    assert report(ledger, "w1", [1, 2, 99]) == [True, True, False]
    assert (ledger.late, ledger.stale, ledger.decided) == (2, 1, 3)
    ledger.heard("w1")
    assert ledger.decided == 2
    report(ledger, "w1", [3])

    ledger.close(3)
    assert (ledger.accounting().ok, ledger.late) == (3, 2)


def test_what_a_lost_member_gives_back_can_be_placed_again():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)
    ledger.mark_lost("w1")

    ledger.give_back("w1", [(2, 4)])

    assert ledger.pool == Intervals([(2, 4)])
    assert ledger.decided == 1


def rerun(count: int = 2) -> Ledger:
    """Numbers from 1 were granted to w1, which was lost, and are run again by w2."""
    ledger = Ledger(idempotent=True)
    place(ledger, 1, "w1", count)
    ledger.mark_lost("w1")
    ledger.offer_again("w1")
    place(ledger, 1, "w2", count)
    return ledger


def test_idempotent_numbers_are_run_again():
    ledger = rerun()

    report(ledger, "w2", [1, 2])
    ledger.close(2)

    assert (ledger.accounting().ok, ledger.accounting().reruns) == (2, 2)


def test_running_them_again_twice_is_the_same_as_once():
    ledger = Ledger(idempotent=True)
    place(ledger, 1, "w1", 2)
    ledger.offer_again("w1")
    before = ledger.pool.copy()
    place(ledger, 1, "w2", 1)

    ledger.offer_again("w1")
    ledger.offer_again("nobody")

    assert before == Intervals([(1, 3)])
    assert ledger.pool == Intervals([(2, 3)])
    assert ledger.reruns == 1


def test_a_member_is_never_granted_what_it_has_open():
    ledger = Ledger(idempotent=True)
    place(ledger, 1, "w1", 2)
    ledger.offer_again("w1")

    assert place(ledger, 2, "w1", 2) == [3, 4]
    assert place(ledger, 1, "w2", 3) == [1, 2, 5]


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
    ledger.offer_again("w1")

    report(ledger, "w1", [1])

    assert ledger.pool == Intervals([(2, 3)])
    assert ledger.reruns == 0


def test_what_is_run_again_comes_back_only_from_whom_it_was_granted_to_last():
    ledger = rerun()

    ledger.consent("w1")
    assert not ledger.pool
    assert ledger.reruns == 2

    ledger.give_back("w2", [(1, 2)])
    assert ledger.pool == Intervals([(1, 2)])
    assert ledger.reruns == 1


def test_a_rerun_that_was_not_started_can_be_placed_a_third_time():
    ledger = rerun()

    ledger.give_back("w2", [(1, 3)])

    assert ledger.pool == Intervals([(1, 3)])
    assert ledger.reruns == 0
    assert place(ledger, 2, "w1", 2) == [3, 4]


def test_a_rerun_that_was_settled_late_is_not_placed_a_third_time():
    ledger = rerun()
    report(ledger, "w1", [1])

    ledger.give_back("w2", [(1, 3)])

    assert ledger.pool == Intervals([(2, 3)])


def test_a_rerun_that_is_too_late_is_dropped_though_the_first_may_have_started():
    ledger = rerun(3)

    assert report(ledger, "w2", [1, 2], LATE_DROP) == [True, True]
    assert (ledger.settled, ledger.reruns) == (2, 1)

    assert report(ledger, "w1", [1, 3]) == [False, True]
    ledger.consent("w1")
    ledger.close(3)

    sums = ledger.accounting()
    assert (sums.ok, sums.dropped, sums.lost, sums.not_started) == (1, 2, 0, 0)
    assert (sums.late, sums.stale) == (1, 1)


def test_what_one_has_dropped_and_another_drops_later_is_dropped_once():
    ledger = rerun()

    report(ledger, "w2", [1, 2], LATE_DROP)
    assert report(ledger, "w1", [1, 2], LATE_DROP) == [False, False]

    ledger.close(2)
    assert ledger.accounting().dropped == 2


def test_reruns_that_were_not_placed_are_lost():
    ledger = Ledger(idempotent=True)
    place(ledger, 1, "w1", 2, budget=None)
    ledger.offer_again("w1")

    ledger.release_unused()
    ledger.close(None)

    sums = ledger.accounting()
    assert (sums.planned, sums.lost, sums.reruns) == (2, 2, 0)


# drops


def test_arrivals_that_are_too_late_to_be_placed_are_dropped():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)
    ledger.consent("w1")

    ledger.drop(Intervals([(1, 3)]), WORKER_LOST)

    assert ledger.pool == Intervals([(3, 4)])
    assert ledger.accounting().drops == {"worker_lost": 2}


def test_idempotent_arrivals_too_late_to_be_run_again_are_dropped_though_perhaps_started():
    ledger = Ledger(idempotent=True)
    place(ledger, 1, "w1", 3)
    ledger.mark_lost("w1")
    ledger.offer_again("w1")
    report(ledger, "w1", [3])

    ledger.drop(Intervals([(1, 3)]), WORKER_LOST)

    assert not ledger.pool
    assert ledger.decided == 3
    assert report(ledger, "w1", [1]) == [False]
    ledger.consent("w1")
    ledger.close(3)
    sums = ledger.accounting()
    assert (sums.ok, sums.lost, sums.not_started, sums.reruns) == (1, 0, 0, 0)
    assert (sums.drops, sums.stale) == ({"worker_lost": 2}, 1)


# the end


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
    assert sums.late == 2


def test_a_rerun_given_back_after_the_close_stays_lost_while_the_first_is_unknown():
    ledger = rerun()
    ledger.close(2)

    ledger.give_back("w2", [(1, 3)])
    assert ledger.accounting().lost == 2
    report(ledger, "w1", [1])
    ledger.consent("w1")

    sums = ledger.accounting()
    assert (sums.ok, sums.lost, sums.not_started) == (1, 0, 1)


def test_what_another_settled_is_not_open_after_the_close():
    ledger = rerun()
    report(ledger, "w2", [1, 2])
    ledger.close(2)

    assert report(ledger, "w1", [1]) == [False]
    assert ledger.accounting().lost == 0


def test_closing_again_changes_nothing():
    ledger = Ledger()
    place(ledger, 1, "w1", 3, budget=None)
    ledger.give_back("w1", [(3, 4)])
    ledger.release_unused()
    ledger.close(None)
    before = ledger.accounting()

    ledger.release_unused()
    ledger.offer_again("w1")
    ledger.close(None)

    assert ledger.accounting() == before
    assert (before.planned, before.lost) == (2, 2)


def test_new_numbers_leave_those_to_be_placed_again_where_they_are():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)
    ledger.consent("w1")

    assert ledger.allot_new(2) == Intervals([(4, 6)])
    assert ledger.pool == Intervals([(1, 4)])
    assert not ledger.allot_new(0)


def test_a_cut_of_numbers_that_were_not_allotted_here_allots_them():
    ledger = Ledger()

    ledger.cut("w1", 1, Intervals([(3, 5)]))

    assert ledger.allotted == 4
    assert ledger.pool == Intervals([(1, 3)])
    assert ledger.outstanding("w1") == 2


def test_what_a_damaged_member_has_open_is_decided_and_lost_at_the_end():
    ledger = Ledger()
    place(ledger, 1, "w1", 3)
    place(ledger, 1, "w2", 2)

    ledger.damaged("w1")
    report(ledger, "w1", [1])

    assert (ledger.settled, ledger.decided) == (1, 3)
    # it is there: what comes of it is not late
    assert ledger.late == 0
    ledger.close(5)
    assert ledger.accounting().lost == 4
