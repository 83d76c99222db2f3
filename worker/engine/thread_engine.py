"""Virtual users that are threads: for scenarios that block, as OpenStack clients do."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Sequence
from types import FrameType

from osbench.common.plugin.atomic import new_recorder
from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.common.ports.clock import monotonic_ns
from osbench.common.protocol.columns import pack_actions
from osbench.worker.engine.body import refuse_awaitable
from osbench.worker.engine.engine import (
    BEGUN,
    ENDED,
    FAILED,
    GIVEN_UP,
    NOT_STARTED,
    OK,
    Engine,
    EngineSetup,
    IterationTimeout,
    User,
    closed_actions,
)
from osbench.worker.engine.failures import Place, places_of, reported_error
from osbench.worker.engine.users.user_plan import pause_ns

LOG = logging.getLogger(__name__)

#: Users that pause notice after so long that the load is over, nanoseconds.
SHORT_NS = 500_000_000


class ThreadUser(User):
    """A virtual user that is a thread, or runs in one."""

    __slots__ = ("injected", "thread")

    def __init__(self, number: int, free_ns: int) -> None:
        super().__init__(number, free_ns)
        self.thread: threading.Thread | None = None
        #: Set after an exception was sent to the thread. The thread must not end before, because
        #: its identity could be reused by another thread. A plain flag, because an exception
        #: inside an Event or a lock may leave it locked for ever.
        self.injected = False


class ThreadEngine(Engine):
    """Base of the engines whose virtual users are threads: closed, open and scripted.

    A thread whose iteration timed out gets IterationTimeout. In closed and open loads it then ends,
    and another thread takes its place.
    """

    def __init__(self, setup: EngineSetup) -> None:
        self._users: dict[int, ThreadUser] = {}
        self._users_lock = threading.Lock()
        #: The system had no thread for a user.
        self._short = False
        super().__init__(setup)

    def serve(self, user: ThreadUser) -> None:
        """Run iterations one after another as `user`, in this thread, until the user must end.

        It must end if the engine is closed or its iteration timed out; of open loads also if it is
        beyond the user limit.
        """
        raise NotImplementedError

    @property
    def min_users(self) -> int:
        """Return the number of users that must exist even without work: the user limit."""
        return self.user_limit

    def _fill(self) -> None:
        """Stops at the first without a system thread; the watchdog tries again later."""
        for number in range(self.min_users):
            if number not in self._users and not self.start_user(number, self._free_at(number)):
                return
        self._short = False

    def start_user(self, number: int, free_ns: int) -> bool:
        """Start the thread of user `number`, free from `free_ns` (monotonic).

        Returns False if the system has no thread; the first of several such failures is logged.
        Returns True without effect if the user exists, is beyond the user limit, or the engine is
        closed.
        """
        with self._users_lock:
            if number in self._users or number >= self.user_limit or self.stopped:
                return True
            user = ThreadUser(number, free_ns)
            user.thread = threading.Thread(
                target=self._run_user, args=(user,), name=f"user-{number}", daemon=True
            )
            self._users[number] = user
            try:
                user.thread.start()
            except RuntimeError as error:
                del self._users[number]
                if not self._short:
                    LOG.error("virtual user %d of %d: %s", number + 1, self.user_limit, error)
                self._short = True
                return False
        return True

    def remove_user(self, user: ThreadUser) -> None:
        """Remove `user`, which ends or timed out, unless another user has its number by now."""
        with self._users_lock:
            if self._users.get(user.number) is user:
                del self._users[user.number]

    def _run_user(self, user: ThreadUser) -> None:
        try:
            if not self.body.users.has_life:
                self.serve(user)
            elif self._begin_life(user):
                self.serve(user)
                self._end_life(user)
        except IterationTimeout:
            await_injection(user)
        finally:
            self.remove_user(user)

    # how users begin and end

    def await_start(self, user: ThreadUser) -> None:
        """Wait until `user` may begin; here not at all. Engines of closed load wait for t0."""

    def _begin_life(self, user: ThreadUser) -> bool:
        """Run `on_start` of `user` until it succeeds; return whether it did.

        Waits for the user's start (`await_start`), and while it is beyond the user limit or the
        lease (permission to start) is over. After a failure, which is recorded, tries again after
        1 s, then 2 s and so on up to 30 s. At success sets `user.free_ns` to its end. False, and
        the user must end, if the load is over, `on_start` timed out, or its number went elsewhere.
        """
        self.await_start(user)
        tries = 0
        while not self._is_over(user) and monotonic_ns() < self.stop_ns:
            now = monotonic_ns()
            if user.number < self.user_limit and now < self.lease_ns:
                ended = self._live(user, BEGUN)
                if ended > NOT_STARTED:
                    user.free_ns = ended
                    return True
                if ended == GIVEN_UP:
                    return False
                tries += 1
                now += pause_ns(tries)
            self.pause_until(max(now, monotonic_ns() + SHORT_NS), user)
        return False

    def _end_life(self, user: ThreadUser) -> None:
        if user.number in self.living and self._users.get(user.number) is user:
            self._live(user, ENDED)

    def _live(self, user: ThreadUser, kind: int) -> int:
        """Run `on_start` (`kind` BEGUN) or `on_stop` (ENDED) of `user`; record times and failure.

        Returns its end, monotonic ns, or NOT_STARTED if it failed. If it timed out, returns
        GIVEN_UP or raises IterationTimeout: the user must end. Other exceptions are not raised.
        """
        key = self._life_key()
        recorder = new_recorder(self.body.names)
        begun = monotonic_ns()
        self.inflight[key] = (user, begun, begun, recorder)
        error: BaseException | None = None
        message = ""
        try:
            returned = self._call_life(kind, user, recorder)
            if returned is not None:
                refuse_awaitable(returned)
        except BaseException as caught:  # noqa: BLE001 - SystemExit and the like are failures too
            error, message = reported_error(caught)
        ended = monotonic_ns()
        self._forks.end_if_child(self._generation, error)
        if self.inflight.pop(key, None) is None:
            # breaks the reference cycle between exception and frame
            error = None
            await_injection(user)
            return GIVEN_UP
        failure = self.body.failures.number(error, message) if error is not None else 0
        error = None
        self._note_life(kind, user, begun, ended, failure)
        return NOT_STARTED if failure else ended

    def pause_until(self, at_ns: int, user: ThreadUser) -> None:
        """Sleep in the thread of `user` until `at_ns`, monotonic.

        Returns earlier at the stop time, or within `SHORT_NS` after the engine is closed or the
        number of the user went to another worker.
        """
        while not self._is_over(user):
            left = min(at_ns, self.stop_ns) - monotonic_ns()
            if left <= 0:
                return
            time.sleep(min(left, SHORT_NS) / 1e9)

    @property
    def users(self) -> int:
        return len(self._users)

    def run(self, iteration: int, due: int, user: ThreadUser) -> int:
        """Run one iteration of `user` and append its row; failures of the scenario are recorded.

        `due`: monotonic ns. Returns its end, monotonic ns, or NOT_STARTED: its user is beyond the
        user limit or the load is over, and the number is noted for `returned`; LEASE_OVER: it did
        not start, and the caller must keep the number. If it timed out, the watchdog has recorded
        it: raises IterationTimeout or returns GIVEN_UP, and the user must end.
        """
        body = self.body
        recorder = new_recorder(body.names)
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
            returned = (
                body.function(scenario, **arguments) if arguments else body.function(scenario)
            )
            ended = monotonic_ns()
            if returned is not None:
                refuse_awaitable(returned)
        except BaseException as caught:  # noqa: BLE001 - SystemExit and the like are failures too
            ended = monotonic_ns()
            error, message = reported_error(caught)
        if self._forks.generation != self._generation:
            self._forks.end_child(error)
        if self.inflight.pop(iteration, None) is None:
            # breaks the reference cycle between exception and frame
            error = None
            await_injection(user)
            return GIVEN_UP
        outcome = OK
        failure = idle = 0
        outputs = extra = None
        if scenario is not None:
            idle, outputs = scenario._idle_ns, scenario._outputs
        if outputs is not None or recorder.profiler is not None or recorder.exchanges:
            extra = self._extras(recorder, outputs, error, message)
        if error is not None:
            outcome, failure = FAILED, body.failures.number(error, message)
            error = None
        actions = b""
        if recorder.actions:
            # packed, so that the garbage collector does not traverse every row
            done = recorder.actions
            actions = pack_actions(done if recorder.open < 0 else closed_actions(done, ended))
        self.rows.append((iteration, outcome, due, started, ended, idle, failure, actions, extra))
        return ended

    def _running_here(self) -> int:
        here = threading.current_thread()
        for iteration, (user, *_) in list(self.inflight.items()):
            if isinstance(user, ThreadUser) and user.thread is here:
                return iteration
        return 0

    def _notify(self) -> None:
        self._changed.notify_all()

    def _check(self) -> None:
        super()._check()
        if self._short:
            self._fill()

    def _withdraw(self, iteration: int, user: User, started: int) -> int:
        found = super()._withdraw(iteration, user, started)
        if found == GIVEN_UP:
            assert isinstance(user, ThreadUser)
            await_injection(user)
        return found

    def _stack(self, user: User, frames: dict[int, FrameType]) -> Sequence[Place]:
        assert isinstance(user, ThreadUser) and user.thread is not None
        return places_of(frames.get(user.thread.ident or 0))

    def _replace(self, user: User, now: int) -> None:
        assert isinstance(user, ThreadUser) and user.thread is not None
        thread = user.thread
        assert thread.ident is not None
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident), ctypes.py_object(IterationTimeout)
        )
        user.injected = True
        self.abandoned.append(thread)
        self.remove_user(user)
        self.start_user(user.number, now)


def await_injection(user: ThreadUser) -> None:
    """Wait in a user's thread until the watchdog has sent IterationTimeout, which is raised here.

    Otherwise it would be raised at a random line of the clean-up. Returns if it was raised before.
    """
    while not user.injected:
        time.sleep(0.001)
    # a thread checks for exceptions sent to it when it acquires the interpreter's lock
    time.sleep(0)
