"""Logins that cannot be repeated are made once, and told with the end of their tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from helpers.fake_keystone import PASSCODE, PASSWORD, FakeKeystone, fake_keystone
from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError
from osbench.edges.openstack.common.account import Account
from osbench.edges.openstack.common.thread_sessions import ThreadSessions
from osbench.edges.openstack.coordinator.openstack_platform import OpenStackPlatform
from osbench.edges.openstack.coordinator.single_logins import single_logins

PROJECT = {"project_name": "ops", "project_domain_id": "default"}
USER = {"username": "demo", "password": PASSWORD, "project_name": "ops"}
TOTP = {
    "auth_type": "v3totp",
    "auth": {"username": "demo", "user_domain_id": "default", "passcode": PASSCODE, **PROJECT},
}


@pytest.fixture
def keystone() -> Iterator[FakeKeystone]:
    with fake_keystone() as server:
        yield server


def record(keystone: FakeKeystone, **content: Any) -> Deployment:
    spec = {"openstack": {"auth_url": keystone.auth_url, **content}}
    return Deployment.from_spec("cloud", spec)


def test_workers_get_the_token_of_a_code_and_do_not_log_in(keystone: FakeKeystone) -> None:
    keystone.life_s = 600.0

    found = single_logins(record(keystone, admin=USER, users=[TOTP]), None)
    arrived = Deployment.from_dict(found.deployment.to_dict())
    for _ in range(2):
        user = arrived.users[0]
        assert Account(user).token(ThreadSessions(user, 5.0)()).auth_token == "t1"

    assert len(keystone.users) == 1
    assert found.notes[0].startswith("users[0] logs in once, by v3totp: its token ends at ")
    assert "warning" not in found.notes[0]


def test_a_load_that_is_longer_than_its_token_is_warned_of(keystone: FakeKeystone) -> None:
    keystone.life_s = 600.0

    (note,) = single_logins(record(keystone, users=[TOTP]), 7200.0).notes

    assert "warning: its token ends at " in note
    assert note.endswith("; the load takes 2.00 h, and fails from then on")


def test_a_code_that_was_used_ends_the_run_before_it_begins(keystone: FakeKeystone) -> None:
    single_logins(record(keystone, users=[TOTP]), None)

    with pytest.raises(DeploymentError) as refusal:
        single_logins(record(keystone, users=[TOTP]), None)

    assert "deployment cloud, users[0]: " in str(refusal.value)
    assert "gave no token to user 'demo' of project 'ops'" in str(refusal.value)
    assert PASSCODE not in str(refusal.value)


def test_logins_that_can_be_repeated_are_left_to_the_workers(keystone: FakeKeystone) -> None:
    deployment = record(keystone, admin=USER)

    assert OpenStackPlatform().single_logins(deployment, None).deployment is deployment
    assert keystone.seen == []
