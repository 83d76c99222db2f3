"""The engine of one workload in one process: the parts that all kinds of virtual users share.

Virtual users are threads (`ThreadEngine`) or coroutines (`CoroutineEngine`). Each running iteration
is in `inflight` under its number. Either the user that finished it or the watchdog after its
timeout removes it from there and records it, so that it is recorded exactly once. A user whose
iteration was removed by the watchdog ends, and another takes its place. The list and dict
operations used here are atomic under the interpreter's lock; the hot path takes no other lock.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, ClassVar, Protocol

from osbench.common.machine.thread_frames import current_frames
from osbench.common.plugin.atomic import WIDTH, Recorder
from osbench.common.plugin.scenario import VirtualUser
from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.common.ports.clock import monotonic_ns
from osbench.common.protocol.columns import Row, pack_actions, row
from osbench.common.protocol.exchanges import EXCHANGE_BYTES
from osbench.common.protocol.messages import Batch
from osbench.common.secrets.url_masking import mask_url
from osbench.common.values.intervals import Interval, Intervals
from osbench.common.values.outcomes import LifeEvent, Outcome
from osbench.worker.engine.body import Body
from osbench.worker.engine.failures import MASKED_CHARS, Place, place_words, printable
from osbench.worker.engine.lateness import Lateness, Stalls
from osbench.worker.engine.users.forked_children import process_forks
from osbench.worker.engine.users.pacing import Pacing
from osbench.worker.engine.users.user_plan import UserNumbers
from osbench.worker.engine.will_page import WillPage

LOG = logging.getLogger(__name__)

#: Interval of the watchdog, seconds and nanoseconds.
WATCH_S = 0.02
WATCH_NS = int(WATCH_S * 1e9)
#: Packed HTTP requests of an iteration above which blocks are cut by their size.
FEW_BYTES = 4 * EXCHANGE_BYTES
#: Iterations that run for longer are reported, nanoseconds; length limit of their place,
#: characters.
LONG_NS = 5_000_000_000
PLACE_CHARS = 300
#: In a ramp the coordinator raises the user limit about as often, nanoseconds.
SPREAD_MOST_NS = 250_000_000
#: A time that never comes.
NEVER = 1 << 62
#: Values that `run` of an engine returns instead of the time at which the iteration ended: its
#: number was given back; its user must end; its number stays with the caller, because the lease is
#: over.
NOT_STARTED, GIVEN_UP, LEASE_OVER = 0, -1, -2
OK, FAILED, TIMED_OUT = int(Outcome.OK), int(Outcome.FAILED), int(Outcome.TIMED_OUT)


class IterationTimeout(BaseException):
    """Raised by the watchdog in the thread of an iteration that timed out, to end it.

    It is a BaseException, so that `except Exception` of a scenario does not catch it.
    """


class User:
    """A virtual user, which runs iterations one after another: its number and state.

    Subclasses add the thread or the task in which it runs.
    """

    __slots__ = ("free_ns", "number", "state")

    def __init__(self, number: int, free_ns: int, state: VirtualUser | None = None) -> None:
        #: Its position in this process, from 0.
        self.number = number
        #: What its scenario sees as `self.user`; None before it has begun.
        self.state = state
        #: Time from which the user was free, monotonic nanoseconds.
        self.free_ns = free_ns


class Remains(Protocol):
    """Code that may still run for a timed-out iteration: a thread, coroutine or blocking call."""

    def is_alive(self) -> bool:
        """Return whether it still runs."""


class HeldLoop:
    """Entry of `Engine.abandoned` as long as a timed-out iteration blocks the event loop.

    With it the worker process reports itself as stuck.
    """

    def __init__(self, holder: Remains) -> None:
        self._holder = holder

    def is_alive(self) -> bool:
        """Return whether the iteration still blocks the loop."""
        return self._holder.is_alive()


BEGUN, ENDED = int(LifeEvent.BEGUN), int(LifeEvent.ENDED)
#: A `LifeEvent`, number of the user, begin and end (monotonic ns), number of the failure.
LifeRow = tuple[int, int, int, int, int]

#: User, due, started, recorder.
Entry = tuple[User, int, int, Recorder]


@dataclass(frozen=True, kw_only=True)
class EngineSetup:
    """Parameters of an engine: body and start of the load, callback for work, will page."""

    body: Body
    #: Start of the load, monotonic nanoseconds.
    t0_ns: int
    #: Called when work runs out.
    request_work: Callable[[], None]
    page: WillPage | None = None


class Engine:
    """Base of all engines, which run the iterations of one workload on virtual users.

    The coordinator grants iteration numbers in batches, and allows this process `user_limit` users.
    Creating an engine starts the watchdog, a thread that runs every `WATCH_S` seconds until the
    engine is closed and iterations and `on_stop` have ended. `set_user_limit` starts users.
    """

    #: Field of a result block that has the latenesses: of event loops, or of threads.
    LAGS: ClassVar[str] = "thread_lags"

    def __init__(self, setup: EngineSetup) -> None:
        self.body = setup.body
        self.t0_ns = setup.t0_ns
        #: From this time nothing starts, monotonic nanoseconds.
        self.stop_ns = NEVER
        #: End of the lease, after which nothing starts until it is renewed, and the earlier of
        #: the two, which each iteration is compared with.
        self.lease_ns = NEVER
        self.until_ns = NEVER
        self._page = setup.page
        #: Finished rows; the shipper takes them from the front.
        self.rows: list[Row] = []
        #: Running iterations by number.
        self.inflight: dict[int, Entry] = {}
        #: Count of granted numbers, and count of numbers in result blocks. Between the two a number
        #: may for a moment exist only in a local variable of a user.
        self.added = 0
        self.shipped = 0
        #: Some rows contain outputs, or many HTTP requests.
        self.bulky = False
        #: What still runs of iterations that timed out.
        self.abandoned: list[Remains] = []
        #: User-nanoseconds spent waiting for work that arrived later, or until the stop time.
        self.want_ns = 0
        self.user_limit = 0
        self.stopped = False
        #: How virtual users began and ended; the shipper takes them from the front.
        self.life: list[LifeRow] = []
        #: Iterations that have dropped a coroutine before it ran, and which.
        self.forgotten: dict[int, str] = {}
        #: Positions of users that have begun and are to end by `on_stop`.
        self.living: set[int] = set()
        self._numbers = UserNumbers()
        #: Users from this position on have to end: their numbers went to other workers.
        self.places = NEVER
        self.pacing = Pacing()
        self._lives = itertools.count(1)
        self._limit_ns = setup.body.timeout_ns or NEVER
        self._request_work = setup.request_work
        self._returned = Intervals()
        #: Batches whose unstarted numbers were taken back, and the last batch up to which all were.
        self._recalled: set[int] = set()
        self._recalled_to = 0
        self._last_seq = 0
        #: Its length is `started_late`: appending is atomic.
        self._late: list[None] = []
        #: Time of the last change of `user_limit`, and users that there were before it.
        self._limited_ns = setup.t0_ns
        self._users_before = 0
        #: The users that it adds begin within this time, evenly, nanoseconds.
        self._spread_ns = 0
        self._next_expiry = 0
        #: Of the watchdog: it wakes as late as a virtual user whose response has arrived.
        self._lateness = Lateness(WATCH_NS)
        self._stalls = Stalls()
        self._changed = threading.Condition()
        self._said: set[str] = set()
        self._forks = process_forks()
        #: Another one is that of a child, which a scenario forked.
        self._generation = self._forks.generation
        self._watch = threading.Thread(target=self._watch_loop, name="watchdog", daemon=True)
        self._watch.start()

    # the kind of load: implemented by `GrantedNumbers` and `GrantedArrivals`

    def add(self, batch: Batch) -> None:
        """Queue the iteration numbers of a batch from the coordinator; add their count to `added`.

        Closed loads start them in the order of batches, open loads in the order of due times.
        """
        raise NotImplementedError

    @property
    def queued(self) -> int:
        """Return the count of granted iteration numbers that no user has started yet."""
        raise NotImplementedError

    def take_back(self, seq: int | None = None) -> list[Interval]:
        """Remove and return the unstarted numbers of batch `seq`, or of all batches so far if None.

        The result is half-open intervals, which the caller must return to the coordinator. A number
        that a user has taken but not started either starts or comes with a later result of
        `returned`.
        """
        raise NotImplementedError

    # the kind of users: implemented by `ThreadEngine` and `CoroutineEngine`

    @property
    def users(self) -> int:
        """Return the count of virtual users that exist, busy or idle."""
        raise NotImplementedError

    def _fill(self) -> None:
        """Start the users that the user limit allows, or needs at once, and that do not exist yet.

        Existing users are unchanged.
        """
        raise NotImplementedError

    def _notify(self) -> None:
        """Wake the waiting users, because user limit, lease or stop time changed.

        Called with the lock `_changed` held.
        """
        raise NotImplementedError

    def _stack(self, user: User, frames: dict[int, FrameType]) -> Sequence[Place]:
        """Return the stack of `user`, innermost frame first, without the engine's frames.

        `frames` has each thread's current frame by the thread's id, as of `current_frames`.
        """
        raise NotImplementedError

    def _replace(self, user: User, now: int) -> None:
        """End the user of a timed-out iteration, and start a new user with its number.

        The new user is free from `now`, monotonic ns; the old one is added to `abandoned`. Called
        by the watchdog.
        """
        raise NotImplementedError

    # users

    @property
    def action_names(self) -> list[str]:
        """Return the names of atomic actions; rows name an action by its index in this list.

        Names are only added, at the end.
        """
        return self.body.names.names

    def set_user_limit(self, user_limit: int, numbers: Sequence[Interval] = ()) -> None:
        """Set the number of virtual users in this process; start missing users and request work.

        `numbers`: the users' numbers in the whole load, as half-open intervals; closed loads end
        users beyond them, with `on_stop`. Users beyond a smaller limit end or wait after their
        iteration. Added users of a closed load begin one by one, evenly within at most
        `SPREAD_MOST_NS` from now; all at once if the limit was 0.
        """
        with self._changed:
            found = UserNumbers(numbers)
            self.places = len(found) or NEVER
            # a user beyond a shorter list keeps its number until it has ended
            if not self._numbers.begins_with(found):
                self._numbers = found
            now = max(self.t0_ns, monotonic_ns())
            self._spread_ns = min(now - self._limited_ns, SPREAD_MOST_NS) if self.user_limit else 0
            self._limited_ns, self._users_before = now, self.user_limit
            self.user_limit = user_limit
            self._notify()
        self._fill()
        self._request_work()

    def _free_at(self, number: int) -> int:
        """Return the time from which user `number` (from 0) is free to begin, monotonic ns.

        For users that the last change of the limit added, times are spread evenly over `_spread_ns`
        after that change; for others it is the time of that change.
        """
        added, place = self.user_limit - self._users_before, number - self._users_before
        if added <= 0 or place < 0:
            return self._limited_ns
        return self._limited_ns + self._spread_ns * place // added

    @property
    def surplus(self) -> int:
        """Return the count of running iterations whose users are beyond the user limit."""
        return sum(user.number >= self.user_limit for user, *_ in self.inflight.copy().values())

    def _is_over(self, user: User) -> bool:
        """Return whether `user` must end: engine closed, or its number went to another worker."""
        return self.stopped or user.number >= self.places

    def _new_state(self, user: User) -> VirtualUser:
        """Raises NoRow if a data file has no row for the user."""
        user.state = self.body.users.user(self._numbers.at(user.number))
        return user.state

    def _life_key(self) -> int:
        """Return a new negative key in `inflight` for one run of `on_start` or `on_stop`.

        Each call returns another key, so that a user and the user that replaces it after a timeout
        have different keys.
        """
        return -next(self._lives)

    def forget(self, what: str) -> None:
        """Note that the calling thread or task dropped a coroutine without awaiting it.

        The iteration that it runs will be recorded as failed with the message `what`. If it runs
        none, or is a user in `on_start` or `on_stop`, the message is counted as an aside.
        """
        iteration = self._running_here()
        if iteration > 0:
            self.forgotten[iteration] = what
        else:
            self.body.tell_aside(what)

    def _running_here(self) -> int:
        """Return the number of the iteration that the calling thread or task runs; 0 if none.

        A negative result is the key of a user that runs `on_start` or `on_stop`.
        """
        raise NotImplementedError

    def _call_life(self, kind: int, user: User, recorder: Recorder) -> Any:
        """Call `on_start` (`kind` BEGUN) or `on_stop` of a user, and return its result.

        Before `on_start` the user gets a new state. Exceptions of the scenario are not caught.
        Raises NoRow if a data file has no row for the user.
        """
        state = self._new_state(user) if kind == BEGUN or user.state is None else user.state
        scenario = self.body.instance(0, recorder, state)
        return scenario.on_start() if kind == BEGUN else scenario.on_stop()

    def _note_life(self, kind: int, user: User, begun: int, ended: int, failure: int) -> None:
        """Append to `life` a row on `on_start` (`kind` BEGUN) or `on_stop` (ENDED) of a user.

        Times are monotonic ns. `failure` is the number of its failure, 0 for success; with a
        failure the row is NOT_BEGUN or NOT_ENDED. A user that begins is added to `living` if the
        scenario has `on_stop`; a user that ends is removed.
        """
        # the number of its position may have gone to another worker
        number = user.state.number if user.state else self._numbers.at(user.number)
        self.life.append((kind + (failure > 0), number, begun, ended, failure))
        if kind == BEGUN and not failure and self.body.users.ends:
            self.living.add(user.number)
        elif kind == ENDED:
            self.living.discard(user.number)

    def note_returned(self) -> None:
        """Count as asides the forked children of scenarios that returned into the worker's code.

        Such a child was ended by its own process. The first of each place in the code is logged as
        an error.
        """
        for what in self._forks.returned():
            self.body.tell_aside(what)
            if what not in self._said:
                self._said.add(what)
                LOG.error("%s", what)

    # how late this process is

    def lags(self) -> list[int]:
        """Remove and return the latenesses noted since the last call, nanoseconds, oldest first.

        Of the event loop for coroutines, of the watchdog for threads.
        """
        return self._lateness.take()

    def stalls(self) -> list[list[Any]]:
        """Remove and return the times since the last call for which this process could not run.

        Each is [cause, nanoseconds], the sum per cause; see `Stalls`.
        """
        return self._stalls.take()

    def blocked(self) -> list[list[Any]]:
        """Remove and return the times since the last call for which scenario code blocked the loop.

        Each is [line of code, nanoseconds], longest first. Always empty for threads.
        """
        return []

    def longest(self) -> tuple[int, int, str, str] | None:
        """Return the iteration that has been running longest; None if for less than `LONG_NS`.

        The result: its number (0: a user in `on_start` or `on_stop`), time so far in nanoseconds,
        name of the open action that began last ("" if none), and the line of code that it runs (""
        if unknown), masked and cut to `PLACE_CHARS`. None also if one begins or ends at this
        moment.
        """
        try:
            # in the order in which they began
            iteration, entry = next(iter(self.inflight.items()))
        except (StopIteration, RuntimeError):
            # none, or one began or ended at this moment: the next heartbeat reports it
            return None
        user, _, started, recorder = entry
        running_ns = monotonic_ns() - started
        if running_ns < LONG_NS:
            return None
        places = self._stack(user, current_frames())
        place = place_words(places, self.body.cls.__module__) if places else ""
        shown = printable(mask_url(place))[:PLACE_CHARS]
        return max(0, iteration), running_ns, recorder.open_name(), shown

    # one iteration: parts of `run`

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
            failure = None
            if error is not None:
                said = self.body.failures.masked(message[:MASKED_CHARS])
                failure = (type(error).__name__, said)
            trace = tracer.end(recorder.profiler, failure)
        exchanges = recorder.exchanges
        self.bulky = self.bulky or outputs is not None or len(exchanges) > FEW_BYTES
        return self.body.extras(outputs, trace, exchanges)

    def _withdraw(self, iteration: int, user: User, started: int) -> int:
        if self.inflight.pop(iteration, None) is None:
            return GIVEN_UP
        if user.number < self.user_limit and started < self.stop_ns:
            return LEASE_OVER
        self.give_back([(iteration, iteration + 1)])
        return NOT_STARTED

    # lease

    def set_lease(self, until_ns: int) -> None:
        """Set the end of the lease, `until_ns`, monotonic: at and after it no iteration starts.

        The lease is the coordinator's permission to start work; each call replaces its end. Running
        iterations go on.
        """
        with self._changed:
            was_over = monotonic_ns() >= self.lease_ns
            self.lease_ns = until_ns
            self.until_ns = min(self.stop_ns, until_ns)
            # while the lease lasts, no user waits for it
            if was_over:
                self._notify()

    @property
    def started_late(self) -> int:
        """Return the count of iterations that ran although the lease ended just before."""
        return len(self._late)

    # taking back

    def _recall(self, seq: int | None) -> None:
        """Mark batch `seq`, or all batches so far if None, as taken back by the coordinator.

        Unstarted numbers of marked batches are from now on returned to the coordinator instead of
        being queued again. Call with the lock `_changed` held.
        """
        if seq is None:
            self._recalled_to = self._last_seq
        else:
            self._recalled.add(seq)

    def _is_recalled(self, seq: int) -> bool:
        return seq <= self._recalled_to or seq in self._recalled

    # stopping

    def stop(self, at_ns: int) -> None:
        """Start no iteration at or after `at_ns`, monotonic; running iterations go on.

        Waiting users are woken. Has no effect if the stop time is already earlier.
        """
        with self._changed:
            self.stop_ns = min(self.stop_ns, at_ns)
            self.until_ns = min(self.stop_ns, self.lease_ns)
            self._notify()

    def give_back(self, numbers: list[Interval]) -> None:
        """Note granted numbers, half-open intervals, that will not start here, for `returned`."""
        with self._changed:
            self._returned.update(numbers)

    def returned(self) -> list[Interval]:
        """Remove and return numbers noted by `give_back` since the last call: half-open intervals.

        The caller returns them to the coordinator.
        """
        with self._changed:
            found, self._returned = list(self._returned), Intervals()
        return found

    @property
    def unsettled(self) -> int:
        """Return the count of granted numbers that are not in a result block yet.

        In a block a number has a result, or is listed as returned to the coordinator.
        """
        return self.added - self.shipped

    @property
    def has_users_to_end(self) -> bool:
        """Return whether iterations run, an `on_stop` is due, or rows of `life` are unshipped."""
        return bool(self.living or self.life or self.inflight)

    def close(self) -> None:
        """Close the engine, without waiting: no iteration starts, and waiting users are woken.

        Users end after their current iteration and `on_stop`; then the watchdog ends.
        """
        self.stopped = True
        self.stop(0)

    # the watchdog

    def _watch_loop(self) -> None:
        while not self._over:
            due = monotonic_ns() + WATCH_NS
            time.sleep(WATCH_S)
            late = max(0, monotonic_ns() - due)
            self._lateness.note(late)
            self._stalls.note(late)
            try:
                self._check()
            except Exception:
                LOG.exception("internal error in the watchdog; it continues")

    @property
    def _over(self) -> bool:
        # users that are free end only when they notice that nothing starts any more
        return self.stopped and not self.inflight and not self.living

    def _check(self) -> None:
        now = monotonic_ns()
        if now >= self.stop_ns:
            rest = self.take_back()
            if rest:
                self.give_back(rest)
                self._request_work()
        if now >= self._next_expiry:
            self._expire(now)
        self.look(now)

    def look(self, now: int) -> None:
        """Do periodic work of a subclass, here none; the watchdog calls it every `WATCH_S` s.

        `now`: monotonic ns.
        """

    def _expire(self, now: int) -> None:
        """Time out iterations, `on_start` and `on_stop` that exceed the workload's timeout.

        Also sets when to check next, and removes from `abandoned` the entries that no longer run.
        `now`: monotonic ns.
        """
        earliest = now + self._limit_ns
        frames: dict[int, FrameType] = {}
        # copy() is atomic; list(items()) is not, because the garbage collector may run meanwhile
        for iteration, entry in self.inflight.copy().items():
            deadline = entry[2] + self._limit_ns
            if deadline > now:
                earliest = min(earliest, deadline)
            elif self.inflight.pop(iteration, None) is not None:
                frames = frames or current_frames()
                self._give_up(iteration, entry, now, frames)
        self._next_expiry = earliest
        self.abandoned = [one for one in self.abandoned if one.is_alive()]

    def _give_up(
        self, iteration: int, entry: Entry, now: int, frames: dict[int, FrameType]
    ) -> None:
        user, due, started, recorder = entry
        if iteration < 0:
            self._give_up_life(user, started, now, frames)
            return
        failure = self.body.failures.timed_out(self._limit_ns / 1e9, self._stack(user, frames))
        trace = b""
        if recorder.profiler is not None and self.body.tracer is not None:
            trace = self.body.tracer.abandon(recorder.profiler)
        exchanges = recorder.exchanges_so_far()
        self.bulky = self.bulky or len(exchanges) > FEW_BYTES
        extra = self.body.extras(None, trace, exchanges)
        self.rows.append(
            row(
                iteration=iteration,
                outcome=TIMED_OUT,
                due=due,
                started=started,
                ended=now,
                failure=failure,
                actions=pack_actions(closed_actions(recorder.actions, now)),
                extra=extra,
            )
        )
        if self.body.users.has_life:
            self.life.append((int(LifeEvent.REPLACED), self._numbers.at(user.number), now, now, 0))
            self.living.discard(user.number)
        self._replace(user, now)

    def _give_up_life(
        self, user: User, started: int, now: int, frames: dict[int, FrameType]
    ) -> None:
        """Record a timeout of `on_start` or `on_stop` with the user's stack; replace the user.

        `started` and `now` are monotonic ns; `frames` has each thread's current frame by its id.
        """
        failure = self.body.failures.timed_out(self._limit_ns / 1e9, self._stack(user, frames))
        kind = ENDED if user.number in self.living else BEGUN
        self._note_life(kind, user, started, now, failure)
        self._replace(user, now)


def closed_actions(actions: list[int], now: int) -> list[int]:
    """Return a copy of an iteration's actions in which open ones have the end `now`, as failed.

    `actions` is flat, `WIDTH` integers per action; an incomplete action at the end of the list is
    dropped. `now`: monotonic ns.
    """
    copy = actions[: len(actions) // WIDTH * WIDTH]
    for at in range(0, len(copy), WIDTH):
        if not copy[at + 3]:
            copy[at + 3], copy[at + 4] = now, 1
    return copy
