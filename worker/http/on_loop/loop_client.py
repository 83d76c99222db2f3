"""HTTP/1.1 requests on an event loop: at the least CPU, for virtual users that share a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextvars import Context
from time import monotonic_ns
from typing import Any

from osbench.common.network.response_bound import USUAL, ResponseBound
from osbench.common.plugin.atomic import Recorder
from osbench.common.ports.threads import get_ident
from osbench.worker.http.addresses import REDIRECTS
from osbench.worker.http.exchange_rules import ExchangeRules
from osbench.worker.http.observer import Observer
from osbench.worker.http.on_loop.loop_connection import LoopConnection
from osbench.worker.http.on_loop.loop_driver import drive_on_loop, look_at
from osbench.worker.http.opening import Opener
from osbench.worker.http.ready_requests import ReadyRequest, ReadyRequests
from osbench.worker.http.server_names import ServerNames
from osbench.worker.http.wire.cookies import Cookies
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.raw_response import RawResponse

#: Origins whose connections are kept, at most.
ORIGINS = 64


class LoopClient:
    """HTTP client for coroutines: keeps idle connections per event loop; cookies are not kept.

    All loops share TLS sessions to resume and the cached addresses of hosts.
    """

    def __init__(
        self,
        of_run: Sequence[str],
        bound: ResponseBound = USUAL,
        *,
        opener: Opener | None = None,
        observer: Observer | None = None,
        servers: ServerNames | None = None,
    ) -> None:
        """`of_run`: header lines of every request, sent to the host of its URL only.

        `bound`, `opener`, `observer` and `servers` are as of `SocketClient`.
        """
        self._ready = ReadyRequests(of_run, bound)
        self._pools: dict[asyncio.AbstractEventLoop, LoopPool] = {}
        self._of_thread: dict[int, LoopPool] = {}
        self._rules = ExchangeRules(opener or Opener(), observer=observer, servers=servers)
        self._observed = observer is not None or servers is not None

    @property
    def retried(self) -> int:
        """Return how many requests were sent again because an idle connection had ended."""
        return self._rules.retried

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
    ) -> Coroutine[Any, Any, RawResponse] | None:
        """Make a request and follow its redirects; the coroutine returns the last response.

        Returns None, and sends nothing, if another client has to make the request. Arguments and
        errors: see `SocketClient.request`. Cancelling the task closes the connection.
        """
        ready = self._ready.get(method, url, options)
        if ready is None:
            return None
        return self._request(ready, own, keep_body, recorder, cookies)

    async def _request(
        self,
        ready: ReadyRequest,
        own: Sequence[str],
        keep_body: bool,
        recorder: Recorder | None,
        cookies: Cookies | None,
    ) -> RawResponse:
        request = ready.request
        if cookies is not None:
            own = cookies.added_to(own, request)
        pool = self._pool()
        phases = ExchangePhases(monotonic_ns())
        if recorder is not None:
            recorder.ask(phases)
        first: RawResponse | BaseException | None = None
        # the kept connection, at the least CPU; the rules for all else are in `ExchangeRules`
        connection = self._kept(pool, ready, phases)
        if connection is not None:
            try:
                await connection.begin(request, own, ready.limits, phases, keep_body=keep_body)
                first = response = connection.answer(request, phases)
                ends = response.status not in REDIRECTS or not ready.follows
                if ends and response.coded:
                    await look_at(response)
            except BaseException as error:  # noqa: BLE001 - it is raised again, or asked again
                first = error
            else:
                if ends:
                    pool.put(request.origin, connection)
                    if recorder is not None:
                        recorder.end_exchange(phases)
                    if cookies is not None:
                        cookies.take(response)
                    return response
        steps = self._rules.request(
            pool,
            ready,
            own,
            phases,
            keep_body=keep_body,
            recorder=recorder,
            cookies=cookies,
            kept=connection,
        )
        try:
            return await drive_on_loop(steps, first)
        finally:
            # an error that is kept here would keep itself
            del first

    def ready(self, method: str, url: str, options: Mapping[str, Any]) -> ReadyRequest | None:
        """Return the request for `status`, perhaps cached; None if another client has to make it.

        `options` are the keyword arguments of `requests.request`. Raises ValueError for a URL, a
        header or JSON data that cannot be sent.
        """
        return self._ready.get(method, url, options)

    async def status(self, ready: ReadyRequest, own: Sequence[str], recorder: Recorder) -> int:
        """Send a prepared request, follow its redirects and return the final status code.

        Like `request` without cookies and with the body discarded, in fewer calls, as most requests
        of a load are of this kind. `own`: header lines for the first host only. `recorder` gets the
        phases of each request. Raises TimeoutError, ConnectionError or ValueError.
        """
        pool = self._pool()
        phases = ExchangePhases(monotonic_ns())
        recorder.ask(phases)
        first: RawResponse | BaseException | None = None
        connection = self._kept(pool, ready, phases)
        if connection is not None:
            request = ready.request
            try:
                await connection.begin(request, own, ready.limits, phases, keep_body=False)
                status = connection.plain_status(phases)
                if not status or (status in REDIRECTS and ready.follows):
                    first = connection.answer(request, phases)
            except BaseException as error:  # noqa: BLE001 - as in `request`
                first = error
            if first is None:
                pool.put(request.origin, connection)
                recorder.end_exchange(phases)
                return status
        steps = self._rules.request(
            pool, ready, own, phases, keep_body=False, recorder=recorder, kept=connection
        )
        try:
            return (await drive_on_loop(steps, first)).status
        finally:
            del first

    def _kept(
        self, pool: LoopPool, ready: ReadyRequest, phases: ExchangePhases
    ) -> LoopConnection | None:
        """Take an idle connection for an ordinary request out of the pool; None if there is none.

        Also None for requests that `ExchangeRules` has to make from the start: with a large body,
        with `Connection: close`, or if there is an observer.
        """
        request = ready.request
        if request.rest or request.last or self._observed:
            return None
        return pool.take(request.origin, phases.begun_ns, certainly=not request.repeatable)

    def _pool(self) -> LoopPool:
        # to ask asyncio for the loop is a system call in Python 3.11
        pool = self._of_thread.get(get_ident())
        if pool is None or not pool.is_running():
            loop = asyncio.get_running_loop()
            pool = self._pools.get(loop) or self._open_pool(loop)
            self._of_thread[get_ident()] = pool
        return pool

    def _open_pool(self, loop: asyncio.AbstractEventLoop) -> LoopPool:
        for ended in [one for one in list(self._pools) if one.is_closed()]:
            self._pools.pop(ended, None)
        for ident, pool in list(self._of_thread.items()):
            if not pool.is_running():
                self._of_thread.pop(ident, None)
        pool = self._pools[loop] = LoopPool(loop)
        return pool


class LoopPool:
    """The idle connections of one event loop by origin (host, port, TLS); used in its thread only.

    All virtual users of the loop share them: a user of an open load is a task for each iteration.
    There are no more connections than there were requests at once.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        #: The connection used last comes last.
        self._resting: dict[object, list[LoopConnection]] = {}
        #: Whether the loop runs now.
        self.is_running = loop.is_running
        self._over = False
        # of no iteration: it must not keep what the first one has in its context
        self._keeper = loop.create_task(
            self._close_at_end(), name="http-connections", context=Context()
        )

    def take(
        self, origin: object, now_ns: int, *, certainly: bool = False
    ) -> LoopConnection | None:
        """Remove and return the most recently used usable connection to `origin`; None if none is.

        Unusable connections found before it are closed. `now_ns`: monotonic ns. `certainly` polls
        connections even if they were used just before.
        """
        resting = self._resting.get(origin)
        while resting:
            connection = resting.pop()
            if not connection.spoilt(now_ns, certainly=certainly):
                return connection
            connection.close()
        return None

    def put(self, origin: object, connection: LoopConnection) -> None:
        """Keep a connection for later requests to `origin`; close it if it cannot carry another.

        Closes it also if the loop is at its end. For a new origin beyond `ORIGINS`, all connections
        of the origin kept first are closed.
        """
        if self._over or not connection.reusable:
            connection.close()
            return
        resting = self._resting.get(origin)
        if resting is None:
            if len(self._resting) >= ORIGINS:
                self._close(self._resting.pop(next(iter(self._resting))))
            resting = self._resting[origin] = []
        resting.append(connection)

    async def _close_at_end(self) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._over = True
            for resting in self._resting.values():
                self._close(resting)
            self._resting.clear()

    def _close(self, connections: list[LoopConnection]) -> None:
        for connection in connections:
            connection.close()
