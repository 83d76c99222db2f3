"""HTTP/1.1 requests on an event loop: at the least CPU, for virtual users that share one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from time import monotonic_ns
from typing import Any

from osbench.common.network.answer_bound import USUAL, AnswerBound
from osbench.common.plugin.atomic import Recorder
from osbench.worker.http import addresses
from osbench.worker.http.on_loop.loop_opener import LoopOpener
from osbench.worker.http.on_loop.loop_pool import LoopPool
from osbench.worker.http.ready_requests import ReadyRequests, RequestLimits
from osbench.worker.http.sent_again import SentAgain, not_again
from osbench.worker.http.wire.cookies import Cookies
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.http_answer import HttpAnswer
from osbench.worker.http.wire.journey import Journey
from osbench.worker.http.wire.prepared_request import PreparedRequest
from osbench.worker.http.wire.wire_errors import EarlyEnd


class LoopClient:
    """Keeps connections for each loop, TLS sessions and addresses for all; no cookies."""

    def __init__(self, of_run: Sequence[str], bound: AnswerBound = USUAL) -> None:
        """`of_run` are header lines of every request, for the first host only, as in `request`."""
        self._ready = ReadyRequests(of_run, bound)
        self._pools: dict[asyncio.AbstractEventLoop, LoopPool] = {}
        self._opener = LoopOpener()
        self._again = SentAgain()

    @property
    def retried(self) -> int:
        """Requests that were sent again, because a kept connection ended without an answer."""
        return self._again.count

    async def request(
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
        """Make a request and return the whole answer, as `SocketClient.request`.

        A request whose task is cancelled costs its connection. `recorder` gets the phases of what
        was asked for, redirects and failures, too.
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
            answer = await self._exchange(request, own, ready.limits, phases, keep_body)
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
                    answer = await self._exchange(request, journey.own, limits, phases, keep_body)
        except (ConnectionError, TimeoutError) as error:
            place = f"{request.verb} {addresses.shown(request.url)}"
            raise type(error)(f"{place}: {error}") from error
        finally:
            if recorder is not None:
                recorder.end_exchange(phases)
        if cookies is not None:
            cookies.take(answer)
        return answer

    async def _exchange(
        self,
        request: PreparedRequest,
        own: Sequence[str],
        limits: RequestLimits,
        phases: ExchangePhases,
        keep_body: bool,
    ) -> HttpAnswer:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop) or self._open_pool(loop)
        connection = pool.take(request.origin, phases.begun_ns, certainly=not request.repeatable)
        fresh = connection is None
        while True:
            if connection is None:
                connection = await self._opener.open(request, limits, phases)
            try:
                waiter = connection.begin(request, own, limits, phases, keep_body=keep_body)
                if request.rest:
                    await connection.send_rest(request.rest)
                await waiter
                answer = connection.answer(request, phases)
            except EarlyEnd as error:
                connection.close()
                if fresh or not connection.untouched:
                    raise
                if not request.repeatable and connection.sent:
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
        if request.last:
            connection.close()
        else:
            pool.put(request.origin, connection)
        if answer.coded:
            await _look_at(answer)
        return answer

    def _open_pool(self, loop: asyncio.AbstractEventLoop) -> LoopPool:
        for ended in [one for one in list(self._pools) if one.is_closed()]:
            self._pools.pop(ended, None)
        pool = self._pools[loop] = LoopPool(loop)
        return pool


async def _look_at(answer: HttpAnswer) -> None:
    for _ in answer.look_at_body():
        # the other users of the loop have their turn
        await asyncio.sleep(0)
