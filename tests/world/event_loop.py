"""An event loop under virtual time, so that the engine of coroutines runs in a world, too."""

from __future__ import annotations

import asyncio
import selectors
from types import SimpleNamespace
from typing import Any

from greenlet import GreenletExit

from osbench.worker.engine.loop import alarm, loop_thread
from world import ports, present, threads


class _Selector(selectors.SelectSelector):
    """No descriptor is ever ready: what comes from outside comes by `call_soon_threadsafe`."""

    def __init__(self) -> None:
        super().__init__()
        self.woken = threads.Event()

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or timeout > 0:
            self.woken.wait(timeout)
        self.woken.clear()
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Waits by virtual time only."""

    def __init__(self) -> None:
        self._outer = _Selector()
        self.owner: Any = None
        super().__init__(self._outer)

    def time(self) -> float:
        return ports.monotonic_ns() / 1e9

    def run_forever(self) -> None:
        if present.scheduler().closing:
            # its thread would go on whatever is raised in it
            self.owner._ending = True
            raise GreenletExit
        super().run_forever()

    def _make_self_pipe(self) -> None:
        """Nobody writes to it."""

    def _close_self_pipe(self) -> None:
        """There is none."""

    def _write_to_self(self) -> None:
        self._outer.woken.set()


_serve = loop_thread.LoopThread._serve


def _owned(thread: loop_thread.LoopThread) -> None:
    thread.loop.owner = thread  # type: ignore[attr-defined]
    _serve(thread)


#: Between two beats of a loop, seconds: as often as in production they cost more than all else.
BEAT_S = 0.05


def install() -> None:
    """Have engines of coroutines use such loops."""
    loop_thread.BEAT_S, loop_thread.BEAT_NS = BEAT_S, int(BEAT_S * 1e9)
    # no timerfd: the alarm falls back on the loop's own timers
    alarm.ctypes = SimpleNamespace(PyDLL=lambda _: SimpleNamespace())  # type: ignore[attr-defined]
    loop_thread._new_loop = VirtualLoop
    loop_thread.LoopThread._serve = _owned  # type: ignore[method-assign]
    # there is no such thread
    loop_thread.LoopThread.is_asleep = lambda self: True  # type: ignore[method-assign]
