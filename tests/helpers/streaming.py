"""Requests whose responses stream, over each kind of driver, with the iteration that has them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from helpers.driven import LOOP, PLAIN_LOOP, SOCKETS
from osbench.common.plugin.atomic import WIDTH, ActionTimer
from osbench.common.plugin.scenario import Scenario
from osbench.common.protocol.exchanges import EXCHANGE
from osbench.edges.streams.stream_client import StreamClient
from osbench.worker.engine.loop.loop_thread import LoopThread
from osbench.worker.http.http_clients import HttpClients
from osbench.worker.http.observer import Observer
from osbench.worker.http.user.request_base import AskedRequest
from osbench.worker.http.wire.cookies import Cookies
from osbench.worker.http.wire.raw_response import RawResponse
from servers.child import PATIENCE_S

#: Name of the action of each request.
CHAT = "chat"


class Recorded(NamedTuple):
    """An atomic action: its name, the name of the action around it, and its times in ns."""

    name: str
    outer: str
    begun_ns: int
    ended_ns: int


def recorded(scenario: Scenario) -> list[Recorded]:
    """The actions of an iteration, as they were recorded."""
    flat, names = scenario._recorder.actions, scenario._recorder.names.names
    lines = [flat[at : at + WIDTH] for at in range(0, len(flat), WIDTH)]
    return [
        Recorded(names[name], names[lines[parent][0]] if parent >= 0 else "", begun, ended)
        for name, parent, begun, ended, _ in lines
    ]


def exchanges(scenario: Scenario) -> Any:
    """The HTTP requests of an iteration, as an array."""
    import numpy as np

    return np.frombuffer(bytes(scenario._recorder.exchanges), EXCHANGE)


class Streaming:
    """Makes requests with `stream` by a client of threads, or of a loop in another thread."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop | None, observer: Observer | None = None
    ) -> None:
        self._loop = loop
        self.clients = HttpClients(["X-Osbench-Run: r"], observer=observer)
        self._client = StreamClient(self.clients)

    def read(
        self, url: str, stream: Mapping[str, Any], scenario: Scenario | None = None, **options: Any
    ) -> RawResponse:
        """Make a request and read its stream; its action is `CHAT` of the iteration `scenario`."""
        made = scenario if scenario is not None else Scenario({})
        if self._loop is None:
            with ActionTimer(made, CHAT):
                asked = _asked(url, stream, options)
                return self._client.blocking_answer(asked, made, Cookies())
        return self.begin(url, stream, made, **options).result(2 * PATIENCE_S)

    def begin(
        self, url: str, stream: Mapping[str, Any], scenario: Scenario, **options: Any
    ) -> Future[RawResponse]:
        """Begin a request on the loop."""

        async def work() -> RawResponse:
            with ActionTimer(scenario, CHAT):
                asked = _asked(url, stream, options)
                return await self._client.answer(asked, scenario, Cookies())

        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work(), self._loop)


def _asked(url: str, stream: Mapping[str, Any], options: Mapping[str, Any]) -> AskedRequest:
    return AskedRequest(
        name=CHAT,
        method="GET",
        url=url,
        own=[],
        options={"timeout": PATIENCE_S, **options, "stream": stream},
        expect=None,
        check=None,
        verify=None,
        keep_body=False,
    )


@contextlib.contextmanager
def streaming(kind: str, observer: Observer | None = None) -> Iterator[Streaming]:
    """A client over a kind of driver; its loop is ended when the block is left."""
    if kind == SOCKETS:
        yield Streaming(None, observer)
    elif kind == LOOP:
        thread = LoopThread(lambda _: None)
        yield Streaming(thread.loop, observer)
        thread.stop()
        thread._thread.join(PATIENCE_S)
    else:
        assert kind == PLAIN_LOOP
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            loop, stop = runner.get_loop(), asyncio.Event()
            serving = threading.Thread(target=runner.run, args=(stop.wait(),))
            serving.start()
            yield Streaming(loop, observer)
            loop.call_soon_threadsafe(stop.set)
            serving.join(PATIENCE_S)


class ScriptedServer:
    """A server that answers each request by a function of its connection, and counts both."""

    def __init__(
        self, answer: Callable[[socket.socket], object], tls: ssl.SSLContext | None = None
    ) -> None:
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._answer = answer
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}/chat"
        self.connections = 0
        self.heads: list[bytes] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            while head := connection.recv(65536):
                self.heads.append(head)
                if self._answer(connection) is False:
                    return

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE_S)


@contextlib.contextmanager
def scripted(
    answer: Callable[[socket.socket], object], tls: ssl.SSLContext | None = None
) -> Iterator[ScriptedServer]:
    """A server; `answer` sends a response, and returns False to close the connection."""
    server = ScriptedServer(answer, tls)
    try:
        yield server
    finally:
        server.close()


def chunk(data: bytes) -> bytes:
    """A chunk of a body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def head(*lines: str, status: str = "200 OK") -> bytes:
    """The head of a response."""
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


#: The head of a stream in chunks.
CHUNKED = head("Content-Type: text/event-stream", "Transfer-Encoding: chunked")
LAST = b"0\r\n\r\n"


def sse(texts: Sequence[str]) -> list[bytes]:
    """Server-sent events of some texts."""
    return [f"data: {text}\n\n".encode() for text in texts]
