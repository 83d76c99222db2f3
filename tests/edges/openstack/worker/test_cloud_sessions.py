"""Sessions get new tokens over kept connections, and trace headers stay with the cloud."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from helpers.certificates import self_signed
from helpers.corpus import corpus
from helpers.fake_keystone import PASSWORD, USER, FakeKeystone, fake_keystone
from helpers.recording_server import recording_server
from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError
from osbench.common.network.origins import origin
from osbench.common.plugin.plugins import Plugins
from osbench.edges.openstack.common.request_errors import AuthenticationFailed
from osbench.edges.openstack.scenarios.authenticate import Authenticate
from osbench.edges.openstack.worker.cloud_sessions import Sessions
from osbench.edges.openstack.worker.short_way import SHORT_WAY, ShortWay
from osbench.worker.tracing.profiling import Tracer

TRACE_HEADERS = {"x-trace-info", "x-trace-hmac", "traceparent"}


#: What a worker adds to the context of each workload.
OF_WORKER: dict[str, Any] = {}


@pytest.fixture(autouse=True, params=["fast", "requests"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All of it holds for both transports; the fast one sends everything itself."""
    way = ShortWay()
    if request.param == "fast":
        monkeypatch.setitem(OF_WORKER, SHORT_WAY, way)
    yield
    assert not way.left


@pytest.fixture
def keystone() -> Iterator[FakeKeystone]:
    with fake_keystone() as server:
        yield server


def deployment(auth_url: str, users: int = 0, password: str = PASSWORD) -> Deployment:
    def user(name: str) -> dict[str, Any]:
        return {"username": name, "password": password, "project_name": "p"}

    content: dict[str, Any] = {"auth_url": auth_url, "admin": user(USER)}
    if users:
        content["users"] = [user(f"user{n}") for n in range(users)]
    return Deployment.from_spec("cloud", {"openstack": content})


def prepared(record: Deployment, timeout_s: float = 0.0) -> dict[str, Any]:
    context = {
        "deployment": record,
        "run": "r",
        "workload": 0,
        "scenario": "Authenticate.keystone",
        "args": {},
        "timeout_s": timeout_s,
        **OF_WORKER,
    }
    Authenticate.warm_up(context)
    return context


def authenticate(context: dict[str, Any], iteration: int) -> Authenticate:
    scenario = Authenticate({**context, "iteration": iteration})
    scenario.keystone()
    return scenario


@pytest.mark.parametrize("path", ["/v3", "/v3/", "", "/"])
def test_each_iteration_gets_a_new_token(keystone, path):
    context = prepared(deployment(keystone.url + path))
    before = len(keystone.seen)

    scenarios = [authenticate(context, n) for n in range(1, 4)]

    asked = [(method, path) for method, path, _ in keystone.seen]
    assert asked[before:] == [("POST", "/v3/auth/tokens")] * 3
    assert asked[:before] == ([] if "v3" in path else [("GET", asked[0][1])])
    assert keystone.users == [USER] * 3
    assert scenarios[0]._recorder.names.names == ["authenticate.keystone"]


def test_users_take_turns_by_iteration_number(keystone):
    context = prepared(deployment(keystone.url + "/v3", users=3))

    for iteration in (1, 2, 3, 4, 9):
        authenticate(context, iteration)

    assert keystone.users == ["user0", "user1", "user2", "user0", "user2"]


def test_connections_are_kept_but_cookies_are_not(keystone):
    context = prepared(deployment(keystone.url + "/v3"))
    sessions: Sessions = context["user_selector"].sessions

    for iteration in (1, 2):
        authenticate(context, iteration)

    others: list[object] = []
    thread = threading.Thread(target=lambda: others.append(sessions.session()))
    thread.start()
    thread.join()
    assert not [h for _, _, h in keystone.seen if "cookie" in h]
    assert sessions.session() is sessions.session()
    assert others[0] is not sessions.session()


def test_trace_headers_stay_with_the_cloud(keystone):
    tracer = Tracer("key", "r", 1.0, None, 0)
    with recording_server() as listed, recording_server() as foreign:
        keystone.catalogued = f"{listed.url}/service"
        sessions: Sessions = prepared(deployment(keystone.url + "/v3"))["user_selector"].sessions
        profiler = tracer.begin(1)
        try:
            sessions.session().get(f"{listed.url}/early", authenticated=False)
            sessions.authenticate(sessions.credential(1))
            sessions.session().get(
                f"{listed.url}/to?code=302&url={foreign.url}/a", authenticated=False
            )
        finally:
            trace = tracer.end(profiler, None)
        early, known = (one.headers for one in listed.taken())
        (stranger,) = (one.headers for one in foreign.taken())

    (posted,) = (headers for method, _, headers in keystone.seen if method == "POST")
    for headers in (posted, known):
        assert headers["traceparent"].split("-")[1] == trace.hex()
        assert headers.keys() >= TRACE_HEADERS
    for headers in (early, stranger):
        assert not TRACE_HEADERS & headers.keys()


def test_secrets_go_to_services_of_the_cloud_only(keystone, tmp_path):
    names = ("X-Auth-Token", "X-Service-Token", "X-Subject-Token", "Authorization")
    headers = {**dict.fromkeys(names, "t"), "X-Plain": "p"}
    sessions: Sessions = prepared(deployment(keystone.url + "/v3"))["user_selector"].sessions
    hidden = {name.lower() for name in names}
    certificate = self_signed(tmp_path)
    with recording_server() as known, recording_server() as foreign:
        sessions.hosts.add(origin(known.url))
        # over TLS it is known; the same address without is not
        sessions.hosts.add(origin(foreign.url.replace("http:", "https:")))
        for url in (f"{known.url}/a", f"{known.url}/to?code=302&url={foreign.url}/a"):
            sessions.session().get(url, headers=headers, authenticated=False)
        with recording_server(certificate) as secured:
            sessions.hosts.add(origin(secured.url))
            sessions.session().get(
                f"{secured.url}/to?code=302&url={known.url}/b",
                headers=headers,
                authenticated=False,
                verify=str(certificate),
            )
        (stranger,) = foreign.taken()
        seen = known.taken()

    assert [one.path.partition("?")[0] for one in seen] == ["/a", "/to", "/b"]
    assert all(hidden <= set(one.headers) for one in seen)
    assert not hidden & set(stranger.headers)
    assert "x-plain" in stranger.headers


def test_iterations_that_are_not_traced_send_no_trace_headers(keystone):
    authenticate(prepared(deployment(keystone.url + "/v3")), 1)

    assert not TRACE_HEADERS & keystone.seen[0][2].keys()


def test_a_refused_password_says_who_and_why_the_same_way_each_time(keystone):
    context = prepared(deployment(keystone.url + "/v3", password="wrong"))
    messages = set()

    for iteration in (1, 2):
        with pytest.raises(AuthenticationFailed) as caught:
            authenticate(context, iteration)
        messages.add(str(caught.value))

    assert messages == {
        f"{keystone.url}/v3 gave no token to user '{USER}' of project 'p': "
        "The request you have made requires authentication. (HTTP 401)"
    }


@pytest.mark.parametrize("path", ["/v3", ""])
def test_a_keystone_that_is_down_fails_iterations_not_the_start(path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}{path}"
        context = prepared(deployment(url))

        with pytest.raises((ConnectionError, AuthenticationFailed), match="refused") as caught:
            authenticate(context, 1)

    assert str(caught.value).startswith(url)
    assert " at 0x" not in str(caught.value)


def test_a_keystone_that_hangs_is_left_after_the_timeout():
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        context = prepared(
            deployment(f"http://127.0.0.1:{mute.getsockname()[1]}/v3"), timeout_s=0.1
        )

        with pytest.raises(TimeoutError, match="timed out"):
            authenticate(context, 1)


@pytest.mark.parametrize("record", [None, {"osbench": {"services": {"shop": "http://h:1"}}}])
def test_a_deployment_of_openstack_is_needed(record):
    found = Deployment.from_spec("shop", record) if record else None

    with pytest.raises(DeploymentError, match="needs a deployment of OpenStack"):
        Authenticate.warm_up({"deployment": found, "scenario": "Authenticate.keystone"})


def test_every_authenticate_keystone_workload_of_rally_fits():
    plugin = Plugins().scenario("Authenticate.keystone")
    (path,) = corpus().glob("rally-openstack/scenarios/authenticate/keystone.yaml")

    (subtask,) = yaml.safe_load(path.read_text())["subtasks"]

    assert plugin.check_args(subtask["scenario"]["Authenticate.keystone"]) == []
