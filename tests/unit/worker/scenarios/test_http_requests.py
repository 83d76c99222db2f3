"""HTTP scenarios send what requests would send, and say clearly what went wrong."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextvars import Context, copy_context
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from helpers.certificates import self_signed
from helpers.corpus import corpus
from helpers.recording_server import RecordingServer, Seen, recording_server
from osbench.common.plugin.atomic import Recorder
from osbench.common.plugin.plugins import Plugins
from osbench.worker.engine.body import without_loop
from osbench.worker.http import ready_requests
from osbench.worker.scenarios.http_requests import HttpRequests, UnexpectedStatus, _names
from osbench.worker.tracing.profiling import Tracer

#: Headers that only distinguish the client programs.
OWN_WAYS = {"user-agent", "connection", "x-osbench-run", "x-osbench-iteration"}


@pytest.fixture(scope="module")
def running() -> Iterator[RecordingServer]:
    with recording_server() as server:
        yield server


@pytest.fixture
def server(running: RecordingServer) -> RecordingServer:
    running.taken()
    return running


class OfThread:
    """Runs a coroutine as the engine of threads does."""

    def run(self, work: Any, context: Context | None = None) -> None:
        (context or copy_context()).run(without_loop(lambda: work))


class OfLoop:
    """Runs it as the engine of coroutines does."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self.run = runner.run


@pytest.fixture(params=["thread", "loop"])
def context(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    looped = request.param == "loop"
    # of a scenario that no engine made
    monkeypatch.setattr(Recorder, "IN_LOOP", looped)
    with asyncio.Runner() as runner:
        of_kind = OfLoop(runner) if looped else OfThread()
        context: dict[str, Any] = {"run": "r1", "timeout_s": 0.0, "runner": of_kind}
        HttpRequests.warm_up(context)
        yield context


def check(
    context: dict[str, Any],
    url: str,
    method: str = "GET",
    code: int = 200,
    *,
    iteration: int = 7,
    **more: Any,
) -> None:
    scenario = HttpRequests({**context, "iteration": iteration})
    context["runner"].run(scenario.check_request(url, method, code, **more))


def content(seen: list[Seen]) -> list[tuple[str, str, dict[str, str], bytes]]:
    """The parts of requests that must not depend on the client."""
    return [
        (
            one.method,
            one.path,
            {name: value for name, value in one.headers.items() if name not in OWN_WAYS},
            one.body,
        )
        for one in seen
    ]


SEQUENCE: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/a", {}),
    ("put", "/a", {"data": "some text: ü"}),
    ("GET", "/a", {}),
    ("DELETE", "/a", {}),
    ("GET", "/a", {"headers": {"X-One": "1", "Accept": "text/plain"}}),
    ("GET", "/a", {}),
    ("POST", "/a", {"json": {"deep": ["ü", 1, None]}}),
    ("HEAD", "/a", {}),
    ("GET", "/a", {}),
    ("POST", "/a", {}),
    ("POST", "/a", {"data": {"k": "v w", "list": ["1", "2", None], "none": None, "n": 5}}),
    ("OPTIONS", "/a", {}),
    ("PATCH", "/a", {"data": b"\x00\xff", "headers": {"content-type": "x/y"}}),
    ("POST", "/a", {"data": "x" * 2_000_000}),
    ("GET", "/a", {"data": "with a body"}),
    ("GET", "/a", {"headers": {"User-Agent": "mine", "X-Empty": "", "Accept": None}}),
    ("GET", "/a", {"params": {"q": "a b", "many": [1, 2]}}),
    ("GET", "/with space/ü/%7Euser/../x?y=<z>#part", {}),
    ("GET", "/@me?to=a@b", {}),
    ("GET", "/a", {"headers": {"X-Word": "caf\u00e9"}}),
    ("DELETE", "/status/204", {}),
    ("GET", "/status/304", {}),
    ("POST", "/a", {"json": {}, "data": ""}),
]


def test_our_client_makes_all_requests_but_those_that_only_requests_can():
    left = [
        (path, options)
        for method, path, options in SEQUENCE
        if ready_requests.beyond(method, "http://h" + path, options)
    ]

    assert left == [("/a", {"headers": {"X-Word": "caf\u00e9"}})]


def test_a_sequence_of_requests_is_what_requests_would_send(server, context):
    for method, path, options in SEQUENCE:
        answer = requests.request(method, server.url + path, **options)
        expected = content(server.taken())

        check(context, server.url + path, method, answer.status_code, **options)

        assert content(server.taken()) == expected


@pytest.mark.parametrize(("method", "path", "options"), SEQUENCE)
def test_a_request_made_again_is_the_same(server, context, method, path, options):
    answer = requests.request(method, server.url + path, **options)
    expected = content(server.taken())

    for number in range(1, 4):
        url = server.url + path
        check(context, url, method, answer.status_code, iteration=number, **options)

    seen = server.taken()
    assert content(seen) == expected * 3
    assert [one.headers["x-osbench-iteration"] for one in seen] == ["1", "2", "3"]


def test_arguments_that_change_in_place_are_sent_as_they_are(server, context):
    headers, json = {"X-Mine": "1"}, {"n": 1}
    for value in (1, True, 2):
        headers["X-Mine"], json["n"] = str(value), value
        check(context, server.url + "/a", headers=headers)
        check(context, server.url + "/a", headers=headers)
        check(context, server.url + "/a", "POST", json=json)

    seen = server.taken()

    assert [one.headers["x-mine"] for one in seen if one.method == "GET"] == [
        *("1", "1"),
        *("True", "True"),
        *("2", "2"),
    ]
    assert [one.body for one in seen if one.body] == [b'{"n": 1}', b'{"n": true}', b'{"n": 2}']


def test_a_header_of_the_task_goes_before_ours(server, context):
    mine = {"x-osbench-run": "mine", "X-Osbench-Iteration": "9"}
    for _ in range(2):
        check(context, server.url + "/a", headers=mine)
        check(context, server.url + "/a", headers=mine, stream=True)

    got = [
        (h["x-osbench-run"], h["x-osbench-iteration"]) for h in (o.headers for o in server.taken())
    ]

    assert got == [("mine", "9")] * 4


def test_the_connection_is_kept(server, context):
    for _ in range(3):
        check(context, server.url + "/a")

    assert len({one.client for one in server.taken()}) == 1


# others keep method and body after 301 and 302, as browsers do: see test_http_clients
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_are_followed_as_requests_does(server, context, method, code):
    options: dict[str, Any] = {"headers": {"Authorization": "secret", "X-Mine": "1"}}
    if method == "POST":
        options["json"] = {"k": "v"}
    for target in ("/a", server.elsewhere + "/a"):
        url = f"{server.url}/to?code={code}&url={target}&cookie=c%3D1"
        requests.request(method, url, **options)
        expected = content(server.taken())

        check(context, url, method, **options)

        got = content(server.taken())
        assert len(got) == 2
        assert got == expected


def test_redirects_may_be_the_answer(server, context):
    check(context, f"{server.url}/to?code=302&url=/a", "GET", 302, allow_redirects=False)
    check(context, f"{server.url}/status/302", "GET", 302)

    assert len(server.taken()) == 2


def test_redirects_without_end(server, context):
    with pytest.raises(ConnectionError, match=r"^GET http://127.*/loop: more than 30 redirects"):
        check(context, server.url + "/loop")


def test_a_redirect_to_another_scheme(server, context):
    with pytest.raises(ValueError, match="redirects to ftp://h/x: not HTTP"):
        check(context, f"{server.url}/to?code=302&url=ftp://h/x")


def test_cookies_do_not_reach_the_next_iteration(server, context):
    check(context, f"{server.url}/to?code=302&url=/a&cookie=c%3D1")
    check(context, f"{server.url}/a")
    check(context, f"{server.url}/to?code=302&url=/a&cookie=c%3D1", stream=True)
    check(context, f"{server.url}/a", stream=True)

    cookies = [one.headers.get("cookie") for one in server.taken()]

    assert cookies == [None, "c=1", None, None, "c=1", None]


def test_any_other_option_goes_through_requests(server, context):
    check(context, server.url + "/a", auth=["me", "pw"])
    check(context, server.url + "/a", "POST", files={"f": "content"}, timeout=[5, 10])
    check(context, server.url.replace("//", "//me:pw@") + "/a", cookies={"k": "v"})

    first, second, third = server.taken()

    assert first.headers["authorization"] == third.headers["authorization"] == "Basic bWU6cHc="
    assert b"content" in second.body
    assert third.headers["cookie"] == "k=v"
    assert {one.headers["x-osbench-iteration"] for one in (first, second, third)} == {"7"}


@pytest.mark.parametrize("more", [{}, {"stream": True}])
def test_headers_of_ours_stay_with_the_host_asked_for(server, context, more):
    tracer = Tracer("key", "r1", 1.0, None, 0)
    scenario = HttpRequests({**context, "iteration": 3})
    scenario._recorder.profiler = profiler = tracer.begin(3)
    try:
        for target in ("/a", server.elsewhere + "/a"):
            url = f"{server.url}/to?code=302&url={target}"
            work = scenario.check_request(url, "GET", 200, headers={"X-Mine": "1"}, **more)
            context["runner"].run(work, context=copy_context())
    finally:
        trace = tracer.end(profiler, None)

    *known, foreign = (one.headers for one in server.taken())

    ours = {"x-osbench-run", "x-osbench-iteration", "traceparent", "x-trace-info", "x-trace-hmac"}
    for headers in known:
        assert ours <= headers.keys()
        assert headers["x-osbench-iteration"] == "3"
        assert headers["traceparent"].split("-")[1] == trace.hex()
    assert not ours & foreign.keys()
    assert foreign["x-mine"] == "1"


def test_requests_that_are_not_traced_carry_no_trace_headers(server, context):
    check(context, server.url + "/a")

    assert not [name for name in server.taken()[0].headers if "trace" in name]


def test_another_status_than_expected(server, context):
    with pytest.raises(UnexpectedStatus) as caught:
        check(context, server.url + "/status/500?token=secret", "get")

    assert str(caught.value) == f"GET {server.url}/status/500 answered 500, expected 200"


@pytest.mark.parametrize("status", [200, 204, 399])
def test_any_status_below_400_is_expected_where_none_is_named(server, context, status):
    scenario = HttpRequests({**context, "iteration": 1})

    context["runner"].run(scenario.check_request(f"{server.url}/status/{status}"))

    assert [one.method for one in server.taken()] == ["GET"]


def test_a_status_from_400_is_not_expected(server, context):
    scenario = HttpRequests({**context, "iteration": 1})

    with pytest.raises(UnexpectedStatus, match="answered 400, expected less than 400"):
        context["runner"].run(scenario.check_request(server.url + "/status/400"))


@pytest.mark.parametrize("more", [{}, {"stream": True}])
def test_a_request_ends_with_its_timeout(server, context, more):
    with pytest.raises(TimeoutError, match=r"^GET http://127\.0\.0\.1:\d+/slow: .*timed out"):
        check(context, server.url + "/slow?s=2", timeout=0.1, **more)
    context["timeout_s"] = 0.1
    for asked in ({}, {"timeout": 5}):
        with pytest.raises(TimeoutError):
            check(context, server.url + "/slow?s=2", **asked, **more)


@pytest.mark.parametrize("more", [{}, {"stream": True}])
def test_like_failures_have_like_messages(server, context, more):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        refused = f"http://127.0.0.1:{closed.getsockname()[1]}/x"
        messages = set()
        for number in range(3):
            with pytest.raises(ConnectionError) as caught:
                check(context, f"{refused}?n={number}", **more)
            messages.add(str(caught.value))
    with pytest.raises(ConnectionError, match=r"^GET http://127.*/drop: ."):
        check(context, server.url + "/drop", **more)

    assert len(messages) == 1
    assert messages.pop().startswith(f"GET {refused}: ")


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        ("nonsense", {}, "nonsense"),
        ("http://", {}, "http://"),
        ("http://h/", {"headers": {"X-A": 5}}, "header 'X-A' must be a string, got 5"),
        (
            "http://h/",
            {"headers": {"X-A": "1\r\nX-B: 2"}},
            "header 'X-A': name or value has a character",
        ),
        ("http://h/", {"headers": {"X A": "1"}}, "header 'X A': name or value has a character"),
        ("http://h/", {"json": float("nan")}, "JSON"),
        ("http://h/", {"timeout": 0}, "timeout"),
        ("http://h/", {"headers": {5: "x"}}, "headers must be a mapping of names"),
        ("http://h/", {"headers": "X-A: 1"}, "headers must be a mapping of names"),
        ("file:///etc/hostname", {}, "No connection adapters"),
        ("ftp://h/", {}, "No connection adapters"),
    ],
)
def test_arguments_that_no_request_can_have(context, url, options, said):
    with pytest.raises(ValueError, match=said):
        check(context, url, **options)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key."""
    return self_signed(tmp_path_factory.mktemp("tls"))


def test_certificates_are_checked_unless_the_task_says_otherwise(certificate, context, monkeypatch):
    with recording_server(certificate) as server:
        with pytest.raises(ConnectionError, match=r"(?i)certificate"):
            check(context, server.url + "/a")
        check(context, server.url + "/a", verify=False)
        check(context, server.url + "/a", verify=str(certificate))
        with pytest.raises(ConnectionError, match=r"(?i)certificate"):
            check(context, server.url + "/a", verify=True)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        check(context, server.url + "/a", timeout=5)

        assert len(server.taken()) == 3


def test_an_option_that_requests_does_not_know(context):
    with pytest.raises(TypeError, match="unexpected keyword argument 'jsn'"):
        check(context, "http://h/", jsn={})


def test_a_random_request_of_a_list(server, context):
    choices = [
        {"url": server.url + "/status/201", "method": "POST", "status_code": 201, "data": "x"},
        {"url": server.url + "/a", "method": "GET"},
    ]
    for _ in range(40):
        scenario = HttpRequests({**context, "iteration": 1})
        context["runner"].run(scenario.check_random_request(choices, 200))

    assert {(one.method, one.path) for one in server.taken()} == {
        ("POST", "/status/201"),
        ("GET", "/a"),
    }
    assert "status_code" not in choices[1]


def test_each_random_request_has_an_action_of_its_own(server, context):
    choices = [
        {"url": server.url + "/a?n={iteration}", "method": "get"},
        {"url": server.url},
        {"url": server.url + "/items/{iteration}", "method": "POST"},
    ]
    HttpRequests.warm_up(context := {**context, "args": {"requests": choices}})
    names = set()
    for number in range(1, 60):
        scenario = HttpRequests({**context, "iteration": number})
        filled = [{**one, "url": one["url"].replace("{iteration}", str(number))} for one in choices]
        context["runner"].run(scenario.check_random_request(filled))
        names |= {*scenario._recorder.names.names}

    assert names == {"requests.check_request", "GET /a", "GET /", "POST /items/{iteration}"}


def test_the_action_has_rallys_name(server, context):
    scenario = HttpRequests({**context, "iteration": 1})
    context["runner"].run(scenario.check_request(server.url + "/a", "GET", 200))

    assert scenario._recorder.names.names == ["requests.check_request"]


def test_every_http_workload_of_rally_fits():
    plugins, seen = Plugins(), 0
    for path in corpus().glob("*/scenarios/requests/*"):
        for subtask in yaml.safe_load(path.read_text())["subtasks"]:
            for name, args in subtask["scenario"].items():
                assert plugins.scenario(name).check_args(args) == [], path
                seen += 1

    assert seen >= 8


def test_a_request_that_is_no_object_has_no_name():
    assert _names([{"url": "http://h/a"}, 7, None, {"method": "put", "url": "/b?c=1"}]) == [
        "GET /a",
        "PUT /b",
    ]
