"""HTTP/1.1 requests over blocking sockets: at the least CPU, for virtual users with a thread."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from time import monotonic_ns
from typing import Any

from osbench.common.network.response_bound import USUAL, ResponseBound
from osbench.common.plugin.atomic import Recorder
from osbench.worker.http.addresses import REDIRECTS
from osbench.worker.http.blocking_driver import drive, look_at
from osbench.worker.http.exchange_rules import ExchangeRules
from osbench.worker.http.observer import Observer
from osbench.worker.http.opening import Opener
from osbench.worker.http.ready_requests import ReadyRequests
from osbench.worker.http.server_names import ServerNames
from osbench.worker.http.socket_connection import SocketConnection
from osbench.worker.http.wire.cookies import Cookies
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.raw_response import RawResponse

#: Connections that a thread keeps, at most: one for each origin.
KEPT = 8


class ThreadConnections:
    """The idle connections of one thread: at most `most`, one per origin (host, port, TLS)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[object, SocketConnection] = {}

    def take(
        self, origin: object, now_ns: int, *, certainly: bool = False
    ) -> SocketConnection | None:
        """Remove and return the idle connection to `origin`; None if missing or unusable.

        An unusable connection is closed. `now_ns`: monotonic ns. `certainly` polls the connection
        even if it was used just before.
        """
        connection = self._kept.pop(origin, None)
        if connection is not None and connection.spoilt(now_ns, certainly=certainly):
            connection.close()
            return None
        return connection

    def put(self, origin: object, connection: SocketConnection) -> None:
        """Keep a connection for later requests to `origin`; close it if it cannot carry another.

        At the limit the connection that was put first is closed.
        """
        if not connection.reusable:
            connection.close()
            return
        kept = self._kept
        if len(kept) >= self._most:
            kept.pop(next(iter(kept))).close()
        kept[origin] = connection


class ConnectionsByThread(threading.local):
    """Idle connections for each thread; made at the thread's first access."""

    def __init__(self, most: int) -> None:
        self.connections = ThreadConnections(most)


class SocketClient:
    """HTTP client for threads: keeps idle connections per thread; cookies are not kept.

    All threads share TLS sessions to resume and the cached addresses of hosts.
    """

    def __init__(
        self,
        of_run: Sequence[str],
        *,
        opener: Opener | None = None,
        kept: int = KEPT,
        resends: bool = True,
        bound: ResponseBound = USUAL,
        observer: Observer | None = None,
        servers: ServerNames | None = None,
    ) -> None:
        """Create the client. `of_run`: header lines of every request, for the host of its URL only.

        Clients with the same `opener` share addresses and TLS sessions. A thread keeps at most
        `kept` connections. Without `resends` no request is sent a second time. Before a request
        that must not be sent twice, its idle connection is polled. `bound` limits responses whose
        body is kept. `observer` is called with each request and its response or error; `servers`
        numbers the servers that respond.
        """
        self._ready = ReadyRequests(of_run, bound)
        self._by_thread = ConnectionsByThread(kept)
        self._resends = resends
        self._rules = ExchangeRules(
            opener or Opener(), resends=resends, observer=observer, servers=servers
        )
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
    ) -> RawResponse | None:
        """Make a request, follow its redirects and return the last, complete response.

        `options` are the keyword arguments of `requests.request`; `timeout` (seconds) bounds the
        whole request, a pair the time to connect and each wait. `own`: header lines for the host of
        `url` only. `recorder` gets the phases of each request that is sent, redirects and failures
        too. `cookies` are sent, and get the cookies that responses set. Without `keep_body` the
        body is read and discarded. Returns None, and sends nothing, if another client has to make
        this request: `beyond` returns why. Raises TimeoutError, ConnectionError or ValueError.
        """
        ready = self._ready.get(method, url, options)
        if ready is None:
            return None
        request = ready.request
        if cookies is not None:
            own = cookies.added_to(own, request)
        phases = ExchangePhases(monotonic_ns())
        if recorder is not None:
            recorder.ask(phases)
        pool, connection = self._by_thread.connections, None
        first: RawResponse | BaseException | None = None
        # the kept connection, at the least CPU; the rules for all else are in `ExchangeRules`
        if not (request.last or self._observed):
            certainly = not (self._resends and request.repeatable)
            connection = pool.take(request.origin, phases.begun_ns, certainly=certainly)
        if connection is not None:
            try:
                first = response = connection.exchange(
                    request, own, ready.limits, phases, keep_body=keep_body
                )
                ends = response.status not in REDIRECTS or not ready.follows
                if ends and response.coded:
                    look_at(response)
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
            return drive(steps, first)
        finally:
            # an error that is kept here would keep itself
            del first
