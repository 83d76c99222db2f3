"""Rules of HTTP exchanges: new connections, second attempts and redirects; without I/O.

A client itself sends a request over an idle connection, at the least CPU. If the response ends the
request, no rule is needed. Else, or without an idle connection, the client drives the generator
`ExchangeRules.request`; the result of the client's own attempt, a response or an error, is passed
to it as the outcome of the first step.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic_ns

from osbench.common.network.causes import with_remedy
from osbench.common.plugin.atomic import Recorder
from osbench.worker.http import addresses
from osbench.worker.http.exchange_steps import (
    Ask,
    ConnectionPool,
    HttpConnection,
    LookAt,
    Sending,
    Steps,
)
from osbench.worker.http.observer import Observer
from osbench.worker.http.opening import Opener
from osbench.worker.http.ready_requests import ReadyRequest, RequestLimits
from osbench.worker.http.sent_again import SentAgain, not_again
from osbench.worker.http.server_names import ServerNames
from osbench.worker.http.wire.cookies import Cookies
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.journey import Journey
from osbench.worker.http.wire.raw_response import RawResponse
from osbench.worker.http.wire.wire_errors import BadResponse, EarlyEnd, ReceiveTimedOut
from osbench.worker.http.wire.wire_request import WireRequest


class ExchangeRules:
    """Rules of a client for all exchanges but ordinary responses over idle connections.

    The methods are generators of steps (see `exchange_steps`): they do no I/O, and a driver does
    each step that they yield. One instance serves all threads or loops of a client.
    """

    def __init__(
        self,
        opener: Opener,
        *,
        resends: bool = True,
        observer: Observer | None = None,
        servers: ServerNames | None = None,
    ) -> None:
        """Without `resends` no request is sent a second time.

        `observer` is called with each request and its response or error, redirects included. With
        an observer all bodies are kept for it. `servers` numbers the servers that respond.
        """
        self._servers = servers
        self._opener = opener
        self._resends = resends
        self._observer = observer
        self._again = SentAgain()

    @property
    def retried(self) -> int:
        """Return how many requests were sent again because an idle connection had ended."""
        return self._again.count

    def request(
        self,
        pool: ConnectionPool,
        ready: ReadyRequest,
        own: Sequence[str],
        phases: ExchangePhases,
        *,
        keep_body: bool,
        recorder: Recorder | None = None,
        cookies: Cookies | None = None,
        kept: HttpConnection | None = None,
    ) -> Steps[RawResponse]:
        """Send a request, follow its redirects and return the last response.

        `ready`: the request with its limits. `own`: header lines for its first host only, cookies
        included. `phases`: record of the first request's times, which `recorder` has already.
        `kept`: idle connection, taken out of `pool`, over which the first step sends; None searches
        the pool. `cookies` get the cookies that responses set. Without `keep_body` bodies are read
        and discarded. Raises TimeoutError and ConnectionError with method and URL in their message,
        and ValueError for an invalid redirect.
        """
        request, limits, begun_ns = ready.request, ready.limits, phases.begun_ns
        journey = None
        if self._servers is not None and recorder is not None:
            self._servers.names = recorder.names
        try:
            while True:
                response = yield from self.exchange(
                    pool, request, own, limits, phases, keep_body=keep_body, kept=kept
                )
                if response.coded:
                    yield LookAt(response)
                if response.status not in addresses.REDIRECTS or not ready.follows:
                    break
                journey = journey or Journey(request, own, ready.trust, cookies)
                if not journey.follow(response):
                    break
                if recorder is not None:
                    recorder.end_exchange(phases)
                request, own, kept = journey.request, journey.own, None
                phases = ExchangePhases(monotonic_ns())
                if recorder is not None:
                    recorder.ask(phases)
                limits = ready.limits.less((phases.begun_ns - begun_ns) / 1e9)
        except (ConnectionError, TimeoutError) as error:
            place = f"{request.verb} {addresses.shown_url(request.url)}"
            remedy = error.remedy if isinstance(error, BadResponse) else ""
            raise type(error)(f"{place}: {with_remedy(str(error))}{remedy}") from error
        finally:
            if recorder is not None:
                recorder.end_exchange(phases)
        if cookies is not None:
            cookies.take(response)
        return response

    def exchange(
        self,
        pool: ConnectionPool,
        request: WireRequest,
        own: Sequence[str],
        limits: RequestLimits,
        phases: ExchangePhases,
        *,
        keep_body: bool,
        kept: HttpConnection | None = None,
    ) -> Steps[RawResponse]:
        """Send one request and return its response; redirects are not followed.

        `own`, `phases`, `kept` as in `request`. Calls the observer, if any, with the outcome.
        Raises BadResponse, EarlyEnd, CannotConnect, CannotSecure, ConnectTimedOut and
        ReceiveTimedOut.
        """
        sending = Sending(request, own, limits, phases, keep_body or self._observer is not None)
        attempts = self._attempts(pool, sending, kept)
        return attempts if self._observer is None else _observe(self._observer, sending, attempts)

    def _attempts(
        self, pool: ConnectionPool, sending: Sending, connection: HttpConnection | None
    ) -> Steps[RawResponse]:
        """Send over an idle connection; over a new one if there is none, or the idle one had ended.

        `connection`: an idle connection, taken by the caller; None takes one from `pool`. After the
        response the connection goes to the pool, or is closed if the request says so. A second
        attempt is counted and noted in the phases. Raises EarlyEnd if it is needed but not allowed,
        such as for a POST.
        """
        request, phases = sending.request, sending.phases
        if connection is None:
            certainly = not (self._resends and request.repeatable)
            connection = pool.take(request.origin, phases.begun_ns, certainly=certainly)
        response = None
        if connection is not None:
            try:
                response = yield from self._ask(connection, sending)
            except EarlyEnd as error:
                if not self._resends or not connection.untouched:
                    raise
                if connection.sent and not request.repeatable:
                    raise EarlyEnd(not_again(request.verb)) from error
                phases.retried, phases.first_byte_ns = True, 0
                self._again.add()
        if connection is None or response is None:
            connection = yield from self._opener.open(request, sending.limits, phases)
            response = yield from self._ask(connection, sending)
            if request.secure:
                self._opener.keep_session(request, connection)
        if request.last:
            connection.close()
        else:
            pool.put(request.origin, connection)
        return response

    def _ask(self, connection: HttpConnection, sending: Sending) -> Steps[RawResponse]:
        # once the server has closed the connection, its address is not known any more
        peer = connection.peer if self._servers is not None else ""
        response = yield from _ask_driver(connection, sending)
        if self._servers is not None:
            sending.phases.server = self._servers.number(peer, response)
        return response


def _ask_driver(connection: HttpConnection, sending: Sending) -> Steps[RawResponse]:
    """Yield an `Ask`, and return the response; close the connection after an error.

    Errors of receiving get `in_body`: whether the head of the response had arrived.
    """
    try:
        response: RawResponse = yield Ask(connection, sending)
    except (BadResponse, EarlyEnd, ReceiveTimedOut) as error:
        connection.close()
        error.in_body = connection.in_body
        raise
    except BaseException:
        connection.close()
        raise
    return response


def _observe(
    observer: Observer, sending: Sending, attempts: Steps[RawResponse]
) -> Steps[RawResponse]:
    request, own, _, phases, _ = sending
    try:
        response = yield from attempts
    except Exception as error:
        observer(request, own, error, (monotonic_ns() - phases.begun_ns) / 1e9)
        raise
    observer(request, own, response, (monotonic_ns() - phases.begun_ns) / 1e9)
    return response
