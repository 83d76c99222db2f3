"""The drivers of our HTTP client behind one synchronous interface, for tests that run over both."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from osbench.common.plugin.atomic import Names, Recorder
from osbench.worker.engine.loop.loop_thread import LoopThread
from osbench.worker.http.observer import Observer
from osbench.worker.http.on_loop.loop_client import LoopClient
from osbench.worker.http.opening import Opener
from osbench.worker.http.socket_client import SocketClient
from osbench.worker.http.wire.cookies import Cookies
from osbench.worker.http.wire.raw_response import RawResponse
from servers.child import PATIENCE_S

#: Kinds of drivers: blocking sockets, the event loop that engines use, and that of asyncio itself,
#: which stands in where there is no uvloop.
SOCKETS, LOOP, PLAIN_LOOP = DRIVERS = "sockets", "loop", "asyncio"


class SocketDriven(SocketClient):
    """`SocketClient` with the same methods as `LoopDriven`."""

    def status(
        self, method: str, url: str, own: Sequence[str], options: Mapping[str, Any]
    ) -> int | None:
        """The status code alone."""
        response = self.request(method, url, own, options, keep_body=False)
        return response.status if response is not None else None


class LoopDriven:
    """`LoopClient` with a loop of its own, for threads that are not the loop's."""

    def __init__(
        self,
        of_run: Sequence[str],
        loop: asyncio.AbstractEventLoop,
        observer: Observer | None = None,
        opener: Opener | None = None,
    ) -> None:
        self.client = LoopClient(of_run, observer=observer, opener=opener)
        self.loop = loop

    @property
    def retried(self) -> int:
        """As the client's."""
        return self.client.retried

    def request(
        self,
        method: str,
        url: str,
        own: Sequence[str],
        options: Mapping[str, Any],
        *,
        keep_body: bool = True,
        recorder: Recorder | None = None,
        cookies: Cookies | None = None,
    ) -> RawResponse | None:
        """As the client's."""
        work = self.client.request(
            method, url, own, options, keep_body=keep_body, recorder=recorder, cookies=cookies
        )
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    def status(
        self, method: str, url: str, own: Sequence[str], options: Mapping[str, Any]
    ) -> int | None:
        """The status code alone, by the client's own way to it."""

        async def work() -> int | None:
            ready = self.client.ready(method, url, options)
            if ready is None:
                return None
            return await self.client.status(ready, own, Recorder(Names()))

        return asyncio.run_coroutine_threadsafe(work(), self.loop).result(120)


@contextmanager
def driven(
    kind: str,
    of_run: Sequence[str] = (),
    observer: Observer | None = None,
    opener: Opener | None = None,
) -> Iterator[SocketDriven | LoopDriven]:
    """A client over a kind of driver; its loop is ended when the block is left."""
    if kind == SOCKETS:
        yield SocketDriven(of_run, observer=observer, opener=opener)
    elif kind == LOOP:
        thread = LoopThread(lambda _: None)
        yield LoopDriven(of_run, thread.loop, observer, opener)
        thread.stop()
        thread._thread.join(PATIENCE_S)
        assert thread.loop.is_closed()
    else:
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            loop, stop = runner.get_loop(), asyncio.Event()
            serving = threading.Thread(target=runner.run, args=(stop.wait(),))
            serving.start()
            yield LoopDriven(of_run, loop, observer, opener)
            loop.call_soon_threadsafe(stop.set)
            serving.join(PATIENCE_S)
