"""Virtual users that are coroutines of one event loop: for scenarios that are `async def`.

The loop's thread starts and runs the users; batches, user limits and leases come from other threads
and wake it. The watchdog has its own thread: it times iterations out, and finds the code that
blocks the loop, while the loop is blocked.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import Coroutine, Generator, Sequence
from dataclasses import dataclass
from types import FrameType, coroutine
from typing import Any

from osbench.common.machine.thread_frames import current_frames
from osbench.common.plugin.scenario import VirtualUser
from osbench.common.ports import threads as threading
from osbench.common.ports.clock import monotonic_ns
from osbench.common.protocol.columns import pack_actions
from osbench.worker.engine.body import refuse_awaitable
from osbench.worker.engine.engine import (
    BEGUN,
    FAILED,
    GIVEN_UP,
    NOT_STARTED,
    OK,
    Engine,
    EngineSetup,
    HeldLoop,
    User,
    closed_actions,
)
from osbench.worker.engine.failures import (
    Place,
    awaiting_places,
    place_words,
    places_of,
    reported_error,
)
from osbench.worker.engine.loop.blocking_calls import BlockingCalls
from osbench.worker.engine.loop.loop_recorder import new_loop_recorder
from osbench.worker.engine.loop.loop_thread import LoopThread
from osbench.worker.engine.users.user_plan import pause_ns

LOG = logging.getLogger(__name__)

#: A loop that does not beat for so long counts as blocked, nanoseconds.
BLOCKED_NS = 50_000_000
#: A loop that an iteration blocks for so long after its timeout is given up, nanoseconds.
HELD_NS = 1_000_000_000
#: A user that may not begin yet looks again after so long, nanoseconds.
SHORT_NS = 200_000_000
#: Places that blocked a loop and are counted separately.
PLACES = 50
#: Name of the places beyond.
OTHER_PLACES = "(other places)"


@dataclass(frozen=True, kw_only=True)
class _Sample:
    """The event loop as the watchdog saw it while its beat was late: task and CPU time.

    Meanwhile the watchdog makes one at each interval and compares it with the last.
    """

    #: When the loop should have beaten, and the time of the look, monotonic nanoseconds.
    begin: int
    at: int
    task: asyncio.Task[Any] | None
    #: CPU time of its thread, nanoseconds.
    cpu: int


class TaskUser(User):
    """A virtual user that is a coroutine: a task of the engine's event loop."""

    __slots__ = ("task", "work")

    def __init__(self, number: int, free_ns: int, state: VirtualUser | None = None) -> None:
        super().__init__(number, free_ns, state)
        self.work: Coroutine[Any, Any, None] | None = None
        self.task: asyncio.Task[None] | None = None

    def is_alive(self) -> bool:
        """Return whether the user's task was started and has not ended."""
        return self.task is not None and not self.task.done()

    @property
    def runs(self) -> bool:
        """Return whether the loop is running this coroutine right now; False while it awaits."""
        return bool(getattr(self.work, "cr_running", False))


@coroutine
def let_others_run() -> Generator[None, None, None]:
    """Suspend the calling coroutine once, so that the loop runs all other ready tasks before it."""
    yield


class CoroutineEngine(Engine):
    """Base of engines of closed and open load whose virtual users are coroutines of one loop.

    The event loop runs in a separate thread, which the engine starts.
    """

    LAGS = "lags"

    def __init__(self, setup: EngineSetup) -> None:
        self._loop = LoopThread(setup.body.tell_aside)
        self._calls = BlockingCalls()
        #: All users that have not ended, also the replaced users; the loop keeps no reference to
        #: their tasks.
        self._alive: set[TaskUser] = set()
        #: The user that began an iteration last: one that finds itself here has not let others run.
        self._turn: TaskUser | None = None
        #: Nanoseconds by what the loop was blocked at, and the last sample of that.
        self._blocked: Counter[str] = Counter()
        self._sampled: _Sample | None = None
        #: Time up to which blocked time is counted: no time is counted for two tasks.
        self._counted_ns = 0
        self._held: HeldLoop | None = None
        #: Users that pause, by what wakes them: when nothing starts any more, or they must end.
        self._pausing: dict[asyncio.Future[None], TaskUser] = {}
        super().__init__(setup)

    def _renew(self, user: TaskUser, now: int) -> None:
        """Replace a user whose iteration timed out by a new user with its number.

        The new one is free from `now` on, monotonic ns. Called in the loop's thread, after the old
        user's task was cancelled.
        """
        raise NotImplementedError

    # what the loop is like

    def lags(self) -> list[int]:
        return self._loop.lateness.take()

    def blocked(self) -> list[list[Any]]:
        found, self._blocked = self._blocked, Counter()
        return [[place, lasted] for place, lasted in found.most_common()]

    # users

    def _begin(self, user: TaskUser, work: Coroutine[Any, Any, None]) -> None:
        user.work = work
        user.task = self._loop.loop.create_task(work)
        self._alive.add(user)

    # how users begin and end

    async def _begin_life(self, user: TaskUser) -> bool:
        """Do the same as `ThreadEngine._begin_life`, except for the wait until the user's start."""
        tries = 0
        while not self._is_over(user) and monotonic_ns() < self.stop_ns:
            now = monotonic_ns()
            if user.number < self.user_limit and now < self.lease_ns:
                ended = await self._live(user, BEGUN)
                if ended > NOT_STARTED:
                    user.free_ns = ended
                    return True
                if ended == GIVEN_UP:
                    return False
                tries += 1
                now += pause_ns(tries)
            await self._pause_until(max(now, monotonic_ns() + SHORT_NS), user)
        return False

    async def _live(self, user: TaskUser, kind: int) -> int:
        """Do the same as `ThreadEngine._live`, without blocking the thread."""
        key = self._life_key()
        recorder = new_loop_recorder(self.body.names, self._calls)
        begun = monotonic_ns()
        self.inflight[key] = (user, begun, begun, recorder)
        error: BaseException | None = None
        message = ""
        try:
            returned = self._call_life(kind, user, recorder)
            if inspect.isawaitable(returned):
                returned = await returned
            if returned is not None:
                refuse_awaitable(returned)
        except BaseException as caught:
            if isinstance(caught, GeneratorExit) and not self._is_at(user):
                # the coroutine is closed, and may wait for nothing more
                raise
            error, message = reported_error(caught)
        ended = monotonic_ns()
        self._forks.end_if_child(self._generation, error)
        if self.inflight.pop(key, None) is None:
            # breaks the reference cycle between exception and frame
            error = None
            return GIVEN_UP
        failure = self.body.failures.number(error, message) if error is not None else 0
        error = None
        self._note_life(kind, user, begun, ended, failure)
        return NOT_STARTED if failure else ended

    async def _pause_until(self, at_ns: int, user: TaskUser) -> None:
        """Suspend `user`, which calls this, until `at_ns`, monotonic ns.

        Returns earlier at the stop time, if the engine is closed, or if the number of the user went
        to another worker.
        """
        loop = self._loop.loop
        # timers of a loop are exact to a millisecond: it may be too early
        while not self._is_over(user):
            left_ns = min(at_ns, self.stop_ns) - monotonic_ns()
            if left_ns <= 0:
                return
            over = loop.create_future()
            timer = loop.call_later(left_ns / 1e9, _end_pause, over)
            self._pausing[over] = user
            try:
                await over
            finally:
                del self._pausing[over]
                timer.cancel()

    def _wake_pausing(self, first: int = 0) -> None:
        """Wake users in `_pause_until` from position `first` on, in the loop's thread.

        They check then whether to end.
        """
        for over, user in list(self._pausing.items()):
            if user.number >= first:
                _end_pause(over)

    async def run(self, iteration: int, due: int, user: TaskUser) -> int:  # noqa: PLR0912 - a part would be a call
        """Run one iteration of `user` and append its row; failures of the scenario are recorded.

        `due`: monotonic ns. Returns its end, monotonic ns, or NOT_STARTED: its user is beyond the
        user limit or the load is over, and the number is noted for `returned`; LEASE_OVER: it did
        not start, and the caller must keep the number; GIVEN_UP: it timed out, the watchdog has
        recorded it, and the user must end. Much is as in `ThreadEngine.run`: a common part would be
        a call more for each iteration.
        """
        body = self.body
        recorder = new_loop_recorder(body.names, self._calls)
        started = monotonic_ns()
        self.inflight[iteration] = (user, due, started, recorder)
        # checked after the insertion, so that after a reduction of the limit `inflight` has all
        # iterations that may still start
        if user.number >= self.user_limit or started >= self.until_ns:
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
            scenario = body.instance(iteration, recorder, user.state or self._new_state(user))
            arguments = body.arguments(iteration)
            # a call without ** costs less
            returned = await (
                body.function(scenario, **arguments) if arguments else body.function(scenario)
            )
            ended = monotonic_ns()
            if returned is not None:
                refuse_awaitable(returned)
        except BaseException as caught:
            # SystemExit and the like are failures too
            ended = monotonic_ns()
            if isinstance(caught, GeneratorExit) and not self._is_at(user):
                # the coroutine is closed, and may wait for nothing more
                raise
            error, message = reported_error(caught)
        if self._forks.generation != self._generation:
            self._forks.end_child(error)
        if self.inflight.pop(iteration, None) is None:
            # breaks the reference cycle between exception and frame
            error = None
            return GIVEN_UP
        outcome = OK
        failure = idle = 0
        outputs = extra = None
        if scenario is not None:
            idle, outputs = scenario._idle_ns, scenario._outputs
        exchanges = recorder.exchanges
        if type(exchanges) is bytes and exchanges and outputs is recorder.profiler is None:
            # a single HTTP request, and nothing else: the same, without two calls
            extra = (b"", None, exchanges)
        elif exchanges or outputs is not None or recorder.profiler is not None:
            extra = self._extras(recorder, outputs, error, message)
        if error is not None:
            outcome, failure = FAILED, body.failures.number(error, message)
            error = None
        actions = b""
        if recorder.actions:
            # tasks that the scenario left behind may have open ones
            actions = pack_actions(closed_actions(recorder.actions, ended))
        self.rows.append((iteration, outcome, due, started, ended, idle, failure, actions, extra))
        return ended

    def _running_here(self) -> int:
        if threading.get_ident() != self._loop.ident:
            return 0
        task = asyncio.current_task(self._loop.loop)
        for iteration, (user, *_) in list(self.inflight.items()):
            if isinstance(user, TaskUser) and user.task is task is not None:
                return iteration
        return 0

    def _is_at(self, user: TaskUser) -> bool:
        """Return whether the loop is running this user's task at this moment.

        If so, a GeneratorExit is an exception of the scenario; else the coroutine is being closed.
        """
        return asyncio.current_task(self._loop.loop) is user.task

    # the watchdog

    @property
    def _over(self) -> bool:
        return super()._over and not self._alive and not any(r.is_alive() for r in self.abandoned)

    def _watch_loop(self) -> None:
        super()._watch_loop()
        self._calls.close()
        self._loop.call(self._end)
        self._loop.stop()

    def _end(self) -> None:
        """Called in the loop's thread, after all users have ended."""

    def _check(self) -> None:
        # what has timed out may be found blocking the loop
        self._look_at_loop(monotonic_ns())
        super()._check()
        while self._calls.left:
            self.abandoned.append(self._calls.left.pop())

    def _look_at_loop(self, now: int) -> None:
        """If the loop's beat is late by `BLOCKED_NS`, find which scenario code blocks the loop.

        The watchdog calls it at each interval; `now` is in monotonic ns. If two calls in a row find
        the same beat late in the same task, and the loop computes or sleeps in a blocking call, the
        time is added to the line of code in `blocked`. Time in which the loop waits for a core is
        not added. If the beat is late by `HELD_NS`, calls `_see_held` until that has found a user.
        """
        overdue = self._loop.overdue_ns(now)
        last, self._sampled = self._sampled, None
        if overdue < BLOCKED_NS:
            return
        if overdue > HELD_NS and self._held is None:
            self._see_held()
        sample = _Sample(
            begin=now - overdue,
            at=now,
            task=asyncio.current_task(self._loop.loop),
            cpu=self._loop.cpu_ns(),
        )
        self._sampled = sample
        if last is None or last.begin != sample.begin or last.task is not sample.task:
            return
        # a loop that waits for a core is not blocked by a scenario
        busy = sample.cpu - last.cpu > (now - last.at) // 2
        if busy or self._loop.is_asleep():
            self._blame(now - max(self._counted_ns, sample.begin))
            self._counted_ns = now

    def _blame(self, lasted: int) -> None:
        """Add `lasted` nanoseconds to the line of scenario code that blocks the loop now.

        No effect if no scenario code blocks it. Beyond `PLACES` different lines the time counts as
        `OTHER_PLACES`.
        """
        place = self._blocking_place()
        if place:
            known = place in self._blocked or len(self._blocked) < PLACES
            self._blocked[place if known else OTHER_PLACES] += lasted

    def _see_held(self) -> None:
        """If code of a timed-out user is running in the loop now, add a `HeldLoop` to `abandoned`.

        Also logs an error. The worker process then reports itself as stuck, and gets no more work.
        """
        for one in self.abandoned:
            if isinstance(one, TaskUser) and one.runs:
                self._held = HeldLoop(one)
                self.abandoned.append(self._held)
                LOG.error("an iteration that timed out blocks the event loop")
                return

    def _blocking_place(self) -> str:
        places = _scenario_places(current_frames().get(self._loop.ident))
        return place_words(places, self.body.cls.__module__) if places else ""

    def _stack(self, user: User, frames: dict[int, FrameType]) -> Sequence[Place]:
        assert isinstance(user, TaskUser)
        if user.runs:
            return places_of(frames.get(self._loop.ident))
        return awaiting_places(user.work)

    def _replace(self, user: User, now: int) -> None:
        assert isinstance(user, TaskUser)
        self.abandoned.append(user)
        # An exception is not sent to the loop's thread, as to that of a user: it could be raised
        # in the engine's own code, and lose an iteration of another user.
        self._loop.call(self._exchange, user, now)

    def _exchange(self, user: TaskUser, now: int) -> None:
        assert user.task is not None
        user.task.cancel()
        self._renew(user, now)


def _end_pause(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)


def _scenario_places(frame: FrameType | None) -> list[Place]:
    """Return the stack of the loop's thread, innermost first, without the loop's own frames.

    `frame` is the thread's innermost frame. Empty if it is None, or if no code but the engine's or
    the loop's is running.
    """
    places = places_of(frame)
    while places and _of_loop(places[-1][0]):
        places.pop()
    return places


def _of_loop(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return name.split(".", maxsplit=1)[0] in ("asyncio", "selectors", "threading", "uvloop")
