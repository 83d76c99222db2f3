"""An asyncio event loop in its own thread, which measures how late the loop is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.common.ports.clock import monotonic_ns
from osbench.common.protocol import timers
from osbench.worker.engine.asides import place_of
from osbench.worker.engine.lateness import Lateness

_new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
# it is not there for every platform
with suppress(ImportError):
    import uvloop

    _new_loop = uvloop.new_event_loop

LOG = logging.getLogger(__name__)

#: Between two beats of the loop, seconds and nanoseconds.
BEAT_S = timers.LOOP_BEAT_S
BEAT_NS = int(BEAT_S * 1e9)
#: How late a beat may be before users that never wait let others run, nanoseconds: the timers of
#: uvloop have a resolution of 1 ms.
SLACK_NS = 1_500_000
#: Longest wait for tasks that scenarios left behind, seconds.
END_S = 1.0


class LoopThread:
    """Runs an event loop in a thread until `stop`. All but `lateness` may be used by any thread."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        """Create the loop and start its thread.

        `tell` is called in that thread with a message about each task or callback that a scenario
        left behind and that failed. It should count equal messages.
        """
        self.loop = _new_loop()
        self._tell = tell
        #: Identity of the thread; 0 before it runs.
        self.ident = 0
        self._native_id = 0
        #: When the next beat is due, and the time from which users that never wait let others
        #: run, monotonic nanoseconds.
        self.due_ns = monotonic_ns() + BEAT_NS
        self.late_ns = self.due_ns + SLACK_NS
        self.lateness = Lateness(BEAT_NS)
        self._ending = False
        self._thread = threading.Thread(target=self._serve, name="loop", daemon=True)
        self._thread.start()

    def call(self, function: Callable[..., object], *args: Any) -> None:
        """Call a function in the loop's thread soon, without waiting; not if the loop is closed."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function, *args)

    def stop(self) -> None:
        """End the loop soon, without waiting, and cancel the tasks that scenarios left in it.

        Tasks that do not end within `END_S` seconds are left, with a warning.
        """
        self.call(self._stop)

    def overdue_ns(self, now: int) -> int:
        """Return by how much the loop's next beat is late, nanoseconds; 0 if on time or not begun.

        `now`: monotonic ns.
        """
        return max(0, now - self.due_ns) if self.ident else 0

    def cpu_ns(self) -> int:
        """Return the CPU time of the loop's thread, ns; 0 before it runs, or if not known."""
        if not self.ident or not hasattr(time, "pthread_getcpuclockid"):
            return 0
        return time.clock_gettime_ns(time.pthread_getcpuclockid(self.ident))

    def is_asleep(self) -> bool:
        """Return whether the loop's thread sleeps: it waits for something other than a core.

        True if /proc cannot be read.
        """
        try:
            stat = Path(f"/proc/self/task/{self._native_id}/stat").read_text()
        except OSError:
            return True
        # behind the name, which may have blanks
        return stat.rpartition(") ")[2][:1] != "R"

    def is_alive(self) -> bool:
        """Return whether the loop's thread has not ended."""
        return self._thread.is_alive()

    def _stop(self) -> None:
        self._ending = True
        self.loop.stop()

    def _serve(self) -> None:
        loop = self.loop
        loop.set_exception_handler(self._complain)
        loop.call_soon(self._start)
        while not self._ending:
            try:
                loop.run_forever()
            except BaseException as error:  # noqa: BLE001 - a task may raise SystemExit
                LOG.warning("the event loop was left by %s and continues", type(error).__name__)
        try:
            self._finish()
        except Exception:
            LOG.exception("internal error at the end of an event loop")

    def _start(self) -> None:
        self.due_ns = monotonic_ns()
        self._native_id = threading.get_native_id()
        self.ident = threading.get_ident()
        self._beat()

    def _beat(self) -> None:
        now = monotonic_ns()
        self.lateness.note(max(0, now - self.due_ns))
        self.due_ns = now + BEAT_NS
        self.late_ns = self.due_ns + SLACK_NS
        self.loop.call_later(BEAT_S, self._beat)

    def _complain(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Report a failed task or callback without its message, which may hold secrets."""
        error = context.get("exception")
        if error is None:
            what = str(context.get("message", "see asyncio's debug mode"))
        else:
            what = f"{type(error).__name__}: {place_of(error)}"
        self._tell(f"a task or callback that the scenario left behind failed with {what}")

    def _finish(self) -> None:
        loop = self.loop
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            _, left = loop.run_until_complete(asyncio.wait(left, timeout=END_S))
        if left:
            LOG.warning("%d tasks that a scenario left behind cannot be ended", len(left))
            return
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
