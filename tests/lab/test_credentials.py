"""Logins of all kinds at a real Keystone, and what they may do there."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import pytest
from keystoneauth1.session import Session

from osbench.common.deployment.record import Deployment
from osbench.common.plugin.context import ContextEnvironment
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.task.deployments.check import check
from osbench.coordinator.task.taskfile import parse
from osbench.edges.openstack.common.account import Account
from osbench.edges.openstack.contexts.users import Users
from osbench.edges.openstack.coordinator.login_limits import role_limits
from osbench.edges.openstack.coordinator.single_logins import single_logins
from services.catalogue import admin
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]


class Keystone:
    """Requests of the lab's administrator."""

    def __init__(self, lab: Lab) -> None:
        self._session: Any = admin(lab)
        self.lab = lab
        self.user, self.project = self._session.get_user_id(), self._session.get_project_id()

    def ask(self, method: str, path: str, **options: Any) -> Any:
        answer = self._session.request(f"{self.lab.auth_url}/{path}", method, **options)
        return answer.json() if answer.content else None

    def role(self, name: str) -> str:
        (found,) = self.ask("GET", f"roles?name={name}")["roles"]
        return str(found["id"])

    def application_credential(self, role: str) -> dict[str, Any]:
        self.ask("PUT", f"projects/{self.project}/users/{self.user}/roles/{self.role(role)}")
        # roles of a token are those of its time
        self._session = admin(self.lab)
        wish = {"name": f"osbench-{secrets.token_hex(4)}", "roles": [{"name": role}]}
        path = f"users/{self.user}/application_credentials"
        made = self.ask("POST", path, json={"application_credential": wish})
        found = made["application_credential"]
        auth = {
            "application_credential_id": found["id"],
            "application_credential_secret": found["secret"],
        }
        return {"auth_type": "v3applicationcredential", "auth": auth}

    def password(self, **scope: str) -> dict[str, Any]:
        auth = {
            "username": self.lab.username,
            "password": self.lab.password,
            "user_domain_id": "default",
            **scope,
        }
        return {"auth_type": "v3password", "auth": auth}

    def record(self, **users: Any) -> Deployment:
        spec = {"openstack": {"auth_url": self.lab.auth_url, **users}}
        return Deployment.from_spec("lab", spec)


@pytest.fixture
def real(keystone: Lab) -> Keystone:
    return Keystone(keystone)


def makes_users(deployment: Deployment) -> None:
    made: dict[str, Any] = {}
    environment = ContextEnvironment(run="20260401-120000-ab12", deployment=deployment)
    context = Users({"tenants": 1, "users_per_tenant": 2}, environment, made)
    try:
        context.setup()
        assert all(user["state"] for user in made["users"])
    finally:
        context.cleanup()


def test_an_application_credential_of_an_administrator_makes_users(real: Keystone) -> None:
    makes_users(real.record(admin=real.application_credential("admin")))


def test_an_application_credential_of_a_member_is_told_before(real: Keystone) -> None:
    deployment = real.record(admin=real.application_credential("member"))
    scenario: Mapping[str, Any] = {"scenario": {"KeystoneBasic.create_user": {}}}
    document = {"version": 2, "title": "t", "subtasks": [{"title": "s", **scenario}]}

    (problem,) = role_limits(parse(document, "task.yaml"), Plugins(), deployment)

    assert "needs the role admin" in problem.message
    assert "has member" in problem.message


def test_an_administrator_of_the_system_makes_users(real: Keystone) -> None:
    real.ask("PUT", f"system/users/{real.user}/roles/{real.role('admin')}")
    system = real.password(system_scope="all")

    makes_users(real.record(admin=system))
    makes_users(real.record(admin=real.password(project_id=real.project), system_admin=system))


def test_a_trust_gives_the_project_of_the_trustor(real: Keystone) -> None:
    wish = {
        "trustor_user_id": real.user,
        "trustee_user_id": real.user,
        "project_id": real.project,
        "impersonation": True,
        "roles": [{"name": "admin"}],
    }
    trust = real.ask("POST", "OS-TRUST/trusts", json={"trust": wish})["trust"]["id"]
    deployment = real.record(users=[real.password(trust_id=trust)])

    assert Account(deployment.users[0]).project_id(Session()) == real.project


def test_a_token_is_handed_on_with_its_end(real: Keystone) -> None:
    first = real.record(users=[real.password(project_id=real.project)]).users[0]
    token = Account(first).token(Session())
    user = {"auth_type": "v3token", "auth": {"token": token.auth_token, "project_id": real.project}}

    found = single_logins(real.record(users=[user]), None)
    checked = {one.subject: one for one in check(real.record(users=[user]), 30.0)}

    assert f"its token ends at {token.expires:%Y-%m-%d %H:%M:%S} UTC" in found.notes[0]
    assert checked["users[0]"].ok
    assert checked["identity"].ok
