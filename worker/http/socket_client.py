"""HTTP/1.1 requests over blocking sockets: at the least CPU, for virtual users with a thread."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from time import monotonic_ns
from typing import Any

from osbench.common.network.answer_bound import USUAL, AnswerBound
from osbench.common.plugin.atomic import Recorder
from osbench.worker.http import addresses
from osbench.worker.http.ready_requests import ReadyRequests, RequestLimits
from osbench.worker.http.sent_again import SentAgain, not_again
from osbench.worker.http.socket_connection import SocketConnection
from osbench.worker.http.socket_opener import SocketOpener
from osbench.worker.http.wire.cookies import Cookies
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.http_answer import HttpAnswer
from osbench.worker.http.wire.journey import Journey
from osbench.worker.http.wire.wire_errors import BadAnswer, EarlyEnd, ReceiveTimedOut
from osbench.worker.http.wire.wire_request import WireRequest

#: Connections that a thread keeps, at most: one for each origin.
KEPT = 8


class _KeptByThread(threading.local):
    """The connections of each thread, by where they lead; the one used last comes last."""

    def __init__(self) -> None:
        self.connections: dict[object, SocketConnection] = {}


class SocketClient:
    """Keeps connections, TLS sessions and addresses between requests; no cookies."""

    def __init__(
        self,
        of_run: Sequence[str],
        *,
        opener: SocketOpener | None = None,
        kept: int = KEPT,
        resends: bool = True,
        bound: AnswerBound = USUAL,
    ) -> None:
        """`of_run` are header lines of every request, for the first host only, as in `status`.

        Clients with the same `opener` share addresses and TLS sessions. A thread keeps `kept`
        connections. Without `resends` no request is sent a second time. The kept connection of one
        that is not sent a second time is looked at before it is used.
        """
        self._ready = ReadyRequests(of_run, bound)
        self._kept = _KeptByThread()
        self._opener = opener or SocketOpener()
        self._most = kept
        self._resends = resends
        self._again = SentAgain()

    @property
    def retried(self) -> int:
        """Requests that were sent again, because a kept connection ended without an answer."""
        return self._again.count

    def status(
        self, method: str, url: str, own: Sequence[str], options: Mapping[str, Any]
    ) -> int | None:
        """Make a request, read the whole response and return the status code.

        As `request`; the body is not kept.
        """
        answer = self.request(method, url, own, options, keep_body=False)
        return answer.status if answer is not None else None

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
    ) -> HttpAnswer | None:
        """Make a request and return the whole answer.

        `options` are the keyword arguments of `requests.request`; `timeout` (seconds) bounds the
        whole request, a pair the time to connect and each wait. `own` are header lines that are
        only sent to the host of `url`. `recorder` gets the phases of what was asked for, redirects
        and failures, too. `cookies` are sent, and get those that are set. Returns None, and sends
        nothing, where another client has to make this request: `beyond` says why.
        Raises TimeoutError, ConnectionError or ValueError.
        """
        ready = self._ready.get(method, url, options)
        if ready is None:
            return None
        request = ready.request
        if cookies is not None and "cookie" not in request.outgoing.given:
            line = cookies.header(request.url)
            if line:
                own = [*own, f"Cookie: {line}"]
        phases = ExchangePhases(monotonic_ns())
        begun_ns = phases.begun_ns
        if recorder is not None:
            recorder.ask(phases)
        try:
            answer = self.exchange(request, own, ready.limits, phases, keep_body=keep_body)
            _look_at(answer)
            if answer.status in addresses.REDIRECTS and ready.follows:
                journey = Journey(request, own, ready.trust, cookies)
                while answer.status in addresses.REDIRECTS and journey.follow(answer):
                    if recorder is not None:
                        recorder.end_exchange(phases)
                    request = journey.request
                    phases = ExchangePhases(monotonic_ns())
                    if recorder is not None:
                        recorder.ask(phases)
                    limits = ready.limits.less((phases.begun_ns - begun_ns) / 1e9)
                    answer = self.exchange(
                        request, journey.own, limits, phases, keep_body=keep_body
                    )
                    _look_at(answer)
        except (ConnectionError, TimeoutError) as error:
            place = f"{request.verb} {addresses.shown(request.url)}"
            raise type(error)(f"{place}: {error}") from error
        finally:
            if recorder is not None:
                recorder.end_exchange(phases)
        if cookies is not None:
            cookies.take(answer)
        return answer

    def close(self) -> None:
        """Close the connections of all threads; further requests open new ones."""
        self._kept = _KeptByThread()

    def exchange(
        self,
        request: WireRequest,
        own: Sequence[str],
        limits: RequestLimits,
        phases: ExchangePhases,
        *,
        keep_body: bool,
    ) -> HttpAnswer:
        """Send one request and return its answer, which may redirect.

        Raises BadAnswer, EarlyEnd, CannotConnect, CannotSecure, ConnectTimedOut and
        ReceiveTimedOut.
        """
        kept = self._kept.connections
        origin = request.origin
        resends = self._resends and request.repeatable
        connection = kept.pop(origin, None)
        if connection is not None and connection.spoilt(phases.begun_ns, certainly=not resends):
            connection.close()
            connection = None
        fresh = connection is None
        while True:
            if connection is None:
                connection = self._opener.open(request, limits, phases)
            try:
                answer = connection.exchange(request, own, limits, phases, keep_body=keep_body)
            except (BadAnswer, EarlyEnd, ReceiveTimedOut) as error:
                connection.close()
                error.in_body = connection.in_body
                kept_closed = isinstance(error, EarlyEnd) and connection.untouched and not fresh
                if not kept_closed or not self._resends:
                    raise
                if not resends and connection.sent:
                    raise EarlyEnd(not_again(request.verb)) from error
                fresh, connection, phases.retried = True, None, True
                phases.first_byte_ns = 0
                self._again.add()
            except BaseException:
                connection.close()
                raise
            else:
                break
        if fresh and request.secure:
            self._opener.keep_session(request, connection)
        if connection.reusable and not request.last:
            if len(kept) >= self._most:
                kept.pop(next(iter(kept))).close()
            kept[origin] = connection
        else:
            connection.close()
        return answer


def _look_at(answer: HttpAnswer) -> None:
    if answer.coded:
        for _ in answer.look_at_body():
            pass
