"""A precise timer of an event loop: the loops' own timers have a resolution of 1 ms."""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable
from contextlib import suppress

from osbench.common.ports.clock import monotonic_ns

#: timerfd_create(2): clock, flags; timerfd_settime(2): the time is absolute.
_CLOCK_MONOTONIC = 1
_TFD_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_TFD_TIMER_ABSTIME = 1


class _Setting(ctypes.Structure):
    """`struct itimerspec` of timerfd_settime(2): interval and time, in seconds and nanoseconds."""

    _fields_ = (
        ("interval_s", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("at_s", ctypes.c_long),
        ("at_ns", ctypes.c_long),
    )


class Alarm:
    """A timer that calls a function of an event loop at a set time. Only for the loop's thread.

    Without timerfd (Linux) it is as exact as the loop's own timers.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
        self._loop = loop
        self._function = function
        #: The time for which the alarm is set; 0 if it is not set.
        self._at_ns = 0
        self._handle: asyncio.TimerHandle | None = None
        self._setting = _Setting()
        # it keeps the interpreter's lock: the call takes less time than to get that back
        self._libc = ctypes.PyDLL(None)
        self._fd = -1
        if hasattr(self._libc, "timerfd_create"):
            self._fd = self._libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_FLAGS)
        if self._fd >= 0:
            loop.add_reader(self._fd, self._ring)

    def set(self, at_ns: int) -> None:
        """Set the time of the next call, monotonic ns; replaces the time set before.

        The function is called once; at once if the time has passed.
        """
        if at_ns == self._at_ns:
            return
        self._at_ns = at_ns
        if self._fd >= 0:
            setting = self._setting
            # a time of 0 would switch it off
            setting.at_s, setting.at_ns = divmod(max(1, at_ns), 10**9)
            self._libc.timerfd_settime(self._fd, _TFD_TIMER_ABSTIME, ctypes.byref(setting), None)
            return
        if self._handle is not None:
            self._handle.cancel()
        left_s = max(0, at_ns - monotonic_ns()) / 1e9
        self._handle = self._loop.call_later(left_s, self._ring)

    def close(self) -> None:
        """Cancel the call that is set, and close the timer: the function is not called any more."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        if self._handle is not None:
            self._handle.cancel()

    def _ring(self) -> None:
        if self._fd >= 0:
            with suppress(BlockingIOError):
                os.read(self._fd, 8)
        self._at_ns = 0
        self._function()
