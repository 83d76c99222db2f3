"""What an iteration is given of Rally's context object."""

from __future__ import annotations

import copy
import json
from collections import Counter
from typing import Any

import pytest

from osbench.edges.rally.context_object.iteration_user import Choice, Shared

TENANTS, USERS = 3, 2


def prepared(method: str = "round_robin", *, listed: bool = True) -> dict[str, Any]:
    """A context object as Rally's contexts leave it; existing users are not `listed`."""
    users = [
        {"id": f"u{tenant}{user}", "tenant_id": f"t{tenant}", "keypair": {"name": "k"}}
        for tenant in range(TENANTS)
        for user in range(USERS)
    ]
    tenants: dict[str, Any] = {
        f"t{number}": {"id": f"t{number}", "name": "", "networks": [{"id": "n"}]}
        for number in range(TENANTS)
    }
    if listed:
        for user in users:
            tenants[user["tenant_id"]].setdefault("users", []).append(user)
    return {"users": users, "tenants": tenants, "user_choice_method": method, "config": {}}


def chosen_by_rally(context: dict[str, Any], iteration: int) -> Any:
    rally = pytest.importorskip("rally_openstack.task.scenario")
    theirs = copy.deepcopy(context) | {"iteration": iteration}
    rally.OpenStackScenario._choose_user(object.__new__(rally.OpenStackScenario), theirs)
    return theirs["user"]["id"]


def test_users_take_turns_as_with_rally() -> None:
    context = prepared()
    shared = Shared(context, choose=True)

    ours = [shared.narrowed(iteration)["user"]["id"] for iteration in range(1, 20)]

    assert ours == [chosen_by_rally(context, iteration) for iteration in range(1, 20)]
    assert set(ours) == {user["id"] for user in context["users"]}


def test_existing_users_take_turns_too() -> None:
    context = prepared(listed=False)
    shared = Shared(context, choose=True)

    ours = Counter(shared.narrowed(iteration)["user"]["id"] for iteration in range(1, 13))

    assert ours == {user["id"]: 2 for user in context["users"]}


def test_users_chosen_at_random_come_with_their_tenant() -> None:
    shared = Shared(prepared("random"), choose=True)

    given = [shared.narrowed(iteration) for iteration in range(1, 200)]

    assert len({one["user"]["id"] for one in given}) == TENANTS * USERS
    assert all(one["tenant"]["id"] == one["user"]["tenant_id"] for one in given)


def test_who_has_no_use_for_a_user_is_given_none() -> None:
    assert "user" not in Shared(prepared(), choose=False).narrowed(1)
    assert Choice({}).user(1) is None


def test_what_an_iteration_changes_stays_its_own() -> None:
    context = prepared()
    before = copy.deepcopy(context)
    shared = Shared(context, choose=True)
    one, other = shared.narrowed(1), shared.narrowed(1)

    one["tenant"]["networks"][0]["id"] = "changed"
    one["tenant"]["networks"].append({})
    one["user"]["keypair"].update(name="changed")
    one["users"].pop()["keypair"]["name"] = "changed"
    for tenant in one["tenants"].values():
        tenant["users"][0]["id"] = "changed"
    one["tenants"].setdefault("t9", {})["x"] = 1
    del one["config"]
    del one["tenants"]["t1"]

    assert context == before
    assert other["tenants"] == before["tenants"]
    assert other["tenant"] == before["tenants"]["t0"]


def test_what_is_one_object_stays_one_for_the_iteration() -> None:
    given = Shared(prepared(), choose=True).narrowed(1)

    given["user"]["token"] = "new"

    assert given["users"][0] is given["user"]
    assert given["tenants"]["t0"]["users"][0]["token"] == "new"
    assert given["tenant"] is given["tenants"]["t0"]


def test_what_an_iteration_adds_is_not_copied() -> None:
    given = Shared(prepared(), choose=True).narrowed(1)
    new: dict[str, Any] = {}

    given["new"] = given["tenant"].setdefault("new", new)
    given["users"].append(new)
    given["tenants"] |= {"new": new}
    new["changed"] = True

    places = given["new"], given["tenant"]["new"], given["users"][-1], given["tenants"]["new"]
    assert all(place is new for place in places)


def test_what_is_given_is_used_as_a_dict() -> None:
    context = prepared()
    given = Shared(context, choose=False).narrowed(7)

    assert given == {**context, "iteration": 7}
    assert json.loads(json.dumps(given)) == {**context, "iteration": 7}
    assert {**given["tenants"]} == context["tenants"]
    assert [*given["users"], *given["users"][1:]] == context["users"] + context["users"][1:]
    assert copy.deepcopy(given) == given
    changed = dict(given["tenants"]["t1"])
    changed["networks"].clear()
    assert context["tenants"]["t1"]["networks"] == [{"id": "n"}]
