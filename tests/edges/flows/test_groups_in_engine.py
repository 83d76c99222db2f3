"""Groups of steps in an engine with real requests: actions, requests, traces, and the timeout."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from time import monotonic_ns
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from helpers.engines import batch, steps, until
from helpers.recording_server import RecordingServer, recording_server
from helpers.streaming import CHUNKED, LAST, chunk, scripted, sse
from osbench.common.protocol.exchanges import EXCHANGE
from osbench.common.values.outcomes import Outcome
from osbench.edges.flows.grouped_http_flow import GroupedHttpFlow
from osbench.edges.streams.event_times import BETWEEN_EVENTS, FIRST_EVENT
from osbench.worker.engine.body import Body
from osbench.worker.engine.closed_coroutines import ClosedCoroutines
from osbench.worker.engine.engine import EngineSetup
from osbench.worker.engine.users.user_plan import UserPlan
from osbench.worker.http.http_clients import HttpClients
from osbench.worker.http.user.http_session import LoopHttpSession
from osbench.worker.http.user.request_base import Base
from osbench.worker.tracing.profiling import Tracer
from osbench.worker.tracing.task_profiler import TaskProfiler
from osbench.worker.tracing.trace_ids import span_text

MEMBERS = ["a", "b", "c"]


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    with recording_server() as made:
        yield made


class Played:
    """One iteration of a flow that an engine has run, with the spans of its trace."""

    def __init__(self, args: dict[str, Any], *, timeout_s: float = 0.0) -> None:
        traces: list[Any] = []
        kept: Any = SimpleNamespace(put=traces.append)
        context: dict[str, Any] = {"run": "r", "timeout_s": timeout_s, "args": args}
        GroupedHttpFlow.warm_up(context)
        clients = HttpClients([])
        body = Body(
            cls=GroupedHttpFlow,
            function=GroupedHttpFlow.run,
            is_coroutine=True,
            arguments=lambda _: args,
            context=context,
            timeout_ns=int(timeout_s * 1e9),
            users=UserPlan.of(
                GroupedHttpFlow, open_http=lambda _: LoopHttpSession(clients, Base())
            ),
            tracer=Tracer("key", "r", 1.0, kept, 0, kind=TaskProfiler),
        )
        setup = EngineSetup(body=body, t0_ns=monotonic_ns(), request_work=lambda: None)
        engine = ClosedCoroutines(setup)
        try:
            engine.set_user_limit(1)
            engine.add(batch((1, 2)))
            until(lambda: engine.rows)
            until(lambda: not any(one.is_alive() for one in engine.abandoned))
        finally:
            engine.close()
        (row,) = engine.rows
        self.outcome = row[1]
        self.errors = [str(one) for one in body.failures.fresh()]
        names = body.names.names
        self.actions = [(names[name], *rest) for name, *rest in steps(row)]
        self.exchanges = np.frombuffer(row[8][2], EXCHANGE)
        ((ids, spans),) = traces
        self.spans = {span_text(ids, span[0]): span for span in spans}
        self.span_names = {span[0]: span[2] for span in spans}
        self.trace_id = ids[0].hex()


def page(server: RecordingServer, *paths: str) -> dict[str, Any]:
    members = [
        {"name": name, "path": path} for name, path in zip(MEMBERS, paths or MEMBERS, strict=False)
    ]
    return {
        "base": server.url,
        "steps": [
            {"name": "first", "path": "/first"},
            {"name": "page", "parallel": members},
            {"name": "last", "path": "/last"},
        ],
    }


def test_members_are_actions_of_the_group_that_overlap(server) -> None:
    found = Played(page(server))

    assert found.outcome == Outcome.OK
    names = [(name, parent) for name, parent, *_ in found.actions]
    assert names == [("first", -1), ("page", -1), ("a", 1), ("b", 1), ("c", 1), ("last", -1)]
    times = {name: (begin, end) for name, _, begin, end, _ in found.actions}
    begins, ends = zip(*(times[name] for name in MEMBERS), strict=True)
    # all have begun before any has ended, and the group has the time of all
    assert max(begins) < min(ends)
    assert times["page"][0] <= min(begins)
    assert max(ends) <= times["page"][1] <= times["last"][0]


def test_each_request_belongs_to_its_member(server) -> None:
    found = Played(page(server))

    by_action = [found.actions[at][0] for at in found.exchanges["action"]]
    assert sorted(by_action) == ["a", "b", "c", "first", "last"]
    assert set(found.exchanges["status"]) == {200}
    # the connection of the first request serves one member, the others open theirs
    opened = [found.actions[one["action"]][0] for one in found.exchanges if one["connect"] > 0]
    assert len(opened) == 3
    assert len({one.connection for one in server.taken()}) == 3


def test_each_request_has_its_own_parent_in_the_trace_of_the_iteration(server) -> None:
    found = Played(page(server))

    parents = {}
    for one in server.taken():
        _, trace_id, parent, _ = one.headers["traceparent"].split("-")
        assert trace_id == found.trace_id
        (span,) = [
            span for text, span in found.spans.items() if text.replace("-", "")[16:] == parent
        ]
        parents[one.path] = span[2], found.span_names[span[1]]
    assert parents == {
        "/first": ("first", "osbench.iteration"),
        "/a": ("a", "page"),
        "/b": ("b", "page"),
        "/c": ("c", "page"),
        "/last": ("last", "osbench.iteration"),
    }


def test_one_that_fails_fails_the_iteration_once_the_others_have_ended(server) -> None:
    found = Played(page(server, "/a", "/status/503", "/c"))

    assert found.outcome == Outcome.FAILED
    (error,) = found.errors
    assert "page > b answered 503, expected less than 400" in error
    assert "(1 of 3 steps at once failed)" in error
    assert {name: failed for name, *_, failed in found.actions} == {
        "first": 0,
        "page": 1,
        "a": 0,
        "b": 1,
        "c": 0,
    }


def test_a_timeout_ends_all_members(server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        found = Played(page(server, url, "/b", url), timeout_s=1.0)

    assert found.outcome == Outcome.TIMED_OUT
    # requests without a response are there, with their members
    unanswered = [one for one in found.exchanges if one["rest"] == 0]
    assert sorted(found.actions[one["action"]][0] for one in unanswered) == ["a", "c"]


def test_streams_of_a_group_have_their_own_events() -> None:
    numbers = {"a": 2, "b": 4}
    with ExitStack() as stack:
        members = []
        for name, number in numbers.items():
            stream = CHUNKED + b"".join(map(chunk, sse(["x"] * number))) + LAST
            chat = stack.enter_context(scripted(lambda peer, stream=stream: peer.sendall(stream)))
            members.append({"name": name, "path": chat.url, "stream": {"events": "sse"}})

        found = Played({"steps": [{"name": "page", "parallel": members}]})

    assert (found.outcome, found.errors) == (Outcome.OK, [])
    names = [name for name, *_ in found.actions]
    owners = {name: names.index(name) for name in numbers}
    for name, number in numbers.items():
        events = [action for action, owner, *_ in found.actions if owner == owners[name]]
        assert sorted(events) == sorted([FIRST_EVENT] + [BETWEEN_EVENTS] * (number - 1))
