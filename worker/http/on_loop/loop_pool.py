"""The idle HTTP connections of an event loop."""

from __future__ import annotations

import asyncio
from contextvars import Context

from osbench.worker.http.on_loop.loop_connection import LoopConnection

#: Origins whose connections are kept, at most.
ORIGINS = 64


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

        For a new origin beyond `ORIGINS`, all connections of the origin kept first are closed.
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
