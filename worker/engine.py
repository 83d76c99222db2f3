"""The engine of one workload in one process: virtual users, rows, and the watchdog.

Virtual users are threads: OSProfiler's state is thread-local and OpenStack clients block.
Each running iteration stands in `inflight` under its number; whoever pops it, the thread that
finished it or the watchdog whose patience ended, reports it, so that it is reported once.
List and dict operations used here are atomic under the interpreter's lock; nothing on the hot
path takes another.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import traceback
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from osbench.common.atomic import WIDTH, Recorder
from osbench.common.blocks import Row
from osbench.common.intervals import Interval, Intervals
from osbench.common.messages import Batch
from osbench.common.outcomes import Outcome
from osbench.worker.body import Body

#: How often the watchdog looks, seconds.
WATCH_S = 0.02
#: An instant that never comes.
NEVER = 1 << 62
OK, FAILED, TIMED_OUT = int(Outcome.OK), int(Outcome.FAILED), int(Outcome.TIMED_OUT)


class IterationTimeout(BaseException):
    """Raised in a virtual user's thread whose iteration took too long. No scenario catches it."""


class User:
    """A virtual user: a thread that runs iterations one after another."""

    __slots__ = ("injected", "number", "thread")

    def __init__(self, number: int) -> None:
        self.number = number
        self.thread: threading.Thread | None = None
        #: Set once an exception was sent to the thread, which must not end before: its
        #: identity could be given to another thread.
        self.injected = threading.Event()


class Engine:
    """Base of the closed and the open engine. `hungry` is called when work runs out."""

    def __init__(self, body: Body, t0_ns: int, stop_ns: int, hungry: Callable[[], None]) -> None:
        self.body = body
        #: Start of the load, and the instant from which nothing starts, monotonic nanoseconds.
        self.t0_ns = t0_ns
        self.stop_ns = stop_ns
        #: Finished rows; the shipper takes them from the front.
        self.rows: list[Row] = []
        #: iteration -> (deadline, user, due, started, recorder, scenario-less profiler)
        self.inflight: dict[int, tuple[int, User, int, int, Recorder]] = {}
        #: Threads whose iteration timed out and that still run.
        self.abandoned: list[threading.Thread] = []
        #: User-nanoseconds waited for work that then came.
        self.want_ns = 0
        self.share = 0
        self.stopped = False
        self._hungry = hungry
        self._returned = Intervals()
        self._users: dict[int, User] = {}
        self._changed = threading.Condition()
        self._watch = threading.Thread(target=self._watch_loop, name="watchdog", daemon=True)
        self._watch.start()

    # what the subclasses say

    def serve(self, user: User) -> None:
        """Run iterations as `user` until it must leave."""
        raise NotImplementedError

    def add(self, batch: Batch) -> None:
        """Take claimed numbers."""
        raise NotImplementedError

    @property
    def queued(self) -> int:
        """Claimed and not started."""
        raise NotImplementedError

    def take_back(self) -> list[Interval]:
        """Remove and return what was claimed and not started; only once nothing starts."""
        raise NotImplementedError

    # users

    def set_share(self, share: int) -> None:
        """Have this many virtual users."""
        with self._changed:
            self.share = share
            if not self.stopped:
                self.hire()
            self._changed.notify_all()

    def hire(self) -> None:
        """Start the users that `share` asks for and that are not there."""
        for number in range(self.share):
            if number not in self._users:
                self._start_user(number)

    def _start_user(self, number: int) -> None:
        user = User(number)
        thread = threading.Thread(
            target=self._live, args=(user,), name=f"user-{number}", daemon=True
        )
        user.thread = thread
        self._users[number] = user
        thread.start()

    def _live(self, user: User) -> None:
        try:
            self.serve(user)
        except IterationTimeout:
            # the injection may land between the iteration and our own code
            user.injected.wait()

    @property
    def users(self) -> int:
        """Virtual users that exist."""
        return len(self._users)

    # one iteration

    def run(self, iteration: int, due: int, started: int, user: User) -> bool:
        """Run and record one iteration; False when it was given up and the user must leave."""
        body = self.body
        tracer = body.tracer
        profiler = None
        if tracer is not None and tracer.sampled(iteration):
            profiler = tracer.begin(iteration)
            started = monotonic_ns()
        recorder = Recorder(body.names, profiler)
        deadline = started + body.timeout_ns if body.timeout_ns else NEVER
        self.inflight[iteration] = (deadline, user, due, started, recorder)
        scenario = None
        error: BaseException | None = None
        try:
            scenario = body.instance(iteration, recorder)
            body.function(scenario, **body.arguments(iteration))
            ended = monotonic_ns()
        except BaseException as caught:  # noqa: BLE001 - SystemExit and the like are failures too
            ended = monotonic_ns()
            error = caught
        if self.inflight.pop(iteration, None) is None:
            user.injected.wait()
            return False
        idle = scenario._idle_ns if scenario is not None else 0
        trace = b""
        if profiler is not None and tracer is not None:
            trace = tracer.end(
                profiler, None if error is None else (type(error).__name__, str(error))
            )
        extra = body.extras(scenario, trace)
        outcome, failure = OK, 0
        if error is not None:
            outcome, failure = FAILED, body.failures.number(error)
            error = None
        self.rows.append(
            (iteration, outcome, due, started, ended, idle, failure, recorder.actions, extra)
        )
        return True

    # stopping

    def stop(self, at_ns: int) -> None:
        """Let nothing start at or after an instant, monotonic nanoseconds."""
        self.stop_ns = min(self.stop_ns, at_ns)
        with self._changed:
            self._changed.notify_all()

    def give_back(self, numbers: list[Interval]) -> None:
        """Return numbers that were claimed and will not start here."""
        with self._changed:
            self._returned.update(numbers)

    def returned(self) -> list[Interval]:
        """What is to be given back since the last call."""
        with self._changed:
            found, self._returned = list(self._returned), Intervals()
        return found

    def close(self) -> None:
        """End: nothing starts, users leave when their iteration is over."""
        self.stop(0)
        self.stopped = True
        with self._changed:
            self._changed.notify_all()

    # the watchdog

    def _watch_loop(self) -> None:
        wake = threading.Event()
        while not (self.stopped and not self.inflight):
            wake.wait(WATCH_S)
            now = monotonic_ns()
            if now >= self.stop_ns:
                rest = self.take_back()
                if rest:
                    self.give_back(rest)
                    self._hungry()
            if self.body.timeout_ns:
                self._expire(now)
            self.look(now)

    def look(self, now: int) -> None:
        """What a subclass checks with the watchdog's rhythm."""

    def _expire(self, now: int) -> None:
        for iteration, entry in list(self.inflight.items()):
            if entry[0] <= now and self.inflight.pop(iteration, None) is not None:
                self._give_up(iteration, entry, now)
        self.abandoned = [thread for thread in self.abandoned if thread.is_alive()]

    def _give_up(
        self, iteration: int, entry: tuple[int, User, int, int, Recorder], now: int
    ) -> None:
        _, user, due, started, recorder = entry
        thread = user.thread
        assert thread is not None and thread.ident is not None
        failure = self.body.failures.timed_out(self.body.timeout_ns / 1e9, _stack(thread.ident))
        trace = b""
        if recorder.profiler is not None and self.body.tracer is not None:
            trace = self.body.tracer.abandon(recorder.profiler)
        extra: Any = (trace, None) if trace else None
        actions = _closed(recorder.actions, now)
        self.rows.append((iteration, TIMED_OUT, due, started, now, 0, failure, actions, extra))
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident), ctypes.py_object(IterationTimeout)
        )
        user.injected.set()
        self.abandoned.append(thread)
        with self._changed:
            if not self.stopped and self._users.get(user.number) is user:
                self._start_user(user.number)


def _closed(actions: list[int], now: int) -> list[int]:
    """A copy of an unfinished iteration's actions whose open ones end now, failed."""
    copy = actions[: len(actions) // WIDTH * WIDTH]
    for at in range(0, len(copy), WIDTH):
        if not copy[at + 3]:
            copy[at + 3], copy[at + 4] = now, 1
    return copy


def _stack(ident: int) -> str:
    frame = sys._current_frames().get(ident)
    if frame is None:
        return ""
    frames = traceback.extract_stack(frame)
    # leave out the engine's own frames: threading, _live, serve, run
    return "".join(traceback.format_list(frames[5:] or frames))
