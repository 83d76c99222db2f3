"""Connections that are opened and left alone keep nobody from the pages."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import uvicorn

from helpers.engines import until
from helpers.web import TOKENS, make_run, serving
from osbench.common.network import connection_limits
from osbench.common.network.connection_limits import (
    WAITING_OF_CLIENT,
    BoundedConnection,
    Connections,
)
from osbench.coordinator.front.web.web_server import WebServer
from servers.child import PATIENCE_S

RUN = "20260401-120000-ab12"
HEADERS = {"Authorization": f"Bearer {TOKENS.token}"}
SLOW = 500


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebServer]:
    make_run(tmp_path, RUN)
    with serving(tmp_path) as found:
        yield found


def opened(url: httpx.URL, count: int, sent: bytes) -> list[socket.socket]:
    """Connections that begin a request and stay."""
    found = []
    for _ in range(count):
        found.append(socket.create_connection((url.host, url.port or 80), PATIENCE_S))
        # one that had to go already
        with contextlib.suppress(OSError):
            found[-1].sendall(sent)
    return found


def ended(several: list[socket.socket]) -> int:
    """How many of them the server has ended."""
    poll = select.poll()
    for one in several:
        poll.register(one, select.POLLIN)
    return len(poll.poll(0))


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\nX-A: "])
def test_who_asks_gets_the_page_beside_many_who_do_not(server: WebServer, sent: bytes) -> None:
    url = httpx.URL(server.url)
    with httpx.Client(base_url=url, headers=HEADERS, timeout=PATIENCE_S) as early:
        assert early.get(f"/runs/{RUN}").status_code == 200

        slow = opened(url, SLOW, sent)

        with httpx.Client(base_url=url, headers=HEADERS, timeout=PATIENCE_S) as late:
            for client in (late, early, late):
                assert client.get(f"/runs/{RUN}").status_code == 200
        until(lambda: ended(slow) >= SLOW - WAITING_OF_CLIENT)
    for one in slow:
        one.close()


@pytest.mark.parametrize("sent", [b"", b"GET / HT"])
def test_the_head_of_a_request_has_to_come_in_time(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connection_limits, "HEAD_S", 0.05)

    (slow,) = opened(httpx.URL(server.url), 1, sent)

    with slow, contextlib.suppress(ConnectionError):
        assert slow.recv(1) == b""


def test_a_stream_lasts_longer_than_a_wait(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # so long that a busy machine sends the head of the stream in time
    monkeypatch.setattr(connection_limits, "HEAD_S", 1.0)
    url = httpx.URL(server.url)

    with (
        httpx.Client(base_url=url, headers=HEADERS, timeout=PATIENCE_S) as client,
        client.stream("GET", "/frames") as stream,
    ):
        events = stream.iter_raw()
        assert next(events)
        # whoever waits has to go meanwhile
        slow = opened(url, WAITING_OF_CLIENT * 2, b"G")
        until(lambda: ended(slow) == len(slow))
        assert next(events)
    for one in slow:
        one.close()


def test_an_answer_that_is_read_slowly_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "HEAD_S", 0.01)
    body = b"x" * (32 << 20)
    looks: list[int] = []

    class Noted(BoundedConnection):
        def _end_wait(self) -> None:
            looks.append(self.transport.get_write_buffer_size())
            super()._end_wait()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    sock = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=cast("Any", partial(Noted, among=Connections())),
        lifespan="off",
        log_config=None,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[sock])))
    thread.start()
    with socket.create_connection(sock.getsockname(), PATIENCE_S) as reader:
        reader.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        until(lambda: len(looks) > 2)
        got = 0
        while piece := reader.recv(1 << 20):
            got += len(piece)
    server.should_exit = True
    thread.join()

    assert got > len(body)


class Peer:
    """Stands for a connection."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.transport = self
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


def test_clients_have_their_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "WAITING_OF_CLIENT", 3)
    monkeypatch.setattr(connection_limits, "WAITING", 5)
    monkeypatch.setattr(connection_limits, "OF_CLIENT", 4)
    connections: Any = Connections()
    ours, theirs, others = ([Peer(name) for _ in range(6)] for name in ("a", "b", "c"))

    for one in ours:
        connections.add(one)
    assert gone(ours) == [0, 1, 2]

    for one in theirs[:3]:
        connections.add(one)
    # the oldest of all
    assert (gone(ours), gone(theirs)) == ([0, 1, 2, 3], [])

    for one in others:
        connections.add(one)
        connections.serve(one)
    # those that wait no more stay: who comes then has to go itself
    assert gone(others) == [4, 5]
    assert (gone(ours), gone(theirs)) == ([0, 1, 2, 3, 4], [])

    connections.remove(others[0])
    again = Peer("c")
    connections.add(again)
    assert not again.aborted


def gone(several: list[Peer]) -> list[int]:
    return [at for at, one in enumerate(several) if one.aborted]
