"""Virtual time: what waits by the clock of `osbench.common.ports` waits no real time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from osbench.common.ports import clock


class VirtualTime:
    """A clock that moves only while somebody sleeps by it.

    It is for code that waits by `time.sleep` alone. Events, sockets and engines take real time.
    """

    def __init__(self) -> None:
        #: Both clocks, seconds. They do not begin at 0, which means "never" in many states.
        self.now_s = 1000.0
        #: Called with the seconds of each sleep, after it.
        self.on_sleep: Callable[[float], object] = lambda _: None
        self._lock = threading.Lock()

    def sleep(self, seconds: float) -> None:
        """Move the clock."""
        with self._lock:
            self.now_s += seconds
        self.on_sleep(seconds)

    def seconds(self) -> float:
        """The instant, seconds."""
        return self.now_s

    def nanoseconds(self) -> int:
        """The instant, nanoseconds."""
        return round(self.now_s * 1e9)

    def put(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Show it to all modules that import the port as a module: `clock as time`."""
        monkeypatch.setattr(clock, "sleep", self.sleep)
        for name in ("monotonic", "time"):
            monkeypatch.setattr(clock, name, self.seconds)
            monkeypatch.setattr(clock, f"{name}_ns", self.nanoseconds)
