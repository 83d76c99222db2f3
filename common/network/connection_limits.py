"""Limits the connections of a web server, per client and in total, and how long they may be silent.

A connection waits until the head of a request has come, and again after the response. Every client
is let in; if there are too many, the connection that has waited longest is closed. So idle
connections keep no client out.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Connections of one client that wait, and connections of all that wait.
WAITING_OF_CLIENT = 32
WAITING = 128
#: Connections of one client.
OF_CLIENT = 200
#: How long the head of a request may take, seconds.
HEAD_S = 10.0


class Connections:
    """Open connections of one web server, and their limits; only for its event loop's thread."""

    def __init__(self) -> None:
        #: The one that has waited longest comes first.
        self._waiting: dict[BoundedConnection, None] = {}
        self._all: set[BoundedConnection] = set()
        self._clients: Counter[str] = Counter()

    def add(self, one: BoundedConnection) -> None:
        """Add a new connection as waiting; if a limit is exceeded, close the longest waiting one.

        Limits: OF_CLIENT per client, and the limits of `wait`.
        """
        self._all.add(one)
        self._clients[one.peer] += 1
        self.wait(one)
        if self._clients[one.peer] > OF_CLIENT:
            # perhaps itself
            self._close_oldest([other for other in self._waiting if other.peer == one.peer])

    def wait(self, one: BoundedConnection) -> None:
        """Mark a connection as waiting for a request; does nothing if it was removed.

        If more than WAITING_OF_CLIENT of its client wait, or WAITING in total, the longest waiting
        of these is closed.
        """
        if one not in self._all:
            # it had to go
            return
        self._waiting.pop(one, None)
        self._waiting[one] = None
        of_client = [other for other in self._waiting if other.peer == one.peer]
        if len(of_client) > WAITING_OF_CLIENT:
            self._close_oldest(of_client)
        elif len(self._waiting) > WAITING:
            self._close_oldest(list(self._waiting))

    def serve(self, one: BoundedConnection) -> None:
        """Mark a connection as serving a request, so that it is not closed for others."""
        self._waiting.pop(one, None)

    def remove(self, one: BoundedConnection) -> None:
        """Remove a connection that has ended; does nothing if it was removed before."""
        if one not in self._all:
            return
        self._all.remove(one)
        self._waiting.pop(one, None)
        self._clients[one.peer] -= 1
        if self._clients[one.peer] <= 0:
            del self._clients[one.peer]

    def _close_oldest(self, several: list[BoundedConnection]) -> None:
        oldest = several[0]
        self.remove(oldest)
        oldest.transport.abort()


class BoundedConnection(H11Protocol):
    """A connection of uvicorn with the limits of `Connections`.

    It is closed if the head of a request is not complete within HEAD_S seconds after the connection
    began or the last response ended.
    """

    def __init__(self, *args: Any, among: Connections, **options: Any) -> None:
        super().__init__(*args, **options)
        self._among = among
        self._head_timer: asyncio.TimerHandle | None = None
        #: Address of the client.
        self.peer = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as its base
        """Add the connection to `Connections` and start its timer; called by asyncio."""
        super().connection_made(transport)
        self.peer = self.client[0] if self.client else ""
        self._wait()
        self._among.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer and remove the connection from `Connections`; called by asyncio."""
        self._forget_timer()
        self._among.remove(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Process received events; if the head of a request is complete, stop the timer.

        The connection then counts as serving.
        """
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget_timer()
            self._among.serve(self)

    def on_response_complete(self) -> None:
        """Mark the connection as waiting and restart its timer after a response.

        Does nothing if the next request has come; does not mark it while the response is still
        being sent.
        """
        super().on_response_complete()
        if not self.cycle.response_complete:
            # of a request that came meanwhile
            return
        self._wait()
        if not self.transport.get_write_buffer_size():
            self._among.wait(self)

    def _wait(self) -> None:
        self._forget_timer()
        self._head_timer = self.loop.call_later(HEAD_S, self._end_wait)

    def _end_wait(self) -> None:
        if self.transport.get_write_buffer_size():
            # the client still reads the last response
            self._wait()
        else:
            self.transport.abort()

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
