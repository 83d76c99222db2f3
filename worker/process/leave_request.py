"""A request that a process end, which a signal handler may make at any time."""

from __future__ import annotations

import signal
from queue import Empty, SimpleQueue


class LeaveRequest:
    """A request to end that a signal handler makes and the main thread waits for.

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
        """Request the end of the process; safe in a signal handler."""
        self._asked.put(None)

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for the request; return whether it was made.

        A request stays: further calls return True at once.
        """
        try:
            self._asked.get(timeout=seconds)
        except Empty:
            return False
        # for the next look
        self._asked.put(None)
        return True
