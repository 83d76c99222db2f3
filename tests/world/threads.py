"""`Thread`, `Event`, `Lock` and `Condition` of `threading`, for fibers of the present world."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from world import present
from world.fibers import Fiber


class Thread:
    """A fiber of the process that starts it."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] = lambda: None,
        name: str = "thread",
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self._call = lambda: target(*args, **(kwargs or {}))
        self.name = name
        self.daemon = daemon
        self.ident: int | None = None
        self._fiber: Fiber | None = None

    def start(self) -> None:
        """Begin to run."""
        scheduler = present.scheduler()
        assert scheduler.current is not None
        self._fiber = scheduler.spawn(scheduler.current.process, self._call, self.name)
        self._fiber.thread = self
        self.ident = self._fiber.ident

    def is_alive(self) -> bool:
        """Whether it has begun and not ended."""
        return self._fiber is not None and not self._fiber.ended and self._fiber.process.alive

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        if not self.is_alive():
            return
        assert self._fiber is not None
        scheduler = present.scheduler()
        assert scheduler.current is not None
        self._fiber.joiners.append((scheduler.current, scheduler.current.token))
        scheduler.wait(timeout)


class Event:
    """A flag that fibers wait for."""

    def __init__(self) -> None:
        self._flag = False
        self._waiting: list[tuple[Fiber, int]] = []

    def is_set(self) -> bool:
        """Whether it is."""
        return self._flag

    def clear(self) -> None:
        """Have waits wait again."""
        self._flag = False

    def set(self) -> None:
        """Let all go on that wait."""
        self._flag = True
        present.scheduler().wake(self._waiting)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; whether it is."""
        if not self._flag:
            scheduler = present.scheduler()
            assert scheduler.current is not None
            mine = (scheduler.current, scheduler.current.token)
            self._waiting.append(mine)
            scheduler.wait(timeout)
            if mine in self._waiting:
                # a day has millions of waits that nothing ended
                self._waiting.remove(mine)
        return self._flag


class Lock:
    """One fiber has it at a time."""

    def __init__(self) -> None:
        self._held = False
        self._waiting: list[tuple[Fiber, int]] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it, or wait for it."""
        scheduler = present.scheduler()
        me = scheduler.current
        if me is not None and blocking:
            scheduler.perhaps_aside()
        while self._held:
            if not blocking:
                return False
            assert me is not None, "the world itself waits for a lock"
            self._waiting.append((me, me.token))
            scheduler.wait(None)
        self._held = True
        return True

    def release(self) -> None:
        """Let the next one have it."""
        self._held = False
        if self._waiting:
            present.scheduler().wake(self._waiting, 1)

    def locked(self) -> bool:
        """Whether somebody has it."""
        return self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.release()


class Condition:
    """What fibers wait for that hold a lock."""

    def __init__(self, lock: Lock | None = None) -> None:
        self._lock = lock or Lock()
        self._waiting: list[tuple[Fiber, int]] = []
        self.acquire = self._lock.acquire
        self.release = self._lock.release

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Give the lock back, wait to be told, and take it again; whether one was told."""
        scheduler = present.scheduler()
        assert scheduler.current is not None
        self._lock.release()
        mine = (scheduler.current, scheduler.current.token)
        self._waiting.append(mine)
        try:
            scheduler.wait(timeout)
        finally:
            told = mine not in self._waiting
            if not told:
                self._waiting.remove(mine)
            if not scheduler.closing:
                self._lock.acquire()
        return told

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """Wait until something holds; the last answer."""
        scheduler = present.scheduler()
        end = None if timeout is None else scheduler.now + int(timeout * 1e9)
        while not (found := predicate()):
            left = None if end is None else (end - scheduler.now) / 1e9
            if left is not None and left <= 0:
                break
            self.wait(left)
        return found

    def notify(self, n: int = 1) -> None:
        """Tell some."""
        present.scheduler().wake(self._waiting, n)

    def notify_all(self) -> None:
        """Tell all."""
        present.scheduler().wake(self._waiting)


def current_thread() -> Any:
    """The thread of the fiber that runs; the fiber itself for the first one of a process."""
    fiber = present.fiber()
    if fiber is None:
        return threading.current_thread()
    return fiber.thread or fiber


def get_ident() -> int:
    """What tells threads apart."""
    fiber = present.fiber()
    return threading.get_ident() if fiber is None else fiber.ident
