"""Numbers of virtual users, what they did beside iterations, and soft checks."""

from __future__ import annotations

import json

import jsonschema
import msgpack
import pytest

from helpers.readme import REPOSITORY
from osbench.common.errors import Untrusted
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.messages import Block
from osbench.common.task import Named
from osbench.common.values.outcomes import LifeEvent
from osbench.coordinator.plugins.sla.checks import SoftCheckRate
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.accounting.merging import join
from osbench.coordinator.results.accounting.workload_results import WorkloadResults
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics
from osbench.coordinator.results.accounting.workload_users import (
    UserLives,
    UserRegister,
    read_events,
)
from osbench.coordinator.results.statistics.soft_checks import NAMES, OTHER, SoftChecks


def given(register: UserRegister, mid: str, count: int) -> list[tuple[int, int]]:
    numbers = register.numbers_for(mid, count, count, 0)
    register.give(mid, numbers)
    return numbers


def test_no_two_memberships_have_the_same_number():
    register = UserRegister()

    assert given(register, "a", 3) == [(1, 4)]
    assert given(register, "b", 2) == [(4, 6)]
    assert given(register, "a", 2) == []
    assert given(register, "a", 5) == [(6, 8)]
    assert register.of("a") == [(1, 4), (6, 8)]


def test_numbers_of_who_is_certainly_gone_are_given_again():
    register = UserRegister()
    given(register, "a", 3)
    given(register, "b", 3)
    register.free("a")

    assert given(register, "c", 2) == [(1, 3)]
    assert given(register, "d", 3) == [(3, 4), (7, 9)]
    register.free("nobody")
    assert register.numbers_for("e", 1, 1, 0) == [(9, 10)]


def test_who_is_certainly_gone_is_given_no_numbers_while_it_is_not_seen_to_be_silent():
    register = UserRegister()
    given(register, "a", 3)
    register.free("a")

    assert given(register, "a", 3) == []
    assert given(register, "b", 4) == [(1, 4), (4, 5)]


def test_new_numbers_beyond_the_plan_are_for_users_that_have_none():
    register = UserRegister()
    register.give("a", register.numbers_for("a", 4, 40, 40))

    assert register.of("a") == [(1, 41)]
    assert register.spare(40) == 0
    assert register.numbers_for("b", 0, 20, 40) == []
    assert register.numbers_for("b", 3, 20, 40) == [(41, 44)]


def test_the_last_numbers_of_a_membership_move_to_another():
    register = UserRegister()
    for numbers in ([(1, 11)], [(31, 41)]):
        register.give("a", numbers)
    register.give("b", [(11, 31)])

    back = register.beyond("a", 8)
    assert back == [(9, 11), (31, 41)]
    assert register.of("a", 8) == [(1, 9)]
    register.take_back("a", back)

    assert register.of("a") == [(1, 9)]
    assert register.spare(40) == 12
    assert register.numbers_for("c", 0, 10, 40) == [(9, 11), (31, 39)]


def test_a_register_is_the_same_after_a_replay():
    register, replayed = UserRegister(), UserRegister()
    record = [(mid, given(register, mid, count)) for mid, count in (("a", 2), ("b", 4), ("a", 3))]
    for mid, numbers in record:
        replayed.give(mid, numbers)

    assert replayed.of("a") == register.of("a")
    assert replayed.numbers_for("z", 2, 2, 0) == register.numbers_for("z", 2, 2, 0)


def test_lives_are_counted_with_their_errors():
    lives = UserLives()
    assert lives.to_dict() is None
    texts = {1: ("LoginError", "401", "tb")}
    rows = [[0, 1, 5, 1_000_005, 0], [1, 2, 0, 9, 1], [1, 2, 0, 9, 1], [3, 1, 0, 1, 2]]
    lives.add(read_events([*rows, [2, 1, 0, 2_000_000, 0], [4, 3, 1, 1, 0]]), texts)

    found = lives.to_dict()
    assert found is not None
    assert (found["started"], found["start_failures"]) == (1, 2)
    assert (found["stopped"], found["stop_failures"], found["replaced"]) == (1, 1, 1)
    assert found["start_s"]["max"] == pytest.approx(1e-3, rel=1e-3)
    assert found["errors"] == [
        {"what": "on_start", "type": "LoginError", "message": "401", "count": 2},
        {"what": "on_stop", "type": "(not described)", "message": "", "count": 1},
    ]


def test_users_that_never_began_are_counted_apart_from_attempts():
    lives = UserLives()
    texts = {1: ("LoginError", "401", "tb")}
    # user 1 begins, 2 begins at its second attempt, 3 and 4 never do, 1 is replaced and fails
    rows = [[0, 1, 0, 5, 0], [1, 2, 0, 9, 1], [0, 2, 0, 9, 0], [1, 3, 0, 9, 1], [1, 3, 0, 9, 1]]
    lives.add(read_events([*rows, [1, 4, 0, 9, 1], [4, 1, 0, 0, 0], [1, 1, 0, 9, 1]]), texts)

    found = lives.to_dict()

    assert found is not None
    assert (found["tried"], found["never_started"]) == (4, 2)
    schema = json.loads((REPOSITORY / "docs" / "results.schema.json").read_text())
    part = {"$defs": schema["$defs"], "$ref": "#/$defs/users"}
    jsonschema.validate(found, part, cls=jsonschema.Draft202012Validator)
    assert lives.shortfall == "2 of 4 virtual users could not begin: LoginError: 401"


def test_nothing_is_said_of_users_that_all_began_or_none():
    every, none = UserLives(), UserLives()
    every.add(read_events([[1, 1, 0, 9, 1], [0, 1, 0, 9, 0]]), {})
    none.add(read_events([[1, 1, 0, 9, 1]]), {})

    # that none began is why the load ended, which is said there
    assert (every.shortfall, none.shortfall) == ("", "")


@pytest.mark.parametrize(
    "row", [[9, 1, 0, 0, 0], [0, 0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0, -1], [0, 1, True, 1, 0], 7]
)
def test_lives_of_another_shape_are_refused(row):
    with pytest.raises(Untrusted):
        read_events([[0, 1, 0, 0, 0], row])


def test_lives_of_blocks_that_are_joined_all_count():
    results = WorkloadResults(idempotent=False, sla=SlaEvaluator((), None))  # type: ignore[arg-type]
    told = {"run": "r", "incarnation": "w", "membership": "m", "workload": 0}
    blocks = [Block(**told, number=n, life=[[0, n, 0, 5, 0]]) for n in (1, 2, 3)]

    results.add(join(blocks))

    assert results.statistics.lives.counts[LifeEvent.BEGUN] == 3


def test_numbers_of_the_journal_are_taken_again():
    accounts = Accounts()
    results = WorkloadResults(idempotent=False, sla=SlaEvaluator((), None))  # type: ignore[arg-type]
    accounts.register(4, results)

    accounts.apply({"do": "users", "workload": 4, "mid": "m", "numbers": [[1, 4], [7, 8]]})
    accounts.apply({"do": "users", "workload": 9, "mid": "m", "numbers": [[1, 2]]})

    assert results.users.of("m") == [(1, 4), (7, 8)]
    assert results.users.numbers_for("n", 1, 1, 0) == [(8, 9)]


def test_the_number_of_errors_of_lives_is_bounded():
    lives = UserLives()
    for number in range(1, 200):
        event = (LifeEvent.NOT_BEGUN, number, 1, number)
        lives.add([event], {number: ("E", f"kind {number}", "")})

    assert len(lives.errors) == 51
    assert lives.errors.total() == 199


def output(item: object, kind: str = "checks") -> bytes:
    return msgpack.packb({"kind": kind, "item": item})


def test_soft_checks_add_up_and_other_outputs_are_passed_over():
    checks = SoftChecks()
    checks.add([(1, (output({"a": [2, 1]}), output({"title": "x"}, "additive")))])
    checks.add([(2, (output({"a": [1, 0], "b": [0, 1]}), b"\xc1", output({"c": [1, -1], "d": 3})))])

    assert checks.counts == {"a": [3, 1], "b": [0, 1]}


def test_the_number_of_soft_checks_is_bounded():
    checks = SoftChecks()
    checks.add([(n, (output({f"check {n}": [1, 0]}),)) for n in range(NAMES + 9)])

    assert len(checks.counts) == NAMES + 1
    assert checks.counts[OTHER] == [9, 0]


@pytest.mark.parametrize(
    ("config", "success", "said"),
    [
        ({"min_percent": 50}, False, "b passed 0 % of 4 times, at least 50 %"),
        ({"name": "a", "min_percent": 75}, True, "a passed 75 % of 4 times"),
        ([{"name": "a", "min_percent": 76}], False, "a passed 75 % of 4 times, at least 76 %"),
        ({"name": "z", "min_percent": 0}, False, "z was never checked"),
    ],
)
def test_the_criterion_judges_each_check(config, success, said):
    statistics = WorkloadStatistics()
    statistics.soft_checks.counts.update({"a": [3, 1], "b": [0, 4]})

    verdict = SoftCheckRate(config).check(statistics)

    assert verdict.success is success
    assert said in verdict.detail


def test_the_criterion_fails_where_nothing_was_checked():
    assert not SoftCheckRate({"min_percent": 0}).check(WorkloadStatistics()).success


@pytest.mark.parametrize(
    ("sla", "failed"),
    [
        ((), False),
        ((Named(name="failure_rate", config={"max": 0}),), True),
        ((Named(name="failure_rate", config={"max": 49}),), True),
        ((Named(name="failure_rate", config={"max": 50}),), False),
        ((Named(name="failure_rate", config={"min": 1}),), False),
    ],
)
def test_users_that_never_began_break_the_limit_of_failures(sla, failed):
    results = WorkloadResults(idempotent=False, sla=SlaEvaluator(sla, Plugins()))
    results.ledger.close(None)
    rows = [[0, 1, 0, 5, 0], [1, 2, 0, 9, 1]]
    results.statistics.lives.add(read_events(rows), {1: ("LoginError", "401", "tb")})

    found = [one for one in results.judge() if one.criterion == "user_starts"]

    assert [(one.success, one.detail) for one in found] == [
        (False, "1 of 2 virtual users could not begin: LoginError: 401")
    ] * failed
