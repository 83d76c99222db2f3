"""What a worker process is offered, what it may claim, and what it owns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from osbench.common.protocol.messages import Batch
from osbench.worker.session.intake import Intake

BATCH = Batch(run="r", epoch="e", incarnation="w", workload=0, batch=1, intervals=[(1, 4)])


def batch(number: int, size: int = 3, *, workload: int = 0, due: int | None = None) -> Batch:
    low = 100 * number
    dues = b"" if due is None else np.arange(due, due + size, dtype="<i8").tobytes()
    return replace(BATCH, batch=number, workload=workload, intervals=[(low, low + size)], dues=dues)


@pytest.fixture
def intake():
    found = Intake("r", "e", "w")
    found.serve(0)
    return found


def ids(batches: list[Batch]) -> list[int]:
    return [found.batch for found in batches]


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("run", "of another run"),
        ("epoch", "of another run"),
        ("incarnation", "for another worker process"),
    ],
)
def test_batches_for_others_are_refused(intake, field, reason):
    assert intake.offer(replace(BATCH, **{field: "other"})) == reason
    assert len(intake) == 0


def test_a_batch_is_taken_once_and_older_ones_never(intake):
    assert intake.offer(batch(2)) == ""

    assert intake.offer(batch(2)) == "seen before"
    assert intake.offer(batch(1)) == "seen before"
    assert ids(intake.first(100)) == [2]


def test_a_batch_is_refused_again_after_it_was_settled(intake):
    intake.offer(batch(1))
    intake.settle(intake.first(1), ["w"])

    assert intake.offer(batch(1)) == "seen before"


def test_the_first_batches_hold_at_least_what_is_wanted(intake):
    for number in (1, 2, 3):
        intake.offer(batch(number))

    assert ids(intake.first(0)) == []
    assert ids(intake.first(3)) == [1]
    assert ids(intake.first(4)) == [1, 2]
    assert ids(intake.first(99)) == [1, 2, 3]


def test_batches_are_claimed_when_their_first_arrival_is_near(intake):
    intake.offer(batch(1, due=100))
    intake.offer(batch(2, due=300))
    intake.offer(batch(3, due=200))

    assert ids(intake.due_before(100)) == []
    assert ids(intake.due_before(201)) == [1, 3]


def test_only_what_we_own_is_run(intake):
    for number in (1, 2, 3):
        intake.offer(batch(number))
    wanted = intake.first(9)
    assert intake.ask(wanted) == [1, 2, 3]

    assert ids(intake.settle(wanted, ["w", "-", "other"])) == [1]
    assert len(intake) == 0


def test_claims_without_an_answer_are_asked_again_whatever_comes(intake):
    for number in (1, 2):
        intake.offer(batch(number))
    intake.ask(intake.first(1))
    assert ids(intake.unanswered()) == [1]

    intake.clear()

    assert ids(intake.unanswered()) == ids(intake.first(99)) == [1]
    assert ids(intake.settle(intake.unanswered(), ["w"])) == [1]
    assert not intake.unanswered()


def test_batches_of_an_earlier_workload_do_not_stand_in_the_way(intake):
    intake.offer(batch(1))
    intake.ask(intake.first(1))
    intake.offer(batch(2))
    intake.offer(batch(3, workload=1, due=5))
    assert ids(intake.first(99)) == [1, 2]

    intake.serve(1)

    assert ids(intake.due_before(6)) == ids(intake.first(99)) == [3]
    assert not intake.unanswered()


def test_batches_of_the_next_workload_wait(intake):
    intake.offer(batch(1, workload=1, due=5))

    assert intake.first(99) == intake.due_before(99) == []
    assert len(intake) == 1
