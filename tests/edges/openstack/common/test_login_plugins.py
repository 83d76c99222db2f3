"""Logins by the auth plug-ins of keystoneauth1: who gets which token, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from keystoneauth1.session import Session

from helpers.fake_keystone import (
    ACCESS_TOKEN,
    CLIENT_SECRET,
    PASSCODE,
    PASSWORD,
    SECRET,
    FakeKeystone,
    fake_keystone,
)
from osbench.common.deployment.record import Deployment
from osbench.common.deployment.service_catalogue import Service
from osbench.common.errors import DeploymentError
from osbench.edges.openstack.common.account import Account
from osbench.edges.openstack.common.login import login
from osbench.edges.openstack.common.login_plugins import load_plugin
from osbench.edges.openstack.common.request_errors import AuthenticationFailed

USER = {"username": "demo", "password": PASSWORD, "user_domain_id": "default"}
PROJECT = {"project_name": "ops", "project_domain_id": "default"}
OIDC = {
    "identity_provider": "idp",
    "protocol": "openid",
    "client_id": "osbench",
    "client_secret": CLIENT_SECRET,
    **PROJECT,
}


@pytest.fixture
def keystone() -> Iterator[FakeKeystone]:
    with fake_keystone() as server:
        yield server


def credential(keystone: FakeKeystone, auth_type: str, auth: dict[str, Any]) -> Any:
    spec = {"auth_url": keystone.auth_url, "admin": {"auth_type": auth_type, "auth": auth}}
    return Deployment.from_spec("cloud", {"openstack": spec}).admin


def provided(keystone: FakeKeystone, auth: dict[str, Any]) -> dict[str, Any]:
    """`auth` with the address of the identity provider."""
    return {**auth, "access_token_endpoint": f"{keystone.provider}/token"}


@pytest.mark.parametrize(
    ("auth_type", "auth", "user", "scope"),
    [
        ("password", {**USER, **PROJECT}, "demo", "project"),
        ("v3password", {**USER, "project_id": "p1"}, "demo", "project"),
        ("v3password", {"user_id": "u1", "password": PASSWORD, **PROJECT}, "u1", "project"),
        ("v3password", {**USER, "system_scope": "all"}, "demo", "system"),
        ("v3password", {**USER, "domain_id": "default"}, "demo", "domain"),
        ("v3password", {**USER, "trust_id": "tr1"}, "demo", "OS-TRUST:trust"),
        (
            "v3applicationcredential",
            {"application_credential_id": "ac1", "application_credential_secret": SECRET},
            "app-ac1",
            None,
        ),
        (
            "v3totp",
            {"username": "demo", "user_domain_id": "default", "passcode": PASSCODE, **PROJECT},
            "demo",
            "project",
        ),
        (
            "v3multifactor",
            {"auth_methods": ["v3password", "v3totp"], "passcode": PASSCODE, **USER, **PROJECT},
            "demo",
            "project",
        ),
        (
            "v3oidcaccesstoken",
            {
                "identity_provider": "idp",
                "protocol": "openid",
                "access_token": ACCESS_TOKEN,
                **PROJECT,
            },
            "demo",
            "project",
        ),
    ],
)
def test_each_plugin_gets_a_token_of_its_user_and_scope(keystone, auth_type, auth, user, scope):
    account = Account(credential(keystone, auth_type, auth))

    granted = account.token(Session())

    assert granted.user_id == user
    assert list(keystone.scopes[-1] or [None]) == [scope]


@pytest.mark.parametrize(
    ("auth_type", "more"),
    [
        ("v3oidcpassword", {"username": "demo", "password": PASSWORD}),
        ("v3oidcclientcredentials", {}),
    ],
)
def test_an_identity_provider_vouches_for_a_user(keystone, auth_type, more):
    account = Account(credential(keystone, auth_type, provided(keystone, {**OIDC, **more})))

    account.token(Session())

    assert keystone.users == ["federated", "demo"]
    assert list(keystone.scopes[-1]) == ["project"]


def test_a_token_is_exchanged_for_one_that_ends_with_it(keystone):
    keystone.life_s = 50.0
    first = Account(credential(keystone, "v3password", {**USER, **PROJECT})).token(Session())
    given = {"token": first.auth_token, **PROJECT}

    second = Account(credential(keystone, "v3token", given)).token(Session())

    assert second.expires == first.expires


def test_a_login_that_cannot_be_repeated_says_so_once_its_token_is_refused(keystone):
    auth = {"username": "demo", "user_domain_id": "default", "passcode": PASSCODE, **PROJECT}
    account = Account(credential(keystone, "v3totp", auth))
    session = Session()
    account.token(session)

    account.login.invalidate()

    with pytest.raises(AuthenticationFailed, match="has ended or was refused, and v3totp cannot"):
        account.token(session)
    assert len(keystone.users) == 1


def test_a_token_of_a_code_is_used_to_its_end(keystone):
    keystone.life_s = 30.0
    auth = {"username": "demo", "user_domain_id": "default", "passcode": PASSCODE, **PROJECT}
    account = Account(credential(keystone, "v3totp", auth))

    tokens = {account.token(Session()).auth_token for _ in range(3)}

    assert tokens == {"t1"}


def test_tokens_of_a_short_life_are_not_renewed_with_each_request(keystone):
    keystone.life_s = 100.0
    found = login(credential(keystone, "v3password", {**USER, **PROJECT}))
    session = Session()

    tokens = {found.get_token(session) for _ in range(5)}

    assert tokens == {"t1"}


def test_tokens_are_renewed_before_they_end(keystone):
    keystone.life_s = 100.0
    found = login(credential(keystone, "v3password", {**USER, **PROJECT}))
    session = Session()
    found.get_token(session)
    issued = found.auth_ref.issued
    # 20 s of its 100 are left
    found.auth_ref._data["token"]["issued_at"] = str(issued.replace(year=issued.year - 1))
    found._renewal_of = None

    assert found.get_token(session) == "t2"


BASE = {"auth_url": "http://keystone/v3"}


@pytest.mark.parametrize(
    ("auth_type", "auth", "said"),
    [
        ("v3pasword", {}, "no auth plug-in 'v3pasword'; did you mean 'v3password'?"),
        ("xyzzy", {}, "there are admin_token, "),
        ("v3password", {"usrname": "u"}, "no option 'usrname'; did you mean 'username'?"),
        ("v3password", {"username": "u", "user_domain_id": "d"}, "needs 'password'"),
        ("v3password", {"username": "u", "password": "pw-hidden"}, "must also provide either a"),
        ("v3applicationcredential", {}, "needs 'application_credential_secret'"),
        ("v3token", {}, "needs 'token'"),
        ("v3totp", {"username": "u", "user_domain_id": "d"}, "needs 'passcode'"),
        ("v3oidcpassword", {"password": "pw-hidden"}, "needs 'identity_provider', 'protocol'"),
        ("v3multifactor", {"auth_methods": "v3totp"}, "auth_methods must be a list"),
        ("v3multifactor", {"auth_methods": ["v3top"]}, "did you mean 'v3totp'?"),
        ("v3multifactor", {"auth_methods": ["v3totp"], "username": "u"}, "needs 'passcode'"),
        ("none", {"endpoint": "http://x"}, "no option 'auth_url'"),
        ("v3kerberos", {}, "packages that are not installed"),
    ],
)
def test_what_keystoneauth_does_not_take_is_refused_without_its_value(auth_type, auth, said):
    with pytest.raises(DeploymentError) as refusal:
        load_plugin(auth_type, {**BASE, **auth})

    assert said in str(refusal.value)
    assert "pw-hidden" not in str(refusal.value)


def test_a_plugin_without_keystone_is_refused():
    with pytest.raises(DeploymentError, match="asks no Keystone for a token"):
        load_plugin("none", {"endpoint": "http://service"})


def test_numbers_of_yaml_are_taken_as_texts(keystone):
    auth = {"username": "demo", "user_domain_id": "default", "passcode": int(PASSCODE), **PROJECT}

    assert Account(credential(keystone, "v3totp", auth)).token(Session()).user_id == "demo"


def test_a_region_that_does_not_exist_is_told_with_those_that_do(keystone):
    user = {"username": "demo", "password": PASSWORD, "project_name": "ops"}
    spec = {"auth_url": keystone.auth_url, "admin": user, "region_name": "RegionOne"}
    account = Account(Deployment.from_spec("cloud", {"openstack": spec}).admin)

    with pytest.raises(DeploymentError, match="there is no region 'RegionOne', there are R"):
        account.address(Service(types=("thing",)), Session())
