"""Work on many items by several threads: failures are counted, and it can be stopped."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class ParallelWork(Generic[T]):
    """Calls a function for each item, in up to `at_once` threads, and goes on after failures.

    It stops by itself after `give_up` failures in a row, whatever the number of threads. Threads
    are daemons: the process does not wait for calls that hang.
    """

    def __init__(
        self, items: Iterable[T], call: Callable[[T], object], *, at_once: int, give_up: int
    ) -> None:
        """Store the settings; `start` begins."""
        #: Items that no call began for.
        self.waiting: deque[T] = deque(items)
        #: Items of calls that returned, and of calls that raised, with what they raised.
        self.done: list[T] = []
        self.failed: list[tuple[T, Exception]] = []
        #: Whether it has stopped by itself.
        self.gave_up = False
        self._call = call
        self._give_up = give_up
        self._in_row = 0
        self._stopped = False
        self._lock = threading.Lock()
        self._in_flight: list[T] = []
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, name=f"seed-{number}", daemon=True)
            for number in range(min(at_once, len(self.waiting)))
        ]
        self._left = len(self._threads)

    def start(self) -> None:
        """Start the threads."""
        if not self._threads:
            self._over.set()
        for thread in self._threads:
            thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the last call to end, at most `timeout_s` seconds; return whether it has."""
        return self._over.wait(timeout_s)

    def stop(self) -> None:
        """Begin no further call; calls in flight go on."""
        with self._lock:
            self._stopped = True

    def close(self) -> list[T]:
        """Begin no further call, ignore results from now on; return items of calls in flight."""
        with self._lock:
            self._stopped = True
            left, self._in_flight = self._in_flight, []
        return left

    def _run(self) -> None:
        while (item := self._next()) is not None:
            try:
                self._call(item[0])
            except Exception as error:  # noqa: BLE001 - each failure is counted with its reason
                self._end(item[0], error)
            else:
                self._end(item[0], None)
        with self._lock:
            self._left -= 1
            if not self._left:
                self._over.set()

    def _next(self) -> tuple[T] | None:
        with self._lock:
            if self._stopped or not self.waiting:
                return None
            item = self.waiting.popleft()
            self._in_flight.append(item)
            return (item,)

    def _end(self, item: T, error: Exception | None) -> None:
        with self._lock:
            if item not in self._in_flight:
                # closed meanwhile
                return
            self._in_flight.remove(item)
            if error is None:
                self.done.append(item)
                self._in_row = 0
                return
            self.failed.append((item, error))
            self._in_row += 1
            if self._in_row >= self._give_up and self.waiting:
                self.gave_up = self._stopped = True
