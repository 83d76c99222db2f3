"""What only an event loop has: requests side by side, cancelled ones, the end of the loop."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from helpers.certificates import self_signed
from helpers.driven import LOOP, PLAIN_LOOP, LoopDriven, driven
from helpers.engines import until
from helpers.recording_server import RecordingServer, recording_server
from osbench.worker.http.on_loop.loop_client import ORIGINS, LoopClient
from osbench.worker.http.on_loop.loop_connection import LoopConnection
from osbench.worker.http.wire.wire_errors import EarlyEnd
from servers.child import PATIENCE_S


@pytest.fixture(scope="module")
def running() -> Iterator[RecordingServer]:
    with recording_server() as server:
        yield server


@pytest.fixture
def server(running: RecordingServer) -> RecordingServer:
    running.taken()
    return running


@pytest.fixture(params=[LOOP, PLAIN_LOOP])
def made(request: pytest.FixtureRequest) -> Iterator[LoopDriven]:
    with driven(request.param) as client:
        assert isinstance(client, LoopDriven)
        yield client


def run(made: LoopDriven, work: Callable[[LoopClient], Awaitable[Any]]) -> Any:
    """Run in the loop of a client."""

    async def begin() -> Any:
        return await work(made.client)

    return asyncio.run_coroutine_threadsafe(begin(), made.loop).result(60)


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that hands each connection to a function, one after another."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.settimeout(60)
            serve(connection)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(PATIENCE_S)


def ended(connection: socket.socket) -> bool:
    """Whether the client has ended a connection; waits for it."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


def test_requests_side_by_side_have_a_connection_each_which_others_use_later(server, made):
    url = server.url + "/slow?s=0.2"

    async def work(client: LoopClient) -> None:
        for _ in range(2):
            answers = await asyncio.gather(*(client.request("GET", url, [], {}) for _ in range(5)))
            assert {answer.status for answer in answers} == {200}

    run(made, work)

    clients = [one.client for one in server.taken()]
    assert len(set(clients[:5])) == 5
    assert set(clients[:5]) == set(clients[5:])


def test_a_request_that_is_cancelled_costs_its_connection_and_no_other(server, made):
    closed: list[bool] = []

    def silent(connection: socket.socket) -> None:
        connection.recv(65536)
        asked.set()
        closed.append(ended(connection))

    asked = threading.Event()

    async def work(client: LoopClient) -> None:
        task = asyncio.create_task(client.request("GET", url, [], {"timeout": 60}))
        while not asked.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await client.request("GET", server.url + "/a", [], {})

    with listening(silent) as url:
        run(made, work)
        until(lambda: closed)


def test_one_who_gives_up_a_name_lookup_leaves_it_to_others(server, made, monkeypatch):
    asked, release = [], threading.Event()

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        release.wait(60)
        address = ("127.0.0.1", server.server_port)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    url = f"http://shop.invalid:{server.server_port}/a"

    async def work(client: LoopClient) -> None:
        patient = asyncio.create_task(client.request("GET", url, [], {}))
        hasty = asyncio.create_task(client.request("GET", url, [], {}))
        while not asked:
            await asyncio.sleep(0.001)
        hasty.cancel()
        with pytest.raises(TimeoutError, match=r"name lookup of shop\.invalid timed out"):
            await client.request("GET", url, [], {"timeout": 0.05})
        # the loop is free meanwhile
        release.set()
        assert (await patient).status == 200

    run(made, work)
    assert asked == ["shop.invalid"]


@pytest.mark.parametrize("resets", [False, True])
def test_the_peer_may_answer_and_leave_before_it_has_the_whole_body(made, resets):
    def refuse(connection: socket.socket) -> None:
        with connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!")
            if not resets:
                connection.shutdown(socket.SHUT_WR)
                release.wait(60)

    release = threading.Event()
    body = b"x" * 20_000_000
    with listening(refuse) as url:
        answer = made.request("PUT", url, [], {"data": body, "timeout": 60})
        release.set()

    assert answer is not None
    assert (answer.status, answer.content()) == (413, b"no!")


def test_an_answer_that_is_there_when_sending_fails_counts(made, monkeypatch):
    def reset(connection: socket.socket) -> None:
        with connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.set()

    async def send_late(self: LoopConnection, wire: memoryview) -> bool:
        # the loop reads nothing until the peer is gone, and its transport sends first
        gone.wait(60)
        self._transport.write(wire)
        return False

    gone = threading.Event()
    monkeypatch.setattr(LoopConnection, "_send_piece", send_late)
    with listening(reset) as url:
        answer = made.request("PUT", url, [], {"data": b"x" * 1_000_000, "timeout": 60})

    assert (answer.status, answer.content()) == (413, b"no!")


@pytest.mark.parametrize("timeout", [0.3, (20, 0.3)])
def test_a_peer_that_takes_no_more_of_a_body_is_a_timeout(made, timeout):
    def deaf(connection: socket.socket) -> None:
        connection.recv(1000)
        release.wait(60)
        connection.close()

    release = threading.Event()
    body = b"x" * 20_000_000
    with listening(deaf) as url:
        with pytest.raises(TimeoutError, match=r"^PUT http://127.*: timed out"):
            made.request("PUT", url, [], {"data": body, "timeout": timeout})
        release.set()


def test_bytes_that_come_before_the_request_are_its_answer(made):
    def hasty(connection: socket.socket) -> None:
        with connection:
            connection.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy")
            connection.shutdown(socket.SHUT_WR)
            ended(connection)

    with listening(hasty) as url:
        for _ in range(20):
            answer = made.request("GET", url, [], {"timeout": 60})
            assert answer is not None
            assert (answer.status, answer.content()) == (503, b"busy")


def test_a_connection_that_is_closed_at_once_is_a_failure(made):
    with listening(lambda connection: connection.close()) as url:
        for _ in range(20):
            with pytest.raises(EarlyEnd, match=r"^GET"):
                made.request("GET", url, [], {"timeout": 60})


def test_tls_keeps_its_connection_in_spite_of_tickets(tmp_path, made):
    certificate = self_signed(tmp_path)
    with recording_server(certificate) as server:
        for _ in range(4):
            status = made.status("GET", server.url + "/a", [], {"verify": str(certificate)})
            assert status == 200
        clients = [one.client for one in server.taken()]

    # one that sends tickets late has its first connection looked at too early
    assert len(set(clients)) <= 2


def test_connections_end_with_their_loop():
    closed: list[bool] = []

    def serve(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        closed.append(ended(connection))

    for kind in (LOOP, PLAIN_LOOP):
        with listening(serve) as url:
            with driven(kind) as client:
                assert client.status("GET", url, [], {}) == 204
                assert not closed
            until(lambda: closed)
        closed.clear()


def test_a_loop_keeps_connections_to_few_origins(made, monkeypatch):
    with recording_server() as server:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.server_port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        for number in (*range(ORIGINS + 1), ORIGINS, 0):
            url = f"http://h{number}.invalid:{server.server_port}/{number}"
            assert made.status("GET", url, [], {}) == 200
        seen = server.taken()

    assert seen[-2].client == seen[-3].client
    assert seen[-1].client != seen[0].client


def test_one_client_serves_several_loops(server):
    client = LoopClient([])

    async def twice() -> None:
        for _ in range(2):
            answer = await client.request("GET", server.url + "/a", [], {})
            assert answer is not None

    for _ in range(3):
        asyncio.run(twice())

    clients = [one.client for one in server.taken()]
    assert clients[0] == clients[1] != clients[2] == clients[3] != clients[4]
    assert len(client._pools) == 1


def test_loops_that_take_turns_in_one_thread_have_connections_of_their_own(server):
    client = LoopClient([])
    loops = [asyncio.new_event_loop() for _ in range(2)]

    async def once() -> None:
        answer = await client.request("GET", server.url + "/a", [], {})
        assert answer is not None

    for loop in (*loops, *loops):
        loop.run_until_complete(once())

    clients = [one.client for one in server.taken()]
    assert clients[:2] == clients[2:]
    assert clients[0] != clients[1]
    for loop in loops:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
