"""Engine of runners whose own code starts iterations: one thread runs the code.

Each call of `iterate` takes the next granted number and runs it in the calling thread, which the
code may have started, on a virtual user that is free. The code ends by itself, or by LoadOver if
nothing starts any more.
"""

from __future__ import annotations

import ctypes
import logging
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from osbench.common.plugin.atomic import WIDTH
from osbench.common.plugin.scenario import VirtualUser
from osbench.common.plugin.scripted_runner import ScriptedLoad
from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.common.ports.clock import monotonic_ns
from osbench.common.protocol.columns import ACTIONS, EXTRA, Row, pack_actions
from osbench.common.values.outcomes import LifeEvent
from osbench.edges.rally.scripted_iterations import DoneAction, DoneIteration, LoadOver
from osbench.worker.engine.engine import (
    FAILED,
    GIVEN_UP,
    LEASE_OVER,
    NOT_STARTED,
    OK,
    EngineSetup,
    IterationTimeout,
    User,
    closed_actions,
)
from osbench.worker.engine.failures import ENCLOSING, MASKED_CHARS, reported_error
from osbench.worker.engine.granted_numbers import Found, GrantedNumbers, Wait
from osbench.worker.engine.thread_engine import ThreadEngine, ThreadUser, await_injection

LOG = logging.getLogger(__name__)

#: Calls after the end of a load that return at once; later calls return after a pause, seconds.
MOST_REFUSED = 1000
REFUSED_PAUSE_S = 0.1
SCRIPT_ENDED = int(LifeEvent.SCRIPT_ENDED)

ENCLOSING.add(__name__)


class NotedRows(list[Row]):
    """The finished rows of an engine, each also in `noted` by its number.

    The thread that called `iterate` reads its row there and removes it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.noted: dict[int, Row] = {}

    def append(self, row: Row) -> None:
        """Add a row to the list, and to `noted` under its iteration's number."""
        self.noted[row[0]] = row
        super().append(row)


class Turn(ThreadUser):
    """A virtual user for one call of `iterate`: it runs in the thread that called.

    `over` is true when the call has returned: the user is not alive, even if its thread is.
    """

    __slots__ = ("over",)

    def __init__(self, number: int, free_ns: int, state: VirtualUser | None) -> None:
        super().__init__(number, free_ns)
        self.state = state
        self.thread = threading.current_thread()
        self.over = False

    def is_alive(self) -> bool:
        """Return whether the call of `iterate` still runs; its thread may go on after it."""
        return not self.over and self.thread is not None and self.thread.is_alive()


class ScriptedEngine(GrantedNumbers, ThreadEngine):
    """Engine of a runner with own code, which calls `iterate` for each iteration.

    Such a call runs the next iteration number that the coordinator granted and returns its result;
    after the load it raises LoadOver. At most `user_limit` iterations run at once; more calls wait.
    Engine and code share this object: the code sees it as `ScriptedLoad`.
    """

    def __init__(
        self,
        setup: EngineSetup,
        drive: Callable[[ScriptedLoad], None],
        args: Mapping[str, Any] | None = None,
    ) -> None:
        """Create the engine for the runner's code `drive`, which is called once in its own thread.

        `args` are the arguments of the workload.
        """
        self._drive = drive
        self._args = args or {}
        self._begun = False
        #: Numbers of virtual users that have no iteration, and what their scenarios see of them.
        self._free: list[int] = []
        self._made = 0
        #: Calls after the end of the load.
        self._refused = 0
        self._states: dict[int, VirtualUser | None] = {}
        #: Arguments that the code has changed, by iteration: a mapping, and names that it left out.
        self._changed_args: dict[int, tuple[Mapping[str, Any], set[str]]] = {}
        self._when_over: list[Callable[[], None]] = []
        self._expand = setup.body.arguments
        super().__init__(replace(setup, body=replace(setup.body, arguments=self.arguments)))
        self._rows = NotedRows()
        self.rows = self._rows

    # what the runner's code sees

    @property
    def args(self) -> Mapping[str, Any]:
        return self._args

    @property
    def context(self) -> Mapping[str, Any]:
        return self.body.context

    @property
    def over(self) -> bool:
        return self.stopped or monotonic_ns() >= self.stop_ns

    def call_when_over(self, callback: Callable[[], None]) -> None:
        with self._changed:
            self._when_over.append(callback)
        if self.over:
            self._tell_over()

    def tell_aside(self, what: str) -> None:
        self.body.tell_aside(what)

    def iterate(self, args: Mapping[str, Any]) -> DoneIteration:
        self._forks.end_if_child(self._generation)
        if self.over:
            self._refused += 1
            if self._refused > MOST_REFUSED:
                # code that catches even LoadOver would take a core from the next load
                time.sleep(REFUSED_PAUSE_S)
            raise LoadOver("the load is over")
        asked = monotonic_ns()
        turn = self._take_user(asked)
        try:
            row = self._run_next(turn, asked, self._changes(args))
        finally:
            turn.over = True
            self._states[turn.number] = None if turn.injected else turn.state
            with self._changed:
                self._free.append(turn.number)
                self._changed.notify_all()
        return self._done(row)

    # the thread of the runner's code

    @property
    def min_users(self) -> int:
        """Return the number of threads that run the runner's code: 1, or 0 without users."""
        return min(1, self.user_limit)

    def _fill(self) -> None:
        if not self._begun and self.user_limit and self.start_user(0, self._limited_ns):
            self._begun = bool(self._users)
            self._short = False

    def _run_user(self, user: ThreadUser) -> None:
        wait_s = (self.t0_ns - monotonic_ns()) / 1e9
        if wait_s > 0:
            time.sleep(wait_s)
        begun = monotonic_ns()
        error: BaseException | None = None
        message = ""
        try:
            if not self.over:
                self._drive(self)
        except LoadOver:
            pass
        except BaseException as caught:
            LOG.warning("the runner's own code failed", exc_info=True)
            error, message = reported_error(caught)
        self._forks.end_if_child(self._generation, error)
        if not self.over:
            failure = self.body.failures.number(error, message) if error is not None else 0
            kind = SCRIPT_ENDED + (failure > 0)
            number = self._numbers.at(user.number)
            self.life.append((kind, number, begun, monotonic_ns(), failure))
            self.stop(monotonic_ns())
        elif error is not None:
            said = self.body.failures.masked(message[:MASKED_CHARS])
            what = f"{type(error).__name__}: {said}".partition("\n")[0]
            self.tell_aside(f"the runner's own code failed after the load was stopped: {what}")
        error = None
        self.remove_user(user)
        self._request_work()

    def look(self, now: int) -> None:
        if self._when_over and self.over:
            self._tell_over()

    def _tell_over(self) -> None:
        with self._changed:
            callbacks, self._when_over = self._when_over, []
        for callback in callbacks:
            callback()

    # one iteration

    def _take_user(self, asked: int) -> Turn:
        """Wait for a free virtual user and return it, for one call of `iterate`.

        `asked`: time of the call, monotonic ns. The time waited is added to `want_ns`. Raises
        LoadOver if the load ends before.
        """
        wait = Wait(asked, self.stop_ns)
        with self._changed:
            while not self.over:
                if self._free:
                    break
                if self._made < self.user_limit:
                    self._made += 1
                    self._free.append(self._made - 1)
                    break
                wait.waited = True
                self._changed.wait(self._left_s())
            else:
                raise LoadOver("the load is over")
            number = self._free.pop()
            if wait.waited:
                self.want_ns += max(0, monotonic_ns() - wait.begin)
        return Turn(number, asked, self._states.get(number))

    def _run_next(
        self, turn: Turn, asked: int, changes: tuple[Mapping[str, Any], set[str]] | None
    ) -> Row:
        """Wait for a granted number, run its iteration in this thread and return its row.

        `asked`: when `iterate` was called, monotonic ns; the iteration was due then. `changes`: see
        `_changes`. If the iteration does not start, its number goes back to the queue or to the
        coordinator, and the next number is awaited. Raises LoadOver if the load ends before.
        """
        source: Iterator[int] = iter(range(0))
        seq = 0
        while True:
            iteration = next(source, 0)
            if iteration:
                if changes is not None:
                    self._changed_args[iteration] = changes
                ended = self._run_one(iteration, asked, turn)
                self._changed_args.pop(iteration, None)
                if ended > NOT_STARTED or ended == GIVEN_UP:
                    return self._rows.noted.pop(iteration)
                if ended == LEASE_OVER:
                    self._keep(seq, iteration)
            source, seq, _ = self._await_number(turn, asked)

    def _run_one(self, iteration: int, asked: int, turn: Turn) -> int:
        try:
            return self.run(iteration, asked, turn)
        except IterationTimeout:
            await_injection(turn)
            return GIVEN_UP
        except BaseException as error:
            # the runner's code may raise exceptions in its own threads, at any line
            self._end_at_once(iteration, error)
            raise

    def _end_at_once(self, iteration: int, error: BaseException) -> None:
        """Record a running iteration as failed by `error`, which the runner's code raised.

        No effect if the iteration has ended or timed out, and so has a row.
        """
        entry = self.inflight.pop(iteration, None)
        if entry is None:
            return
        _, due, started, recorder = entry
        now = monotonic_ns()
        failure = self.body.failures.number(*reported_error(error))
        actions = pack_actions(closed_actions(recorder.actions, now))
        self.rows.append((iteration, FAILED, due, started, now, 0, failure, actions, None))
        del self._rows.noted[iteration]

    def _await_number(self, turn: Turn, asked: int) -> Found:
        """Wait until an iteration may start; return iterator, batch and due time, as of `_offer`.

        `asked`: time from which `turn` is free, monotonic ns. Raises LoadOver if the load ends
        before.
        """
        wait = Wait(asked, self.stop_ns)
        # until the stop time the code need not have wanted more
        wait.until_stop = False
        with self._changed:
            while not self.over:
                found = self._offer(turn, wait)
                if found is not None:
                    return found
                self._changed.wait(self._left_s())
        raise LoadOver("the load is over")

    def _replace(self, user: User, now: int) -> None:
        assert isinstance(user, Turn) and user.thread is not None
        ident = user.thread.ident
        assert ident is not None
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(ident), ctypes.py_object(IterationTimeout)
        )
        user.injected = True
        self.abandoned.append(user)

    # arguments

    def _changes(self, args: Mapping[str, Any]) -> tuple[Mapping[str, Any], set[str]] | None:
        """Return arguments unlike the workload's, and its names left out there; None if equal."""
        own = self._args
        if args is own:
            return None
        changed = {
            name: value
            for name, value in args.items()
            if name not in own or not (own[name] is value or own[name] == value)
        }
        left_out = own.keys() - args.keys()
        return (changed, set(left_out)) if changed or left_out else None

    def arguments(self, iteration: int) -> dict[str, Any]:
        """Return the keyword arguments of an iteration, with changes of the runner's code.

        {iteration} and {run} in such changed values are not replaced.
        """
        expanded = self._expand(iteration)
        changes = self._changed_args.get(iteration)
        if changes is None:
            return expanded
        changed, left_out = changes
        kept = {name: value for name, value in expanded.items() if name not in left_out}
        return {**kept, **changed}

    # results

    def _done(self, row: Row) -> DoneIteration:
        """Convert a row to the result that `iterate` returns, with wall-clock times and names.

        `error` is (type, message, traceback), () on success; three "" if the texts are not known.
        """
        iteration, outcome, _, started, ended, idle, failure, *_ = row
        began_at = time.time() - monotonic_ns() / 1e9
        error = self.body.failures.texts(failure) if failure else ()
        if outcome != OK and not error:
            error = ("", "", "")
        _, outputs, _ = row[EXTRA] or (b"", None, b"")
        names = self.action_names
        packed = row[ACTIONS]
        flat = array("q", packed) if isinstance(packed, bytes) else packed
        actions = [
            DoneAction(
                name=names[flat[at]],
                parent=flat[at + 1],
                started_at=began_at + flat[at + 2] / 1e9,
                ended_at=began_at + flat[at + 3] / 1e9,
                failed=bool(flat[at + 4]),
            )
            for at in range(0, len(flat) // WIDTH * WIDTH, WIDTH)
        ]
        return DoneIteration(
            number=iteration,
            started_at=began_at + started / 1e9,
            duration_s=(ended - started - idle) / 1e9,
            idle_s=idle / 1e9,
            error=error,
            actions=actions,
            outputs=outputs or (),
        )
