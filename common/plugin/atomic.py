"""Atomic actions: named, timed steps of an iteration, nested as they are called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from osbench.common.ports import threads as threading
from osbench.common.ports.clock import monotonic_ns
from osbench.common.text.escaping import name_of

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="ActionRecording")

#: Integers a recorded action takes: name id, parent position, start ns, end ns, failed (0/1).
WIDTH = 5


#: Name of the span of a pause, which does not count as service time.
PAUSE = "osbench.pause"

_NEW = object.__new__

#: Limit on distinct names; names built from data, such as iteration numbers, are unbounded.
NAMES_LIMIT = 1000
#: Replaces the names beyond the limit.
OTHER = "(other actions)"
#: Characters of a name that are kept.
NAME_CHARS = 500


class Names:
    """Numbers of action names in one process, from 0; result blocks carry the names by number."""

    __slots__ = ("_lock", "ids", "names")

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.names: list[str] = []
        self._lock = threading.Lock()

    def number(self, name: object) -> int:
        """Return the number of an action's name, which is assigned at the first call. Thread-safe.

        Names of all types are converted to escaped text of at most NAME_CHARS characters. After
        NAMES_LIMIT names, new ones get the number of OTHER.
        """
        known = self.ids.get(name) if type(name) is str else None
        if known is None:
            known = self._numbered(name_of(name, NAME_CHARS))
        return known

    def plain(self, name: object) -> str:
        """Return an action's name as a plain, escaped string of at most NAME_CHARS characters."""
        return name if type(name) is str and name in self.ids else name_of(name, NAME_CHARS)

    def _numbered(self, name: str) -> int:
        known = self.ids.get(name)
        if known is None:
            with self._lock:
                known = self.ids.get(name)
                if known is None and len(self.names) >= NAMES_LIMIT:
                    return self._other()
                if known is None:
                    known = len(self.names)
                    # the name first: another thread may look it up as soon as it has the number
                    self.names.append(name)
                    self.ids[name] = known
        return known

    def _other(self) -> int:
        if OTHER not in self.ids:
            self.names.append(OTHER)
            self.ids[OTHER] = len(self.names) - 1
        return self.ids[OTHER]


class UnderWay(Protocol):
    """An HTTP request that has started and not ended; the HTTP client implements it."""

    #: Position of the innermost open action then.
    action: int
    #: The one that was asked for before and had not ended then.
    before: UnderWay | None
    #: It ended before one that was asked for later.
    over: bool

    def packed(self, action: int) -> bytes:
        """Return the record of this request for a result block, with the phases so far.

        `action`: index of its atomic action in the iteration, -1 for none.
        """


class Recorder:
    """Record of one iteration: its atomic actions and HTTP requests, as they happen.

    Actions are a flat list: `WIDTH` integers per action, in order of their start.
    """

    __slots__ = ("actions", "asked", "exchanges", "names", "open", "profiler")

    #: The iteration is a coroutine of an engine's event loop.
    IN_LOOP = False

    def __init__(self, names: Names, profiler: Any = None) -> None:
        self.names = names
        self.actions: list[int] = []
        #: HTTP requests, packed (`osbench.common.protocol.exchanges`).
        self.exchanges: bytes | bytearray = b""
        #: The last HTTP request that has not ended; None without any.
        self.asked: UnderWay | None = None
        #: Position (in actions, not integers) of the innermost open action; -1 at the top.
        self.open = -1
        #: The iteration's OSProfiler profiler, or None when it is not traced.
        self.profiler = profiler

    def open_name(self) -> str:
        """Return the name of the open action that started last; "" if none is open."""
        actions = self.actions
        for at in range(len(actions) // WIDTH * WIDTH - WIDTH, -1, -WIDTH):
            if not actions[at + 3]:
                return self.names.names[actions[at]]
        return ""

    def note_exchange(self, packed: bytes) -> None:
        """Add the packed record of an HTTP request that has ended to `exchanges`."""
        if not self.exchanges:
            self.exchanges = packed
            return
        if isinstance(self.exchanges, bytes):
            self.exchanges = bytearray(self.exchanges)
        self.exchanges += packed

    def ask(self, asked: UnderWay) -> None:
        """Note that the HTTP request `asked` begins, within the action that is open now.

        Sets `asked.action`, and makes it the last request.
        """
        asked.action, asked.before, asked.over = self.open, self.asked, False
        self.asked = asked

    def end_exchange(self, asked: UnderWay) -> None:
        """Note that an HTTP request has ended, well or not; add its record to `exchanges`.

        If it is not the last that began, it is marked as `over`.
        """
        if self.asked is asked:
            self.asked = asked.before
        else:
            asked.over = True
        packed = asked.packed(asked.action)
        if self.exchanges:
            self.note_exchange(packed)
        else:
            self.exchanges = packed

    def exchanges_so_far(self) -> bytes:
        """Return the packed records of all requests so far, also of running ones, joined.

        Called in another thread than the iteration's, when the iteration has timed out.
        """
        packed, asked = [bytes(self.exchanges)], self.asked
        while asked is not None:
            if not asked.over:
                packed.append(asked.packed(asked.action))
            asked = asked.before
        return b"".join(packed)

    async def run_blocking(self, call: Callable[[], Any]) -> Any:
        """Run a blocking call in a thread of asyncio's pool; return its result. Exceptions pass."""
        # not needed by scenarios that block, and slow to import
        import asyncio  # noqa: PLC0415 - see above

        return await asyncio.to_thread(call)


def new_recorder(names: Names) -> Recorder:
    """Return `Recorder(names)` without a profiler, made in half the time, for each iteration."""
    recorder = _NEW(Recorder)
    recorder.names = names
    recorder.actions = []
    recorder.exchanges = b""
    recorder.asked = None
    recorder.open = -1
    recorder.profiler = None
    return recorder


@contextmanager
def pause_span(recorder: Recorder) -> Iterator[None]:
    """Open the trace span `PAUSE` around the block, in which a scenario waits.

    Does nothing unless the iteration is traced.
    """
    profiler = recorder.profiler
    if profiler is None:
        yield
        return
    span = profiler.open(PAUSE)
    try:
        yield
    finally:
        profiler.close(span)


class ActionRecording(Protocol):
    """An object whose atomic actions are recorded: a `Scenario`."""

    _recorder: Recorder


class ActionTimer:
    """Context manager that records and times one atomic action of a scenario.

    >>> with ActionTimer(self, "nova.boot_server"):
    ...     ...
    """

    __slots__ = ("_at", "_name", "_outer", "_recorder", "_span")

    def __init__(self, scenario: ActionRecording, name: str) -> None:
        self._recorder = scenario._recorder
        self._name = name

    def __enter__(self) -> ActionTimer:
        recorder, name = self._recorder, self._name
        if recorder.profiler is not None:
            self._span = recorder.profiler.open(recorder.names.plain(name))
        actions, outer, names = recorder.actions, recorder.open, recorder.names
        self._at = at = len(actions)
        self._outer = outer
        recorder.open = at // WIDTH
        try:
            number = names.ids[name]
        except (KeyError, TypeError):
            # TypeError: it cannot be a key, as a list
            number = names.number(name)
        actions += (number, outer, monotonic_ns(), 0, 0)
        return self

    def __exit__(
        self,
        etype: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        recorder, at = self._recorder, self._at
        actions = recorder.actions
        actions[at + 3] = monotonic_ns()
        recorder.open = self._outer
        if etype is not None:
            actions[at + 4] = 1
        if recorder.profiler is not None:
            recorder.profiler.close(self._span, _failure(etype, error))


def _failure(
    etype: type[BaseException] | None, error: BaseException | None
) -> dict[str, Any] | None:
    if etype is None:
        return None
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - str() of a foreign exception may raise
        message = ""
    return {"etype": etype.__name__, "message": message}


def action_timer(
    name: str,
) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
    """Return a decorator for a scenario's method: each call is recorded as atomic action `name`.

    The method may be `async def`.
    """

    def decorate(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
        if inspect.iscoroutinefunction(method):

            @functools.wraps(method)
            async def awaited(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Any:
                with ActionTimer(self, name):
                    return await method(self, *args, **kwargs)

            return cast("Callable[Concatenate[S, P], R]", awaited)

        @functools.wraps(method)
        def timed(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            with ActionTimer(self, name):
                return method(self, *args, **kwargs)

        return timed

    return decorate
