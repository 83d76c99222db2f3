"""A web server that counts which iterations reached it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from weakref import WeakSet

from servers.child import PATIENCE_S
from servers.streams import end_streams

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n"


class CountingServer:
    """Counts requests by iteration number on arrival, before any delay.

    One event loop in a thread: several thousand requests a second, and a stalled request
    holds no thread.
    """

    def __init__(self, delay_s: float = 0.0) -> None:
        #: Seconds that each request waits for its answer; may be changed at any time.
        self.delay_s = delay_s
        #: Requests by (value of X-Osbench-Run, iteration number).
        self.by_run: Counter[tuple[str, int]] = Counter()
        #: Instants (time.monotonic) at which requests with an iteration number came.
        self.instants: list[float] = []
        #: Requests without an iteration number.
        self.anonymous = 0
        #: The header names and values of the last request, names in lower case.
        self.last_headers: dict[str, str] = {}
        self.port = 0
        self._stalled_until = 0.0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True, name="counting-server")
        self._ready = threading.Event()
        self._stopped = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        self._writers: WeakSet[asyncio.StreamWriter] = WeakSet()

    @property
    def url(self) -> str:
        """Where the server answers, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def counts(self) -> Counter[int]:
        """How often each iteration number came, over all runs."""
        total: Counter[int] = Counter()
        for (_, iteration), count in dict(self.by_run).items():
            total[iteration] += count
        return total

    def stall(self, for_s: float) -> None:
        """Answer nothing for a while; requests are counted and wait. With 0 they are answered."""
        self._stalled_until = time.monotonic() + for_s

    def start(self) -> None:
        """Listen; returns when connections are taken."""
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)

    def stop(self) -> None:
        """Close the socket and every connection."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        await end_streams(server, self._writers)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = self._loop.create_task(self._connection(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while True:
                    await self._request(reader, writer)
        finally:
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (
                line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:-2]
            )
        }
        if length := int(headers.get("content-length", "0")):
            await reader.readexactly(length)
        self._count(headers)
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        while (left_s := self._stalled_until - time.monotonic()) > 0:
            # another call may end it sooner
            await asyncio.sleep(min(left_s, 0.05))
        writer.write(ANSWER)
        await writer.drain()

    def _count(self, headers: dict[str, str]) -> None:
        self.last_headers = headers
        number = headers.get("x-osbench-iteration")
        if number is None:
            self.anonymous += 1
        else:
            self.instants.append(time.monotonic())
            self.by_run[headers.get("x-osbench-run", ""), int(number)] += 1


@contextlib.contextmanager
def counting_server(delay_s: float = 0.0) -> Iterator[CountingServer]:
    """A counting web server on a free loopback port; `delay_s` seconds before each answer."""
    server = CountingServer(delay_s)
    server.start()
    try:
        yield server
    finally:
        server.stop()
