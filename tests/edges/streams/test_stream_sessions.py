"""Streams of virtual users: `self.http` of threads and coroutines, and steps of flows."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import Any

import pytest

from helpers.streaming import CHUNKED, LAST, chunk, head, recorded, scripted, sse
from osbench.common.plugin import entry_points
from osbench.common.plugin.atomic import Names
from osbench.common.plugin.scenario import Scenario, VirtualUser
from osbench.common.protocol.iteration_outputs import outputs
from osbench.edges.streams import event_times
from osbench.edges.streams.event_times import BETWEEN_EVENTS, BYTE_RATE, FIRST_EVENT
from osbench.worker.engine.loop.loop_recorder import LoopRecorder
from osbench.worker.http.http_clients import HttpClients
from osbench.worker.http.user.expectations import CheckFailed, UnexpectedStatus
from osbench.worker.http.user.http_session import HttpSession, LoopHttpSession
from osbench.worker.http.user.request_base import Base
from osbench.worker.scenarios.http_flow import HttpFlow

WORDS = sse(["one", "two", "three"])
STREAM = CHUNKED + b"".join(map(chunk, WORDS)) + LAST
SSE = {"events": "sse"}
#: Of requests, seconds.
AMPLE = 60


def send(answer: bytes, connection: socket.socket) -> None:
    connection.sendall(answer)


def iteration(url: str, kind: type[Any]) -> Scenario:
    clients = HttpClients([])
    made = Scenario({"iteration": 3})
    if kind is LoopHttpSession:
        made._recorder = LoopRecorder(Names())
    session = kind(clients, Base(url=url, options={"timeout": AMPLE}))
    made._user = VirtualUser(1, {}, lambda _: session)
    return made


def ask(made: Scenario, kind: type[Any], **wishes: Any) -> Any:
    """The response to a request of an iteration."""
    asked = partial(made.http.post, "/chat", json={"prompt": "?"}, **wishes)
    if kind is HttpSession:
        return asked()

    async def work() -> Any:
        return await asked()

    return asyncio.run(work())


KINDS = pytest.mark.parametrize("kind", [HttpSession, LoopHttpSession])


@KINDS
def test_a_request_of_a_scenario_is_read_as_a_stream(kind: type[Any]) -> None:
    with scripted(partial(send, STREAM)) as server:
        made = iteration(server.url, kind)
        response = ask(made, kind, stream=SSE, name="ask")

        assert response.status == 200
        assert response.headers["content-type"] == "text/event-stream"
        with pytest.raises(ValueError, match="not kept"):
            _ = response.text
        assert b"X-Osbench-Iteration: 3" in server.heads[0]
    names = [(one.name, one.outer) for one in recorded(made)]
    assert names == [("ask", ""), (FIRST_EVENT, "ask"), *[(BETWEEN_EVENTS, "ask")] * 2]


@KINDS
def test_a_status_that_is_not_expected_shows_its_body(kind: type[Any]) -> None:
    answer = head("Content-Length: 9", status="503 Slow") + b"too busy!"
    with (
        scripted(partial(send, answer)) as server,
        pytest.raises(UnexpectedStatus, match=r"503.*too busy!"),
    ):
        ask(iteration(server.url, kind), kind, stream=SSE)


@KINDS
def test_headers_of_a_stream_can_be_checked(kind: type[Any]) -> None:
    with scripted(partial(send, STREAM)) as server:
        made = iteration(server.url, kind)
        ask(made, kind, stream=SSE, check={"header content-type": "text/event-stream"})
        with pytest.raises(CheckFailed, match="content-type is 'text/event-stream', not 'x'"):
            ask(made, kind, stream=SSE, check={"header content-type": "x"})


@KINDS
@pytest.mark.parametrize(
    ("stream", "said"),
    [({"event": "sse"}, "stream has no key 'event'"), ({"events": "x"}, "must be sse, lines")],
)
def test_mistyped_keys_fail_before_the_request(
    kind: type[Any], stream: dict[str, Any], said: str
) -> None:
    with scripted(partial(send, STREAM)) as server:
        with pytest.raises(TypeError, match=said):
            ask(iteration(server.url, kind), kind, stream=stream)
        assert server.connections == 0


@KINDS
def test_a_request_of_another_client_is_refused(
    kind: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://user:secret@proxy.example:3128")
    made = iteration("http://chat.example", kind)

    with pytest.raises(ValueError, match="osbench's own HTTP client reads streams") as raised:
        ask(made, kind, stream=SSE)

    assert "proxy.example" in str(raised.value)
    assert "secret" not in str(raised.value)


@KINDS
def test_an_iteration_that_cannot_record_all_says_so(
    kind: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_times, "MOST_ACTIONS", 0)
    long = CHUNKED + b"".join(map(chunk, sse(["x"] * 200))) + LAST
    with scripted(partial(send, long)) as server:
        made = iteration(server.url, kind)
        ask(made, kind, stream=SSE, name="ask")

    assert made._checks is not None
    ((name, counts),) = made._checks.items()
    assert name.startswith("ask: each time between events is recorded")
    assert counts == [0, 1]


def test_without_the_edge_a_stream_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        entry_points, "installed_points", lambda kinds: {kind: [] for kind in kinds}
    )
    from osbench.common.errors import PluginError

    with pytest.raises(PluginError, match=r"osbench\.stream"):
        ask(iteration("http://chat.example", HttpSession), HttpSession, stream=SSE)


def test_a_step_of_a_flow_repeats_its_stream_and_fills_placeholders() -> None:
    steps = [
        {
            "name": "chat",
            "path": "/chat",
            "repeat": 2,
            "stream": {"events": "sse", "until": "{user.number}-done"},
        }
    ]
    done = CHUNKED + chunk(WORDS[0]) + chunk(b"data: 1-done\n\n") + LAST
    with scripted(partial(send, done)) as server:
        made = HttpFlow.__new__(HttpFlow)
        other = iteration(server.url.removesuffix("/chat"), LoopHttpSession)
        made._recorder, made._user = other._recorder, other._user
        context = {"args": {"steps": steps}, "iteration": 1, "run": "r"}
        HttpFlow.warm_up(context)
        made.context = context
        asyncio.run(made.run(steps=steps))

    assert [one.name for one in recorded(made)] == ["chat", FIRST_EVENT, BETWEEN_EVENTS] * 2
    # one chart of each title, however often the step is made
    charts = outputs(made._outputs or ())["additive"]
    assert BYTE_RATE in [one["title"] for one in charts]
    assert len({one["title"] for one in charts}) == len(charts)
