"""Batches of a membership are taken once and in order, or never."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from helpers.engines import batch
from osbench.common.protocol.messages import Batch
from osbench.worker.session.intake import EARLY_MOST, Intake


@pytest.fixture
def intake():
    return Intake(run="r", incarnation="w", session="s")


def numbered(seq: int, session: str = "s") -> Batch:
    return replace(batch((10 * seq, 10 * seq + 10), number=seq), session=session)


def seqs(batches: list[Batch]) -> list[int]:
    return [one.seq for one in batches]


@pytest.mark.parametrize(
    ("field", "reason"),
    [("run", "other run"), ("incarnation", "other worker"), ("session", "other session")],
)
def test_batches_of_others_are_refused(intake, field, reason):
    assert intake.offer(replace(numbered(1), **{field: "x"})) == ([], reason)
    assert intake.got == 0


def test_batches_begin_in_their_order(intake):
    early = [intake.offer(numbered(seq)) for seq in (3, 2)]
    taken, _ = intake.offer(numbered(1))

    assert early == [([], ""), ([], "")]
    assert seqs(taken) == [1, 2, 3]
    assert intake.got == 3


def test_a_batch_that_comes_again_is_not_taken_again(intake):
    intake.offer(numbered(1))
    intake.offer(numbered(3))

    assert intake.offer(numbered(1)) == ([], "")
    assert intake.offer(numbered(3)) == ([], "")
    assert seqs(intake.offer(numbered(2))[0]) == [2, 3]


def test_few_batches_wait_for_earlier_ones(intake):
    last = EARLY_MOST

    assert intake.offer(numbered(last)) == ([], "")
    assert intake.offer(numbered(last + 1)) == ([], "too early")
    intake.offer(numbered(1))
    assert intake.offer(numbered(last + 1)) == ([], "")


def test_a_recalled_batch_is_held_or_void(intake):
    intake.offer(numbered(1))
    intake.offer(numbered(3))

    recalled = intake.recall([3, 1])

    assert (recalled.held, recalled.voids, recalled.taken) == ([1], [3], [])
    assert seqs(intake.offer(numbered(2))[0]) == [2]
    assert intake.got == 3
    assert intake.offer(numbered(3)) == ([], "")


def test_a_batch_that_is_recalled_before_it_came_is_never_taken(intake):
    intake.recall([2])

    assert seqs(intake.offer(numbered(1))[0]) == [1]
    assert intake.offer(numbered(2)) == ([], "")
    assert seqs(intake.offer(numbered(3))[0]) == [3]


def test_a_recall_lets_those_begin_that_waited_for_it(intake):
    intake.offer(numbered(2))

    recalled = intake.recall([1])

    assert recalled.voids == [1]
    assert seqs(recalled.taken) == [2]


def test_each_batch_is_recalled_once(intake):
    intake.offer(numbered(1))
    intake.recall([1, 2])

    again = intake.recall([1, 2])

    assert (again.held, again.voids) == ([], [])


def test_the_next_session_goes_on_where_the_last_one_was(intake):
    intake.offer(numbered(1))
    intake.offer(numbered(3))
    intake.recall([4])

    intake.rebind("t")

    assert intake.offer(numbered(2)) == ([], "other session")
    assert seqs(intake.offer(numbered(2, "t"))[0]) == [2]
    assert seqs(intake.offer(numbered(3, "t"))[0]) == [3]
    assert intake.got == 4


@pytest.mark.parametrize("seed", range(20))
def test_in_any_order_each_is_taken_once_or_recalled(intake, seed):
    chance = random.Random(seed)
    begun: list[int] = []
    held, voids = set(), set()
    while intake.got < 30:
        if chance.random() < 0.1:
            recalled = intake.recall([chance.randint(1, 30)])
            held.update(recalled.held)
            voids.update(recalled.voids)
            begun += seqs(recalled.taken)
        begun += seqs(intake.offer(numbered(chance.randint(1, 30)))[0])

    assert begun == sorted(set(range(1, 31)) - voids)
    assert held <= set(begun)
