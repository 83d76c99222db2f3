"""The engine of one workload in one process: virtual users, rows, and the watchdog.

Virtual users are threads: OSProfiler's state is thread-local and OpenStack clients block.
Each running iteration is in `inflight` under its number. Either the thread that finished it or
the watchdog after its timeout pops it and reports it, so that it is reported exactly once. A
thread whose iteration was popped by the watchdog ends.
The list and dict operations used here are atomic under the interpreter's lock; the hot path takes
no other lock.
"""

from __future__ import annotations

import ctypes
import logging
import sys
import threading
import time
from collections.abc import Callable
from time import monotonic_ns
from types import FrameType
from typing import Any

from osbench.common.intervals import Interval, Intervals
from osbench.common.outcomes import Outcome
from osbench.common.plugin.atomic import WIDTH, Recorder
from osbench.common.protocol.blocks import Row, pack_actions
from osbench.common.protocol.messages import Batch
from osbench.worker.engine.body import Body
from osbench.worker.engine.failures import message_of
from osbench.worker.engine.will_page import WillPage

LOG = logging.getLogger(__name__)

#: Interval of the watchdog, seconds.
WATCH_S = 0.02
#: An instant that never comes.
NEVER = 1 << 62
#: What `Engine.run` returns in place of the instant at which the iteration ended: its number was
#: given back; its thread must end; its number stays with the caller, because the lease is over.
NOT_STARTED, GIVEN_UP, LEASE_OVER = 0, -1, -2
OK, FAILED, TIMED_OUT = int(Outcome.OK), int(Outcome.FAILED), int(Outcome.TIMED_OUT)


class IterationTimeout(BaseException):
    """Raised in the thread of an iteration that timed out. Scenarios do not catch it."""


class User:
    """A virtual user: a thread that runs iterations one after another."""

    __slots__ = ("free_ns", "injected", "number", "thread")

    def __init__(self, number: int, free_ns: int) -> None:
        self.number = number
        #: Instant from which the user was free, monotonic nanoseconds.
        self.free_ns = free_ns
        self.thread: threading.Thread | None = None
        #: Set after an exception was sent to the thread. The thread must not end before, because
        #: its identity could be reused by another thread. A plain flag, because an exception
        #: inside an Event or a lock may leave it locked for ever.
        self.injected = False


#: Deadline, user, due, started, recorder.
Entry = tuple[int, User, int, int, Recorder]


class Engine:
    """Base of the closed and the open engine. `request_work` is called when work runs out."""

    def __init__(
        self,
        body: Body,
        t0_ns: int,
        stop_ns: int,
        request_work: Callable[[], None],
        page: WillPage | None = None,
    ) -> None:
        self.body = body
        #: Start of the load, and the instant from which nothing starts, monotonic nanoseconds.
        self.t0_ns = t0_ns
        self.stop_ns = stop_ns
        #: End of the lease, after which nothing starts until it is renewed, and the earlier of
        #: the two, which each iteration is compared with.
        self.lease_ns = NEVER
        self.until_ns = stop_ns
        self._page = page
        #: Finished rows; the shipper takes them from the front.
        self.rows: list[Row] = []
        #: Running iterations by number.
        self.inflight: dict[int, Entry] = {}
        #: Count of granted numbers, and of those in result blocks. Between the two a number may
        #: for a moment exist only in a local variable of a thread.
        self.added = 0
        self.shipped = 0
        #: Some rows contain outputs.
        self.bulky = False
        #: Threads that are still running after their iteration timed out.
        self.abandoned: list[threading.Thread] = []
        #: User-nanoseconds spent waiting for work that arrived later, or until the stop instant.
        self.want_ns = 0
        self.share = 0
        self.stopped = False
        self._limit_ns = body.timeout_ns or NEVER
        self._request_work = request_work
        self._returned = Intervals()
        #: Batches whose unstarted numbers were taken back, and the last batch up to which all were.
        self._recalled: set[int] = set()
        self._recalled_to = 0
        self._last_seq = 0
        #: Its length is `started_late`: appending is atomic.
        self._late: list[None] = []
        self._users: dict[int, User] = {}
        self._users_lock = threading.Lock()
        #: Instant of the last change of `share`.
        self._shared_ns = t0_ns
        #: The system had no thread for a user.
        self._short = False
        self._next_expiry = 0
        self._changed = threading.Condition()
        self._watch = threading.Thread(target=self._watch_loop, name="watchdog", daemon=True)
        self._watch.start()

    # implemented by the subclasses

    def serve(self, user: User) -> None:
        """Run iterations as `user` until the user must end."""
        raise NotImplementedError

    def add(self, batch: Batch) -> None:
        """Take the numbers of a batch; they are started after those of earlier batches."""
        raise NotImplementedError

    @property
    def action_names(self) -> list[str]:
        """The names of atomic actions by the numbers that rows carry; the list only grows."""
        return self.body.names.names

    @property
    def queued(self) -> int:
        """Granted and not started."""
        raise NotImplementedError

    def take_back(self, seq: int | None = None) -> list[Interval]:
        """Remove and return the numbers of a batch, or of all batches, that were not started.

        A number that a user holds at this moment is either started or given back later
        (`returned`); it is never kept for another start.
        """
        raise NotImplementedError

    @property
    def min_users(self) -> int:
        """Users that must exist whether or not there is work."""
        return self.share

    # users

    def set_share(self, share: int) -> None:
        """Set the number of virtual users."""
        with self._changed:
            self._shared_ns = max(self.t0_ns, monotonic_ns())
            self.share = share
            self._changed.notify_all()
        self._fill()
        self._request_work()

    def _fill(self) -> None:
        """Start users until there are `min_users`."""
        for number in range(self.min_users):
            if number not in self._users and not self.start_user(number, self._shared_ns):
                return
        self._short = False

    def start_user(self, number: int, free_ns: int) -> bool:
        """Start a user that does not exist yet; False where the system has no thread for it."""
        with self._users_lock:
            if number in self._users or number >= self.share or self.stopped:
                return True
            user = User(number, free_ns)
            user.thread = threading.Thread(
                target=self._run_user, args=(user,), name=f"user-{number}", daemon=True
            )
            self._users[number] = user
            try:
                user.thread.start()
            except RuntimeError as error:
                del self._users[number]
                if not self._short:
                    LOG.error("virtual user %d of %d: %s", number + 1, self.share, error)
                self._short = True
                return False
        return True

    def remove_user(self, user: User) -> None:
        """Remove a user that ends or whose iteration timed out."""
        with self._users_lock:
            if self._users.get(user.number) is user:
                del self._users[user.number]

    def _run_user(self, user: User) -> None:
        try:
            self.serve(user)
        except IterationTimeout:
            _await_injection(user)

    @property
    def users(self) -> int:
        """Virtual users that exist."""
        return len(self._users)

    # one iteration

    def run(self, iteration: int, due: int, user: User) -> int:
        """Run and record one iteration; returns when it ended, NOT_STARTED or GIVEN_UP."""
        body = self.body
        recorder = Recorder(body.names)
        started = monotonic_ns()
        self.inflight[iteration] = (started + self._limit_ns, user, due, started, recorder)
        # checked after the insertion, so that after a reduction of the share `inflight` has all
        # iterations that may still start
        if user.number >= self.share or started >= self.until_ns:
            return self._withdraw(iteration, user, started)
        if body.tracer is not None:
            self._trace(iteration, recorder)
            started = monotonic_ns()
            if started >= self.lease_ns:
                self._late.append(None)
        scenario = None
        error: BaseException | None = None
        message = ""
        try:
            scenario = body.instance(iteration, recorder)
            body.function(scenario, **body.arguments(iteration))
            ended = monotonic_ns()
        except BaseException as caught:  # noqa: BLE001 - SystemExit and the like are failures too
            ended = monotonic_ns()
            error, message = caught, message_of(caught)
        if self.inflight.pop(iteration, None) is None:
            # breaks the reference cycle between exception and frame
            error = None
            _await_injection(user)
            return GIVEN_UP
        outcome = OK
        failure = idle = 0
        outputs = extra = None
        if scenario is not None:
            idle, outputs = scenario._idle_ns, scenario._outputs
        if outputs is not None or recorder.profiler is not None:
            extra = self._extras(recorder, outputs, error, message)
        if error is not None:
            outcome, failure = FAILED, body.failures.number(error, message)
            error = None
        actions = b""
        if recorder.actions:
            # packed, so that the garbage collector does not traverse every row
            closed = recorder.actions if recorder.open < 0 else _closed(recorder.actions, ended)
            actions = pack_actions(closed)
        self.rows.append((iteration, outcome, due, started, ended, idle, failure, actions, extra))
        return ended

    def _trace(self, iteration: int, recorder: Recorder) -> None:
        tracer = self.body.tracer
        assert tracer is not None
        if tracer.sampled(iteration):
            recorder.profiler = tracer.begin(iteration)
        else:
            tracer.clear()

    def _extras(
        self,
        recorder: Recorder,
        outputs: list[bytes] | None,
        error: BaseException | None,
        message: str,
    ) -> Any:
        trace, tracer = b"", self.body.tracer
        if recorder.profiler is not None and tracer is not None:
            failure = None if error is None else (type(error).__name__, message)
            trace = tracer.end(recorder.profiler, failure)
        self.bulky = self.bulky or outputs is not None
        return self.body.extras(outputs, trace)

    def _withdraw(self, iteration: int, user: User, started: int) -> int:
        if self.inflight.pop(iteration, None) is None:
            _await_injection(user)
            return GIVEN_UP
        if user.number < self.share and started < self.stop_ns:
            return LEASE_OVER
        self.give_back([(iteration, iteration + 1)])
        return NOT_STARTED

    # lease

    def set_lease(self, until_ns: int) -> None:
        """Let nothing start at or after an instant, monotonic ns, until this is called again."""
        with self._changed:
            was_over = monotonic_ns() >= self.lease_ns
            self.lease_ns = until_ns
            self.until_ns = min(self.stop_ns, until_ns)
            # while the lease lasts, no user waits for it
            if was_over:
                self._changed.notify_all()

    @property
    def started_late(self) -> int:
        """Iterations that started although the lease had ended while tracing was begun."""
        return len(self._late)

    # taking back

    def _recall(self, seq: int | None) -> None:
        """Note that a batch, or all so far, is taken back; call with the lock held."""
        if seq is None:
            self._recalled_to = self._last_seq
        else:
            self._recalled.add(seq)

    def _is_recalled(self, seq: int) -> bool:
        return seq <= self._recalled_to or seq in self._recalled

    # stopping

    def stop(self, at_ns: int) -> None:
        """Let nothing start at or after an instant, monotonic nanoseconds."""
        with self._changed:
            self.stop_ns = min(self.stop_ns, at_ns)
            self.until_ns = min(self.stop_ns, self.lease_ns)
            self._changed.notify_all()

    def give_back(self, numbers: list[Interval]) -> None:
        """Return numbers that were granted and will not start here."""
        with self._changed:
            self._returned.update(numbers)

    def returned(self) -> list[Interval]:
        """Numbers given back since the last call."""
        with self._changed:
            found, self._returned = list(self._returned), Intervals()
        return found

    @property
    def unsettled(self) -> int:
        """Granted numbers that are not in a result block yet, as results or as returned."""
        return self.added - self.shipped

    def close(self) -> None:
        """Start nothing more; users end when their iteration is over."""
        self.stopped = True
        self.stop(0)

    # the watchdog

    def _watch_loop(self) -> None:
        while not (self.stopped and not self.inflight):
            time.sleep(WATCH_S)
            try:
                self._check()
            except Exception:
                LOG.exception("internal error in the watchdog; it continues")

    def _check(self) -> None:
        now = monotonic_ns()
        if now >= self.stop_ns:
            rest = self.take_back()
            if rest:
                self.give_back(rest)
                self._request_work()
        if now >= self._next_expiry:
            self._expire(now)
        if self._short:
            self._fill()
        self.look(now)

    def look(self, now: int) -> None:
        """Called by the watchdog at each interval, for subclasses."""

    def _expire(self, now: int) -> None:
        """Time out iterations past their deadline; compute the next deadline."""
        earliest = now + self._limit_ns
        frames: dict[int, FrameType] = {}
        # copy() is atomic; list(items()) is not, because the garbage collector may run meanwhile
        for iteration, entry in self.inflight.copy().items():
            if entry[0] > now:
                earliest = min(earliest, entry[0])
            elif self.inflight.pop(iteration, None) is not None:
                frames = frames or sys._current_frames()
                self._give_up(iteration, entry, now, frames)
        self._next_expiry = earliest
        self.abandoned = [thread for thread in self.abandoned if thread.is_alive()]

    def _give_up(
        self, iteration: int, entry: Entry, now: int, frames: dict[int, FrameType]
    ) -> None:
        _, user, due, started, recorder = entry
        thread = user.thread
        assert thread is not None and thread.ident is not None
        failure = self.body.failures.timed_out(self._limit_ns / 1e9, frames.get(thread.ident))
        extra: Any = None
        if recorder.profiler is not None and self.body.tracer is not None:
            extra = (self.body.tracer.abandon(recorder.profiler), None)
        actions = pack_actions(_closed(recorder.actions, now))
        self.rows.append((iteration, TIMED_OUT, due, started, now, 0, failure, actions, extra))
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident), ctypes.py_object(IterationTimeout)
        )
        user.injected = True
        self.abandoned.append(thread)
        self.remove_user(user)
        self.start_user(user.number, now)


def _await_injection(user: User) -> None:
    """Wait for the exception sent to this thread, so that it is not raised during clean-up."""
    while not user.injected:
        time.sleep(0.001)
    # a thread checks for exceptions sent to it when it acquires the interpreter's lock
    time.sleep(0)


def _closed(actions: list[int], now: int) -> list[int]:
    """A copy of an iteration's actions in which open ones end at `now`, as failed."""
    copy = actions[: len(actions) // WIDTH * WIDTH]
    for at in range(0, len(copy), WIDTH):
        if not copy[at + 3]:
            copy[at + 3], copy[at + 4] = now, 1
    return copy
