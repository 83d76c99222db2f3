"""What the credentials of a record cannot do is a problem of the task, before it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from helpers.fake_cloud import PASSWORD, FakeCloud, fake_cloud
from osbench.common.deployment.record import Deployment
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.task.taskfile import parse
from osbench.edges.openstack.coordinator.login_limits import login_limits, role_limits

PLUGINS = Plugins()
APP = {
    "auth_type": "v3applicationcredential",
    "auth": {"application_credential_id": "ac1", "application_credential_secret": PASSWORD},
}
TOTP = {"auth_type": "v3totp", "auth": {"user_id": "u", "passcode": "1", "project_id": "p"}}
USER = {"username": "u", "password": "p", "project_name": "p"}


@pytest.fixture
def cloud() -> Iterator[FakeCloud]:
    with fake_cloud() as server:
        yield server


def task(scenario: str, args: Any = None, contexts: Any = None) -> Any:
    workload = {"scenario": {scenario: args or {}}, "contexts": contexts or {}}
    document = {"version": 2, "title": "t", "subtasks": [{"title": "s", **workload}]}
    return parse(document, "task.yaml")


def record(**content: Any) -> Deployment:
    return Deployment.from_spec("cloud", {"openstack": {"auth_url": "http://c/v3", **content}})


def told(problems: Any) -> list[str]:
    return [f"{one.place}: {one.message}" for one in problems]


def test_new_users_need_an_admin() -> None:
    made = task("Authenticate.keystone", contexts={"users": {"tenants": 2}})

    found = told(login_limits(made, PLUGINS, record(users=[USER])))

    assert found == [
        "subtasks[0].contexts.users: context users needs the admin of the cloud: deployment cloud "
        "has none"
    ]
    assert told(login_limits(made, PLUGINS, record(admin=USER))) == []
    by_platform = task("Authenticate.keystone", contexts={"users@openstack": {"tenants": 2}})
    assert len(login_limits(by_platform, PLUGINS, record(users=[USER]))) == 1
    taken = task("Authenticate.keystone", contexts={"users": {}})
    assert told(login_limits(taken, PLUGINS, record(users=[USER]))) == []


def test_a_scenario_of_the_administrator_needs_one() -> None:
    (found,) = told(login_limits(task("KeystoneBasic.create_user"), PLUGINS, record(users=[USER])))

    assert found.startswith("subtasks[0].scenario: scenario KeystoneBasic.create_user needs the ad")


def test_a_user_whom_the_record_does_not_have_is_told() -> None:
    made = task("Authenticate.keystone", contexts={"users": {"name": ["u", "bob"]}})

    (found,) = told(login_limits(made, PLUGINS, record(users=[USER])))

    assert found == (
        "subtasks[0].contexts.users.name: deployment cloud has no user bob; add one, or "
        "choose from u"
    )
    taken = task("Authenticate.keystone", contexts={"users": {"name": "u"}})
    assert login_limits(taken, PLUGINS, record(users=[USER])) == []


@pytest.mark.parametrize(
    ("scenario", "args"),
    [("Authenticate.keystone", {}), ("ZaqarBasic.create_queue", {"session": "per_iteration"})],
)
def test_a_code_that_is_used_up_does_not_log_in_in_each_iteration(scenario: str, args: Any) -> None:
    (found,) = told(login_limits(task(scenario, args), PLUGINS, record(users=[TOTP])))

    assert found.endswith("each iteration, and users[0] can log in once only, by v3totp")
    assert login_limits(task("ZaqarBasic.create_queue"), PLUGINS, record(users=[TOTP])) == []


def test_an_application_credential_without_the_role_makes_no_users(cloud: FakeCloud) -> None:
    deployment = Deployment.from_spec("cloud", cloud.deployment(admin=APP))
    made = task("ZaqarBasic.create_queue", contexts={"users": {"tenants": 2}})
    cloud.roles = ["member", "reader"]

    (found,) = told(role_limits(made, PLUGINS, deployment))

    assert found.startswith(
        "subtasks[0].contexts.users: context users needs the role admin, and application "
        "credential 'ac1' has member, reader:"
    )
    assert role_limits(task("ZaqarBasic.create_queue"), PLUGINS, deployment) == []
    cloud.roles = ["admin"]
    assert role_limits(made, PLUGINS, deployment) == []


def test_a_password_is_not_looked_at(cloud: FakeCloud) -> None:
    cloud.roles = ["member"]
    made = task("ZaqarBasic.create_queue", contexts={"users": {"tenants": 2}})

    found = role_limits(made, PLUGINS, Deployment.from_spec("cloud", cloud.deployment()))

    assert (found, cloud.seen) == ([], [])


def test_an_application_credential_that_gets_no_token_is_told(cloud: FakeCloud) -> None:
    wrong = {**APP, "auth": {**APP["auth"], "application_credential_secret": "pw-hidden"}}  # type: ignore[dict-item]
    deployment = Deployment.from_spec("cloud", cloud.deployment(admin=wrong))

    (found,) = told(role_limits(task("KeystoneBasic.create_user"), PLUGINS, deployment))

    assert "gave no token to application credential 'ac1'" in found
    assert "pw-hidden" not in found
