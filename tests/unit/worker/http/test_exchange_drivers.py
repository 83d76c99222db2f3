"""The rules of second attempts and redirects over a real server, alike with each driver."""

from __future__ import annotations

import asyncio
import gc
import socket
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from helpers.driven import DRIVERS, driven
from helpers.recording_server import RecordingServer, recording_server
from osbench.common.plugin.atomic import Names, Recorder
from osbench.common.protocol.exchanges import EXCHANGE, OWN_TWICE
from osbench.worker.http.blocking_driver import drive
from osbench.worker.http.exchange_steps import Receive, Send, Steps
from osbench.worker.http.on_loop.loop_client import LoopClient
from osbench.worker.http.socket_client import SocketClient
from osbench.worker.http.wire.cookies import Cookies


@dataclass(frozen=True, kw_only=True)
class Case:
    """A request over a kept connection, and what is to come of it."""

    method: str = "GET"
    path: str = "/a"
    options: dict[str, Any] = field(default_factory=dict)
    #: What the server gets, in order, and over how many connections.
    seen: list[str]
    connections: int
    #: The status; or a part of the error.
    outcome: int | str = 200
    #: Requests that were sent again.
    again: int = 0
    #: Requests that the recorder knows of.
    records: int = 1
    #: A client that sees all requests takes no fast path.
    observed: bool = False


@pytest.mark.parametrize("kind", [Send, Receive])
def test_a_step_of_a_handshake_ends_at_its_limit(kind):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        data = (b"x" * (8 << 20),) if kind is Send else ()

        def steps() -> Steps[None]:
            yield kind(ours, *data, 0.05)

        with pytest.raises(TimeoutError):
            drive(steps())


TO = "/to?code={}&url={}"
CASES = {
    "an ordinary answer": Case(seen=["GET /a"], connections=1),
    "a body": Case(method="PUT", options={"data": b"x" * 300_000}, seen=["PUT /a"], connections=1),
    "lost": Case(path="/drop", seen=["GET /drop"] * 2, connections=2, outcome="GET", again=1),
    "lost, with a large body": Case(
        method="PUT",
        path="/drop",
        options={"data": b"x" * 300_000},
        seen=["PUT /drop"] * 2,
        connections=2,
        outcome="PUT",
        again=1,
    ),
    "lost, what may have been done": Case(
        method="POST",
        path="/drop",
        seen=["POST /drop"],
        connections=1,
        outcome="and a POST is not sent twice",
    ),
    "a redirect": Case(
        path=TO.format(302, "/b"), seen=["GET /to", "GET /b"], connections=1, records=2
    ),
    "a redirect of a POST": Case(
        method="POST",
        path=TO.format(303, "/b"),
        options={"data": b"lamp"},
        seen=["POST /to", "GET /b"],
        connections=1,
        records=2,
    ),
    "a redirect that keeps the method": Case(
        method="POST",
        path=TO.format(307, "/b"),
        options={"data": b"lamp"},
        seen=["POST /to", "POST /b"],
        connections=1,
        records=2,
    ),
    "a redirect that is not followed": Case(
        path=TO.format(302, "/b"),
        options={"allow_redirects": False},
        seen=["GET /to"],
        connections=1,
        outcome=302,
    ),
    "a redirect to what is lost": Case(
        method="POST",
        path=TO.format(303, "/drop"),
        seen=["POST /to", "GET /drop", "GET /drop"],
        connections=2,
        outcome="/drop: ",
        again=1,
        records=2,
    ),
    "redirects without end": Case(
        path="/loop", seen=["GET /loop"] * 31, connections=1, outcome="/loop: more than", records=31
    ),
    "close": Case(options={"headers": {"Connection": "close"}}, seen=["GET /a"], connections=1),
}
ALL = {f"{name}{', observed' * on}": (case, on) for name, case in CASES.items() for on in (0, 1)}


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    with recording_server() as running:
        yield running


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(("case", "observed"), ALL.values(), ids=ALL)
@pytest.mark.parametrize("with_cookies", [False, True], ids=["plain", "cookies"])
def test_what_comes_of_a_request_over_a_kept_connection(
    server: RecordingServer, driver: str, case: Case, observed: bool, with_cookies: bool
) -> None:
    watched: list[str] = []
    observer = (lambda request, *_: watched.append(request.verb)) if observed else None
    recorder, cookies = Recorder(Names()), Cookies() if with_cookies else None
    with driven(driver, observer=observer) as client:
        client.request("GET", server.url + "/first", [], {})
        server.taken()
        watched.clear()

        outcome: int | str
        try:
            answer = client.request(
                case.method,
                server.url + case.path,
                [],
                {**case.options, "timeout": 60},
                recorder=recorder,
                cookies=cookies,
            )
            assert answer is not None
            outcome = answer.status
        except ConnectionError as error:
            outcome = str(error)

    seen = server.taken()
    assert [f"{one.method} {one.path.partition('?')[0]}" for one in seen] == case.seen
    assert len({one.client for one in seen}) == case.connections
    assert outcome == case.outcome or (isinstance(outcome, str) and str(case.outcome) in outcome)
    found = np.frombuffer(recorder.exchanges, EXCHANGE)
    assert len(found) == case.records
    assert (found["client"] == OWN_TWICE).sum() == client.retried == case.again
    assert recorder.asked is None
    assert len(watched) == (case.records if observed else 0)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("in_loop", [True, False], ids=["loop", "thread"])
def test_a_failure_is_forgotten_without_the_garbage_collector(
    server: RecordingServer, method: str, in_loop: bool
) -> None:
    causes: list[weakref.ref[BaseException]] = []
    blocking, client = SocketClient([]), LoopClient([])

    async def ask(method: str, path: str) -> None:
        request = method, server.url + path, [], {"timeout": 60}
        try:
            await client.request(*request) if in_loop else blocking.request(*request)
        except ConnectionError as error:
            assert error.__cause__ is not None
            causes.append(weakref.ref(error.__cause__))

    async def fail() -> None:
        await ask("GET", "/a")
        await ask(method, "/drop")
        # what the loop itself still has of it
        await asyncio.sleep(0)
        assert [cause() for cause in causes] == [None]

    gc.disable()
    try:
        asyncio.run(fail())
    finally:
        gc.enable()
