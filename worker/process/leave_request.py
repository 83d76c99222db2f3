"""A request that a process end, which a signal handler may make at any time."""

from __future__ import annotations

import signal
from queue import Empty, SimpleQueue


class LeaveRequest:
    """Made once, and waited for by the main thread.

    A `threading.Event` must not be set by a handler: the thread that it interrupts may hold the
    event's lock, and then waits for itself. `SimpleQueue.put` may be interrupted by itself.
    """

    def __init__(self) -> None:
        self._asked: SimpleQueue[None] = SimpleQueue()

    def on_signals(self) -> None:
        """Make SIGTERM and SIGINT request the end of the process."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.ask())

    def ask(self) -> None:
        """Request the end of the process."""
        self._asked.put(None)

    def wait(self, seconds: float) -> bool:
        """Return whether the end was requested, or is within so many seconds."""
        try:
            self._asked.get(timeout=seconds)
        except Empty:
            return False
        # for the next look
        self._asked.put(None)
        return True
