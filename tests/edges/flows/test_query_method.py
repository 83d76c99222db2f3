"""The method QUERY: safe and idempotent, with a body that redirects keep."""

from __future__ import annotations

import pytest

from helpers.driven import DRIVERS, driven
from helpers.recording_server import recording_server
from osbench.common.plugin.atomic import Names, Recorder
from osbench.edges.flows.grouped_http_flow import GroupedHttpFlow
from osbench.worker.http.http_clients import HttpClients
from osbench.worker.http.ready_requests import beyond
from servers.hostile_http import hostile_server

BODY = {"json": {"name": "lamp"}}


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    ("code", "method", "body"),
    [
        (301, "QUERY", b'{"name": "lamp"}'),
        (302, "QUERY", b'{"name": "lamp"}'),
        (303, "GET", b""),
        (307, "QUERY", b'{"name": "lamp"}'),
        (308, "QUERY", b'{"name": "lamp"}'),
    ],
)
def test_redirects_keep_method_and_body_but_303(driver, code, method, body) -> None:
    with recording_server() as server, driven(driver) as client:
        url = f"{server.url}/to?code={code}&url=/found"
        answer = client.request("QUERY", url, [], BODY)
        assert answer is not None
        first, second = server.taken()

    assert (first.method, first.body) == ("QUERY", b'{"name": "lamp"}')
    assert first.headers["content-type"] == "application/json"
    assert (second.method, second.path, second.body) == (method, "/found", body)
    assert ("content-type" in second.headers) == bool(body)


@pytest.mark.parametrize("driver", DRIVERS)
def test_it_is_sent_again_if_an_idle_connection_had_ended(driver) -> None:
    with hostile_server() as server, driven(driver) as client:
        for _ in range(3):
            # the server leaves after it got the next request
            answer = client.request("QUERY", f"{server.url}/leave", [], BODY)
            assert answer is not None
            assert answer.status == 200

        assert client.retried > 0


def test_osbenchs_own_client_makes_it_and_libcurl_through_a_proxy(monkeypatch) -> None:
    assert beyond("QUERY", "http://a.invalid/", BODY) == ""
    with recording_server() as server:
        monkeypatch.setenv("http_proxy", server.url)
        monkeypatch.delenv("no_proxy", raising=False)
        clients = HttpClients([])
        for options in (BODY, {**BODY, "auth": ["me", "pw"]}):
            url = "http://a.invalid/"
            assert clients.blocking_status("QUERY", url, [], options, Recorder(Names())) == 200

        assert [(one.method, one.body) for one in server.taken()] == [
            ("QUERY", b'{"name": "lamp"}')
        ] * 2


@pytest.mark.parametrize(
    ("step", "faults"),
    [
        ({"method": "QUERY", "path": "/a", "json": {"x": 1}}, 0),
        ({"method": "QUERY", "path": "/a", "form": {"x": 1}}, 0),
        ({"method": "QUERY", "path": "/a"}, 1),
        ({"method": "QUERY", "path": "/a", "json": None}, 1),
    ],
)
def test_a_step_with_a_query_has_a_body(step, faults) -> None:
    found = GroupedHttpFlow.check_arguments("run", {"base": "http://a.test", "steps": [step]})

    assert len(found) == faults
    assert all("the body of a QUERY is the query" in one for one in found)
