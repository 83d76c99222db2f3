"""The client of sessions for OpenStack: single exchanges by osbench's client for threads."""

from __future__ import annotations

from collections.abc import Sequence

from osbench.edges.openstack.common.thread_sessions import HOSTS_KEPT
from osbench.worker.http.blocking_driver import drive
from osbench.worker.http.opening import Opener
from osbench.worker.http.ready_requests import RequestLimits
from osbench.worker.http.socket_client import ConnectionsByThread, SocketClient
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.raw_response import RawResponse
from osbench.worker.http.wire.wire_request import WireRequest


class SessionClient(SocketClient):
    """HTTP client for threads that sends prepared requests, none of them twice."""

    def __init__(self, opener: Opener) -> None:
        """Create the client; clients with the same `opener` share addresses and TLS sessions."""
        super().__init__((), opener=opener, kept=HOSTS_KEPT, resends=False)

    def close(self) -> None:
        """Close the idle connections of all threads, by dropping them; requests open new ones."""
        self._by_thread = ConnectionsByThread(HOSTS_KEPT)

    def exchange(
        self,
        request: WireRequest,
        own: Sequence[str],
        limits: RequestLimits,
        phases: ExchangePhases,
        *,
        keep_body: bool,
    ) -> RawResponse:
        """Send one prepared request and return its response; redirects are not followed.

        `own`: header lines to add. Times and bytes are noted in `phases`. Without `keep_body` the
        body is read and discarded. Raises the exceptions of `ExchangeRules.exchange`.
        """
        pool, connection, first = self._by_thread.connections, None, None
        if not (request.last or self._observed):
            certainly = not (self._resends and request.repeatable)
            connection = pool.take(request.origin, phases.begun_ns, certainly=certainly)
        if connection is not None:
            try:
                response = connection.exchange(request, own, limits, phases, keep_body=keep_body)
            except BaseException as error:  # noqa: BLE001 - it is raised again, or asked again
                first = error
            else:
                pool.put(request.origin, connection)
                return response
        steps = self._rules.exchange(
            pool, request, own, limits, phases, keep_body=keep_body, kept=connection
        )
        try:
            return drive(steps, first)
        finally:
            # an error that is kept here would keep itself
            del first
