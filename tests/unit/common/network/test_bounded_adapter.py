"""Answers to requests of the coordinator are read up to a bound."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from helpers.hostile import bounded
from helpers.packed_zeros import whole_gzip
from helpers.raw_answers import HUGE, answering
from osbench.common.deployment.record import Deployment
from osbench.common.network.bounded_adapter import BoundedAdapter, bounded_session
from osbench.common.network.response_bound import ResponseBound
from osbench.coordinator.deployments.check import check

MIB = 1 << 20
ENDLESS = b"HTTP/1.1 200 OK\r\n\r\n"


def test_a_larger_answer_is_refused():
    said = "the response has 10,000,000,000 bytes, more than the 64 MiB that are read"
    with (
        answering(HUGE, bytes(65536), for_ever=True) as url,
        bounded_session() as session,
        pytest.raises(requests.RequestException, match=said),
    ):
        session.get(url)


def test_an_answer_that_unpacks_to_more_is_refused():
    packed = whole_gzip(80)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    said = f"the response of {len(packed):,} bytes decodes to more than the 64 MiB that are read"
    with (
        answering(head, packed, for_ever=False) as url,
        bounded_session() as session,
        pytest.raises(requests.RequestException, match=said),
    ):
        session.get(url)


def test_an_answer_that_does_not_end_is_refused():
    session = requests.Session()
    session.mount("http://", BoundedAdapter(ResponseBound(MIB, "the setting")))

    with (
        answering(ENDLESS, bytes(65536), for_ever=True) as url,
        bounded(16 * MIB),
        pytest.raises(requests.RequestException, match="more than the 1 MiB that the setting"),
    ):
        session.get(url)


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_an_answer_without_a_body_may_announce_a_large_one(method):
    with (
        answering(HUGE, b"", for_ever=False) as url,
        bounded_session() as session,
        session.request(method, url, stream=method == "GET") as answer,
    ):
        assert answer.headers["content-length"] == "10000000000"


def test_a_check_of_a_deployment_reads_no_larger_answer():
    user = {"username": "ann", "password": "pw", "project_name": "ops"}
    with answering(HUGE, bytes(65536), for_ever=True) as url, bounded(16 * MIB):
        record = Deployment.from_spec(
            "cloud", {"openstack": {"auth_url": f"{url}/v3", "admin": user}}
        )
        (finding, *_) = check(record, 10.0)

    assert not finding.ok
    assert "the response has 10,000,000,000 bytes, more than the 64 MiB" in finding.detail


def test_a_configured_authorization_wins_over_netrc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine shop.invalid login me password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    plain, given = bounded_session(), bounded_session()
    given.headers["authorization"] = "Bearer mine"
    request = requests.Request("GET", "http://shop.invalid/")

    assert plain.prepare_request(request).headers["Authorization"].startswith("Basic ")
    assert given.prepare_request(request).headers["Authorization"] == "Bearer mine"
