"""Users that osbench's own context made, for contexts that only Rally has."""

from __future__ import annotations

from typing import Any

import pytest

from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError
from osbench.common.plugin.context import ContextEnvironment
from osbench.edges.openstack.common.cloud_users import CloudUser
from osbench.edges.rally.adapters import context_adapter
from osbench.edges.rally.context_object import codec
from osbench.edges.rally.context_object.environment import platform_data

pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")

ADMIN = {
    "username": "root",
    "password": "secret",
    "project_name": "admin",
    "user_domain_name": "Default",
    "project_domain_name": "Default",
}
DOMAIN = {"user_domain_id": "d1"}
DEPLOYMENT = Deployment.from_spec(
    "cloud", {"openstack": {"auth_url": "http://cloud/v3", "region_name": "north", "admin": ADMIN}}
)


def seen_by_flavors(before: dict[str, Any]) -> Any:
    """Rally's context object as its context `flavors` is given it."""
    flavors = context_adapter.context_class("flavors@openstack")
    assert flavors is not None
    environment = ContextEnvironment(run="a-run", deployment=DEPLOYMENT, context=before)
    return codec.unpack(codec.pack(flavors({}, environment, {})._carried()))


def kept(user: str, project: str) -> dict[str, Any]:
    made = DEPLOYMENT.admin
    assert made is not None
    cloud_user = CloudUser(credential=made, user_id=f"id-{user}", project_id=f"id-{project}")
    return {
        **cloud_user.to_dict(),
        "username": user,
        "password": f"p-{user}",
        "project_name": project,
    }


def test_the_admin_is_there_where_no_context_made_users() -> None:
    seen = seen_by_flavors({})

    admin = seen["admin"]["credential"]
    assert (admin.username, admin.password, admin.tenant_name) == ("root", "secret", "admin")
    assert "users" not in seen


def test_users_of_ours_are_found_with_their_tenants() -> None:
    users = [kept("a", "one"), kept("b", "one"), kept("c", "two")]

    seen = seen_by_flavors({"users": users, "user_choice_method": "round_robin"})

    assert [(one["id"], one["tenant_id"]) for one in seen["users"]] == [
        ("id-a", "id-one"),
        ("id-b", "id-one"),
        ("id-c", "id-two"),
    ]
    last = seen["users"][2]["credential"]
    assert (last.username, last.password, last.tenant_name) == ("c", "p-c", "two")
    assert (last.auth_url, last.region_name) == ("http://cloud/v3", "north")
    assert last.permission == "user"
    assert seen["tenants"]["id-one"]["users"][1] is seen["users"][1]
    assert seen["user_choice_method"] == "round_robin"


def as_rally_has_it(auth_type: str, auth: dict[str, Any]) -> Any:
    user = {"auth_type": auth_type, "auth": auth}
    spec = {"auth_url": "http://cloud/v3", "admin": user, "endpoint_overrides": {}}
    return platform_data(Deployment.from_spec("cloud", {"openstack": spec}))["admin"]


def test_a_password_of_an_auth_plugin_is_put_into_rallys_form() -> None:
    auth = {**ADMIN, "project_domain_id": "default"}

    admin = as_rally_has_it("v3password", auth)

    assert (admin["username"], admin["password"], admin["tenant_name"]) == (
        "root",
        "secret",
        "admin",
    )


@pytest.mark.parametrize(
    ("auth_type", "auth"),
    [
        ("v3applicationcredential", {"application_credential_secret": "pw-hidden"}),
        ("v3password", {"username": "u", "password": "pw-hidden", "project_id": "p"}),
        ("v3password", {**ADMIN, "password": "pw-hidden", "system_scope": "all"}),
        ("password", {"username": "u", "password": "pw-hidden", "project_name": "p"} | DOMAIN),
    ],
)
def test_a_login_that_rally_does_not_know_is_refused_by_its_place(
    auth_type: str, auth: dict[str, Any]
) -> None:
    with pytest.raises(ContextError, match=f"admin is a login by {auth_type}") as refusal:
        as_rally_has_it(auth_type, auth)

    assert "pw-hidden" not in str(refusal.value)
