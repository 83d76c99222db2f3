"""Redirects of sessions of keystoneauth1, and of requests, take no secret elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import requests
from keystoneauth1.session import Session

from helpers.certificates import self_signed
from helpers.recording_server import RecordingServer, recording_server
from osbench.edges.openstack.common.home_session import HomeSession
from osbench.edges.openstack.worker.fast_session import FastSession
from osbench.edges.openstack.worker.short_way import ShortWay

SECRETS = {
    "X-Auth-Token": "t",
    "X-Service-Token": "t",
    "X-Subject-Token": "t",
    "X-Storage-Token": "t",
    "Authorization": "Bearer t",
}
HEADERS = {**SECRETS, "X-Plain": "p"}
HIDDEN = {name.lower() for name in SECRETS}


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    with recording_server() as running:
        yield running


@pytest.fixture(params=["plain", "fast"])
def transport(request: pytest.FixtureRequest) -> Iterator[requests.Session]:
    made = FastSession(ShortWay()) if request.param == "fast" else HomeSession()
    with made:
        yield made


@pytest.fixture(params=["keystoneauth1", "requests"])
def client(request: pytest.FixtureRequest, transport: requests.Session) -> Any:
    """What follows redirects: keystoneauth1 with further requests, requests within one."""
    return Session(session=transport) if request.param == "keystoneauth1" else transport


def to(*urls: str) -> str:
    """The address that redirects from one to the next."""
    found = urls[-1]
    for url in reversed(urls[:-1]):
        found = f"{url}/to?code=302&url={quote(found, safe='')}"
    return found


def test_within_an_origin_secrets_go_along(server, client):
    client.get(to(server.url, f"{server.url}/a"), headers=HEADERS)

    _, second = server.taken()
    assert set(second.headers) >= HIDDEN


@pytest.mark.parametrize("hops", [1, 2])
def test_no_secret_goes_to_another_host_however_often_that_redirects(server, client, hops):
    client.get(to(server.url, *[server.elsewhere] * hops, f"{server.elsewhere}/a"), headers=HEADERS)

    first, *others = server.taken()
    assert set(first.headers) >= HIDDEN
    assert len(others) == hops + 1
    for one in others:
        assert not HIDDEN & set(one.headers)
        assert "x-plain" in one.headers


def test_another_port_is_another_origin(server, client):
    with recording_server() as other:
        client.get(to(server.url, f"{other.url}/a"), headers=HEADERS)
        (second,) = other.taken()

    assert not HIDDEN & set(second.headers)


def test_what_was_sent_over_tls_is_not_sent_without(server, client, tmp_path):
    certificate = self_signed(tmp_path)
    with recording_server(certificate) as secured:
        client.get(to(secured.url, f"{server.url}/a"), headers=HEADERS, verify=str(certificate))
        (first,) = secured.taken()

    (second,) = server.taken()
    assert set(first.headers) >= HIDDEN
    assert not HIDDEN & set(second.headers)


def test_a_later_request_to_that_host_has_the_headers_that_it_is_given(server, transport):
    url = f"{server.elsewhere}/a"
    transport.get(to(server.url, url), headers=HEADERS, allow_redirects=False)
    transport.get(f"{server.url}/b", headers=HEADERS)

    transport.get(url, headers=HEADERS)

    assert set(server.taken()[-1].headers) >= HIDDEN
