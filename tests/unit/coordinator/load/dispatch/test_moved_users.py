"""Moving virtual users: lower, wait, raise."""

from __future__ import annotations

from helpers.memberships import handle
from osbench.coordinator.load.dispatch.moved_users import regrant
from osbench.coordinator.load.fleet.worker import WorkerHandle


def member(**fields) -> WorkerHandle:
    return handle(**fields)


def test_users_are_given_to_another_worker_only_once_they_are_free():
    old, new = member(user_limit=4, held=4, generation=1), member()

    assert regrant([old, new], [2, 2]) == [old]
    assert (old.user_limit, old.generation, new.user_limit) == (2, 2, 0)
    assert regrant([old, new], [2, 2]) == []
    old.held = 2
    assert regrant([old, new], [2, 2]) == [new]

    assert (old.user_limit, new.user_limit, new.held, new.generation) == (2, 2, 2, 1)


def test_a_worker_gets_what_it_still_holds_back_together_with_what_is_free():
    busy, other = member(user_limit=1, held=3, generation=2), member()

    regrant([busy, other], [5, 0])

    assert (busy.user_limit, busy.held) == (5, 5)


def test_nothing_is_given_while_more_are_held_than_asked_for():
    busy, other = member(user_limit=0, held=6), member()

    assert regrant([busy, other], [0, 4]) == []
    assert other.user_limit == 0


def test_what_others_may_have_is_given_to_nobody():
    here = member()

    assert regrant([here], [4], elsewhere=3) == [here]
    assert (here.target, here.user_limit) == (4, 1)
    assert regrant([here], [4]) == [here]
    assert here.user_limit == 4
