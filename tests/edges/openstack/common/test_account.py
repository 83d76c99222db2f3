"""A token as headers, which a service may refuse."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from helpers.fake_cloud import ADMIN, PASSWORD, FakeCloud
from helpers.json_server import serving
from osbench.common.deployment.record import Credential
from osbench.edges.openstack.common.account import Account, AccountToken
from osbench.edges.openstack.common.request_errors import AuthenticationFailed
from osbench.edges.openstack.common.thread_sessions import ThreadSessions


@pytest.fixture
def cloud() -> Iterator[FakeCloud]:
    with serving(FakeCloud()) as made:
        yield made


@pytest.fixture
def token(cloud: FakeCloud) -> AccountToken:
    domains = {"user_domain_name": "Default", "project_domain_name": "Default"}
    credential = Credential(
        auth_url=cloud.auth_url, username=ADMIN, password=PASSWORD, project_name=ADMIN, **domains
    )
    return AccountToken(Account(credential), ThreadSessions(credential, 5.0))


def logins(cloud: FakeCloud) -> int:
    return sum(path == "/v3/auth/tokens" for _, path, _ in cloud.seen)


def test_a_refused_token_is_renewed_once_for_all_who_had_it(cloud, token):
    assert token.is_over()
    refused = token.headers()
    cloud.tokens.clear()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(token.renew, [refused] * 4))

    assert not token.is_over()
    assert token.headers() != refused
    assert token.headers()["X-Auth-Token"] in cloud.tokens
    assert logins(cloud) == 2


def test_a_token_that_is_good_is_kept(cloud, token):
    token.renew({})
    before = token.headers()

    token.renew({})
    token.renew({"X-Auth-Token": "another"})

    assert token.headers() == before
    assert logins(cloud) == 1


def test_a_token_of_a_short_life_is_renewed_once_it_has_ended(cloud, token):
    token.renew({})
    granted = token._account.login.auth_ref
    granted._data["token"]["expires_at"] = _timestamp(60)

    assert not token.is_over()
    token.renew({})
    assert logins(cloud) == 1

    granted._data["token"]["expires_at"] = _timestamp(0)
    assert token.is_over()
    token.renew({})
    assert not token.is_over()
    assert logins(cloud) == 2


def _timestamp(from_now_s: float) -> str:
    at = datetime.now(UTC) + timedelta(seconds=from_now_s)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.mark.parametrize("status", [401, 500, 503])
def test_a_token_that_cannot_be_renewed_is_used_to_its_end(cloud, token, caplog, status):
    account, session = token._account, token._session()
    first = account.token(session)
    first._data["token"]["expires_at"] = _timestamp(60)
    cloud.faults.append(["POST /v3/auth/tokens", status, 2])

    asked = [account.token(session) for _ in range(10)]

    assert asked == [first] * 10
    # again once half of what was left has passed, not with each request
    assert logins(cloud) == 2
    (said,) = caplog.messages
    assert said.startswith("a token could not be renewed, and is used for the ")

    for left_s in (20, 5):
        first._data["token"]["expires_at"] = _timestamp(left_s)
        # half of the time has passed
        account.login._renewal = datetime.now(UTC)
        latest = account.token(session)
    assert logins(cloud) == 4
    assert latest.auth_token != first.auth_token


def test_an_ended_token_that_cannot_be_renewed_is_a_failure(cloud, token):
    account, session = token._account, token._session()
    account.token(session)._data["token"]["expires_at"] = _timestamp(0)
    cloud.faults.append(["POST /v3/auth/tokens", 401, 1])

    with pytest.raises(AuthenticationFailed, match="gave no token"):
        account.token(session)


def test_a_renewal_that_fails_says_why(cloud, token):
    refused = token.headers()
    cloud.faults.append(["POST /v3/auth/tokens", 401, 1])

    with pytest.raises(AuthenticationFailed, match="gave no token"):
        token.renew(refused)

    assert token.is_over()
