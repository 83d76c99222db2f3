"""HTTP/1.1 requests on an event loop: at the least CPU, for virtual users that share one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from time import monotonic_ns
from typing import Any

from osbench.common.network.answer_bound import USUAL, AnswerBound
from osbench.common.plugin.atomic import Recorder
from osbench.worker.http.addresses import REDIRECTS
from osbench.worker.http.exchange_rules import ExchangeRules
from osbench.worker.http.observer import Observer
from osbench.worker.http.on_loop.loop_driver import drive_on_loop, look_at
from osbench.worker.http.on_loop.loop_pool import LoopPool
from osbench.worker.http.opening import Opener
from osbench.worker.http.ready_requests import ReadyRequests
from osbench.worker.http.wire.cookies import Cookies
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.http_answer import HttpAnswer


class LoopClient:
    """Keeps connections for each loop, TLS sessions and addresses for all; no cookies."""

    def __init__(
        self, of_run: Sequence[str], bound: AnswerBound = USUAL, *, observer: Observer | None = None
    ) -> None:
        """`of_run` are header lines of every request, for the first host only, as in `request`.

        `observer` is that of `ExchangeRules`.
        """
        self._ready = ReadyRequests(of_run, bound)
        self._pools: dict[asyncio.AbstractEventLoop, LoopPool] = {}
        self._rules = ExchangeRules(Opener(), observer=observer)
        self._observed = observer is not None

    @property
    def retried(self) -> int:
        """Requests that were sent again, because a kept connection ended without an answer."""
        return self._rules.retried

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
        if cookies is not None:
            own = cookies.added_to(own, request)
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop) or self._open_pool(loop)
        phases = ExchangePhases(monotonic_ns())
        if recorder is not None:
            recorder.ask(phases)
        connection = None
        first: HttpAnswer | BaseException | None = None
        # the kept connection, at the least CPU; the rules for all else are in `ExchangeRules`
        if not (request.rest or request.last or self._observed):
            certainly = not request.repeatable
            connection = pool.take(request.origin, phases.begun_ns, certainly=certainly)
        if connection is not None:
            try:
                await connection.begin(request, own, ready.limits, phases, keep_body=keep_body)
                first = answer = connection.answer(request, phases)
                ends = answer.status not in REDIRECTS or not ready.follows
                if ends and answer.coded:
                    await look_at(answer)
            except BaseException as error:  # noqa: BLE001 - it is raised again, or asked again
                first = error
            else:
                if ends:
                    pool.put(request.origin, connection)
                    if recorder is not None:
                        recorder.end_exchange(phases)
                    if cookies is not None:
                        cookies.take(answer)
                    return answer
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

    def _open_pool(self, loop: asyncio.AbstractEventLoop) -> LoopPool:
        for ended in [one for one in list(self._pools) if one.is_closed()]:
            self._pools.pop(ended, None)
        pool = self._pools[loop] = LoopPool(loop)
        return pool
