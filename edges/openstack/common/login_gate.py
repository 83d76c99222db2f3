"""Slows logins while Keystone is overloaded: one at a time, with growing pauses."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from keystoneauth1 import exceptions

from osbench.common.ports import clock as time

#: Statuses of a server that wants to be left alone for a while.
_OVERLOADED = frozenset({429, 503})
#: Pause after the first such response, doubled by each further one, and the longest, seconds.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 16.0

T = TypeVar("T")


class LoginGate:
    """Limits logins to an overloaded Keystone; shared by all accounts of a process.

    From a response of 429 or 503 until a login succeeds, one thread at a time logs in, after a
    pause that grows with each such response. If it gets another one, the threads that waited raise
    it, too. A coroutine raises the last error if there is a pause, or if a thread is in its turn.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        #: Responses of 429 and 503 so far.
        self.failures = 0
        self._pause_s = 0.0
        self._open_at = 0.0
        self._error: exceptions.HttpError | None = None

    def through(self, log_in: Callable[[], T], seen: int | None = None) -> T:
        """Call `log_in` and return its result; if Keystone is overloaded, first wait for the pause.

        Raises the exception of `log_in`, or the 429 or 503 of another thread's login meanwhile; on
        an event loop the last of these, instead of waiting. `seen`: the value of `failures` when
        this thread began to wait; None: now.
        """
        last = self._error
        if last is None:
            return self._noted(log_in)
        failures = self.failures if seen is None else seen
        # a pause, of a thread in its turn too, would hold up all coroutines of the loop
        on_loop = _on_event_loop()
        if not self._turn.acquire(blocking=not on_loop):
            raise last.with_traceback(None)
        try:
            error = self._error
            pause_s = max(0.0, self._open_at - time.monotonic())
            if error is not None and (self.failures != failures or (pause_s and on_loop)):
                raise error.with_traceback(None)
            time.sleep(pause_s)
            return self._noted(log_in)
        finally:
            self._turn.release()

    def _noted(self, log_in: Callable[[], T]) -> T:
        try:
            found = log_in()
        except exceptions.HttpError as error:
            if error.http_status in _OVERLOADED:
                self._pause_s = min(max(FIRST_PAUSE_S, 2 * self._pause_s), LONGEST_PAUSE_S)
                pause_s = min(max(self._pause_s, _retry_after_s(error)), LONGEST_PAUSE_S)
                self._open_at = time.monotonic() + pause_s
                self.failures += 1
                self._error = error
            raise
        self._error, self._pause_s = None, 0.0
        return found


def _on_event_loop() -> bool:
    # who runs coroutines has imported it, and others do without its 10 ms
    asyncio = sys.modules.get("asyncio")
    try:
        return asyncio is not None and asyncio.get_running_loop() is not None
    except RuntimeError:
        return False


def _retry_after_s(error: exceptions.HttpError) -> float:
    """Return the seconds in the header Retry-After; 0 if it is missing or a date."""
    headers: Any = getattr(error.response, "headers", {})
    with contextlib.suppress(TypeError, ValueError):
        return float(headers.get("Retry-After", 0))
    return 0.0
