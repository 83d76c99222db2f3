"""The interface of scenarios: the work of an iteration."""

from __future__ import annotations

import inspect
import random
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, ParamSpec, Self, TypeVar, cast

from osbench.common.plugin import atomic
from osbench.common.plugin.output_values import pack_output
from osbench.common.ports import clock as time
from osbench.common.text.escaping import name_of

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")

#: Longest single sleep: the exception that ends a timed-out iteration cannot interrupt a sleep.
PIECE_S = 1.0

#: Most virtual users of a worker process that are coroutines: with many more their event loop
#: keeps the interpreter's lock from the thread that sends heartbeats.
MOST_COROUTINES = 100_000

#: Attribute that `configure` leaves on a class or a method.
MARK = "_osbench_scenario"

#: Key of the context in a worker: a function that reports an error of no iteration by its message.
TELL_KEY = "tell_aside"

#: The kind of output that soft checks are: {name: [how often it held, how often not]}.
CHECKS = "checks"

#: Characters of a check's name that are kept.
CHECK_CHARS = 300

#: Bytes of packed output an iteration may return.
OUTPUT_LIMIT = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Arguments of `configure`, stored on the class or method that it marks as a scenario."""

    #: Name in task files; None on a method: `ClassName.method_name`.
    name: str | None
    #: Contexts that this scenario always needs, by name; the task's own override them.
    context: Mapping[str, Any]


def configure(
    name: str | None = None, context: Mapping[str, Any] | None = None
) -> Callable[[T], T]:
    """Return a decorator that marks a `Scenario` class with a `run` method, or one method.

    `name` in task files is `Class.method` if None. `context`: contexts the scenario always needs,
    with their configuration.
    """

    def mark(target: T) -> T:
        setattr(target, MARK, Configuration(name=name, context=dict(context or {})))
        return target

    return mark


def pause(sleep_s: float) -> None:
    """Sleep for `sleep_s` seconds, in steps of at most PIECE_S, so that a timeout can interrupt it.

    Raises ValueError below 0.
    """
    if sleep_s <= PIECE_S:
        if sleep_s != 0:
            time.sleep(sleep_s)
        return
    end = time.monotonic() + sleep_s
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, PIECE_S))


def _random_sleep_s(min_sleep: float, max_sleep: float | None) -> float:
    high = min_sleep if max_sleep is None else max_sleep
    if not 0 <= min_sleep <= high:
        raise ValueError(f"expected 0 <= min_sleep <= max_sleep, got {min_sleep} and {high}")
    return random.uniform(min_sleep, high)  # noqa: S311 - load, not secrets


class UserData(dict[str, Any]):
    """The row of a virtual user's data file, by column; empty without a file.

    A missing column raises KeyError with a message on the columns that there are.
    """

    def __missing__(self, column: str) -> NoReturn:
        """Raise KeyError with a message on the columns that there are."""
        if self:
            raise KeyError(
                f"the data file of users has no column {column!r}, only {', '.join(self)}"
            )
        raise KeyError(f"no column {column!r}: the workload has no data file of users (users.data)")


#: The row of a user without a data file.
NO_DATA: Mapping[str, Any] = MappingProxyType(UserData())


class VirtualUser:
    """A virtual user, as scenarios see it in `self.user`; they may set any further attribute on it.

    It lives as long as the virtual user does. If an iteration times out, a new one with the same
    number and no attributes replaces it.
    """

    def __init__(
        self,
        number: int = 1,
        data: Mapping[str, Any] = NO_DATA,
        open_http: Callable[[VirtualUser], Any] | None = None,
    ) -> None:
        #: From 1; no other user that runs now has it, on any worker.
        self.number = number
        #: Its row of the data file of `users`, by column; empty without one.
        self.data = data
        #: Values by name that messages on its requests do not show, such as tokens.
        self.hidden: dict[str, str] = {}
        self._open_http = open_http
        self._http: Any = None

    def http(self) -> Any:
        """Return the virtual user's HTTP session, which the first call opens.

        Scenarios use `self.http`, which also knows the iteration. Raises RuntimeError outside a
        worker.
        """
        if self._http is None:
            if self._open_http is None:
                raise RuntimeError("self.http needs a virtual user of a worker: there is none here")
            self._http = self._open_http(self)
        return self._http


class _Over:
    """An awaitable that returns None at once."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


_OVER = _Over()


class Scenario:
    """Base class of scenarios. A new instance serves each iteration.

    `context` is the data that the workload's contexts prepared, narrowed to this iteration, with
    "iteration" (global, from 1), "run" (run id) and "task" ({"uuid"}).
    """

    #: The engine sets these on the instance before the constructor runs; the class holds the
    #: defaults for instances that are created directly, as in a unit test.
    _recorder: atomic.Recorder
    _user: VirtualUser
    _idle_ns = 0
    _outputs: list[Any] | None = None
    #: How often each soft check held, and how often it did not; None without any.
    _checks: dict[str, list[int]] | None = None

    #: Arguments that name files on the coordinator's host, or have several, as a list or as a
    #: mapping: workers get the text in their place, or a mapping of texts.
    FILES: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def check_files(cls, texts: Mapping[str, Any], args: Mapping[str, Any]) -> list[str]:
        """Return messages on errors in files in `FILES`; `texts` has their contents by argument.

        [] unless a subclass overrides it.
        """
        return []

    #: JSON schema of the arguments, by the name of the method; those without one have none.
    ARGUMENTS: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    #: Placeholders that it fills in itself, in addition to {iteration} and {run}.
    FILLED: ClassVar[frozenset[str]] = frozenset()

    #: Up to so many virtual users of a process are threads although the method is `async def`: for
    #: methods that never wait for a loop if there is none (`in_loop`).
    THREADS_UP_TO: ClassVar[int] = 0
    #: Modules that worker processes import to run the scenario. In local mode they share them.
    WORKER_MODULES: ClassVar[Sequence[str]] = ()

    def __init__(self, context: dict[str, Any]) -> None:
        self.context = context

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        self._recorder = atomic.Recorder(atomic.Names())
        self._user = VirtualUser()
        return self

    def on_start(self) -> Any:
        """Begin a virtual user, once, before its first iteration: log in, for example.

        Does nothing unless it is overridden. It belongs to no iteration and is timed separately. If
        it fails, reports show that, and it is called again after 1, 2, 4 s and so on, at most 30 s.
        `async def` if the scenario is. `self` is not the object of an iteration: keep values on
        `self.user`.
        """

    def on_stop(self) -> Any:
        """End a virtual user that has started, once, after its last iteration.

        Does nothing unless it is overridden. `async def` if the scenario is.
        """

    @property
    def user(self) -> VirtualUser:
        """Return the virtual user; attributes that are set on it stay for its next iterations."""
        return self._user

    @property
    def http(self) -> Any:
        """Return the HTTP session of the virtual user: `self.http.get("/items/3", expect=200)`.

        Requests count for this iteration. In an `async def` scenario its methods are awaited.
        Raises RuntimeError outside a worker.
        """
        return self._user.http().serve(self)

    def one_of(self, parts: Mapping[Callable[[], R], float]) -> R:
        """Call a method that is drawn by its weight: `self.one_of({self.look: 3, self.buy: 1})`.

        The call is an atomic action with the method's name. Returns the method's result; the caller
        awaits it if the method is `async def`. Raises ValueError if a weight is below 0 or none is
        above, and TypeError if something other than a method is drawn.
        """
        weights = list(parts.values())
        if min(weights, default=0) < 0 or not sum(weights):
            raise ValueError(f"weights must be 0 or more, and at least one above 0; got {weights}")
        (part,) = random.choices(list(parts), weights)  # noqa: S311 - load, not secrets
        name = getattr(part, "__name__", None)
        if name is None:
            raise TypeError(
                f"one_of needs methods, such as {{self.look: 3}} without (); got {part!r}"
            )
        if inspect.iscoroutinefunction(part):
            return cast("R", self._awaited_part(name, part))
        with atomic.ActionTimer(self, name):
            return part()

    async def _awaited_part(self, name: str, part: Callable[[], Any]) -> Any:
        with atomic.ActionTimer(self, name):
            return await part()

    def verify(self, name: str, holds: object) -> bool:
        """Count a soft check, which does not fail the iteration; return whether it holds.

        Reports show how often each check held, by name; the criterion `checks` judges it. A name
        that is not a plain string is converted to one.
        """
        if self._checks is None:
            self._checks = {}
            # packed when the iteration is over
            self._outputs = [*(self._outputs or ()), {"kind": CHECKS, "item": self._checks}]
        counts = self._checks.get(name) if type(name) is str else None
        if counts is None:
            # others could not be packed, and would take the outputs of the iteration with them
            counts = self._checks.setdefault(name_of(name, CHECK_CHARS), [0, 0])
        counts[0 if holds else 1] += 1
        return bool(holds)

    @property
    def in_loop(self) -> bool:
        """Return whether the iteration runs in an event loop, which must not be blocked."""
        return self._recorder.IN_LOOP

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Prepare a worker process before the load, untimed: import modules, open connections.

        Called for each workload, whose `context` it may change. Does nothing unless it is
        overridden.
        """

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return messages on errors in arguments that fit the signature of `method`.

        [] unless a subclass overrides it. Called before a run; it makes no connection. `args` may
        be a part of the arguments: the task's, or a row's of its data file. In texts {iteration}
        and {run} are not filled in yet.
        """
        return []

    @classmethod
    def check_user_data(
        cls, method: str, args: Mapping[str, Any], columns: Collection[str]
    ) -> list[str]:
        """Return messages on errors in arguments that name columns of the virtual users' data file.

        [] unless a subclass overrides it. `columns`: all columns of the file; empty without a file.
        """
        return []

    @classmethod
    def check_branches(
        cls, method: str, args: Mapping[str, Any], names: Collection[str]
    ) -> list[str]:
        """Return messages on arguments that do not fit the values `names` of the argument `branch`.

        [] unless a subclass overrides it. Called for the runner `replay`, whose file has these
        values.
        """
        return []

    @classmethod
    def action_names(cls, method: str, args: Mapping[str, Any]) -> Collection[str] | None:
        """Return the names that atomic actions of `method` may have, each without enclosing names.

        None, the default, if they are unknown before the load. SLA criteria on other actions are
        refused.
        """
        return None

    @classmethod
    def check_without_base(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return messages on errors in arguments if `http` has no base URL or service.

        [] unless a subclass overrides it.
        """
        return []

    def sleep_between(
        self, min_sleep: float, max_sleep: float | None = None, atomic_delay: float = 0.1
    ) -> None:
        """Sleep a random time between two bounds in seconds; it does not count as service time.

        Raises ValueError if 0 <= min_sleep <= max_sleep does not hold, and RuntimeError in an event
        loop, as of an `async def` scenario, which has `think`. `atomic_delay` is accepted for
        compatibility with Rally and has no effect.
        """
        sleep_s = _random_sleep_s(min_sleep, max_sleep)
        if self.in_loop:
            raise RuntimeError("sleep_between stops all virtual users: use `await self.think(...)`")
        begin = time.monotonic_ns()
        with atomic.pause_span(self._recorder):
            pause(sleep_s)
        self._idle_ns += time.monotonic_ns() - begin

    def think(self, min_sleep: float, max_sleep: float | None = None) -> Awaitable[None]:
        """Wait like a user who reads or types: `sleep_between` for scenarios of both kinds.

        An `async def` scenario awaits the result, and others run meanwhile; in others it has waited
        when it returns. Raises ValueError if 0 <= min_sleep <= max_sleep does not hold.
        """
        if self.in_loop:
            return self._think(_random_sleep_s(min_sleep, max_sleep))
        self.sleep_between(min_sleep, max_sleep)
        return _OVER

    async def _think(self, sleep_s: float) -> None:
        # not needed by scenarios that block, and slow to import
        import asyncio  # noqa: PLC0415 - see above

        begin = time.monotonic_ns()
        with atomic.pause_span(self._recorder):
            await asyncio.sleep(sleep_s)
        self._idle_ns += time.monotonic_ns() - begin

    async def run_blocking(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a blocking function from an `async def` scenario and return its result.

        Other virtual users run meanwhile. It runs in a thread, in a copy of the caller's context;
        its exceptions pass. A call cannot be interrupted: give it a separate time limit.
        """
        result: R = await self._recorder.run_blocking(partial(function, *args, **kwargs))
        return result

    def trace_headers(self) -> dict[str, str]:
        """Return headers that attach a request to this iteration's trace; {} if not traced.

        Send them only to services of the deployment: a header is signed with their key.
        """
        profiler = self._recorder.profiler
        headers: dict[str, str] = profiler.trace_headers() if profiler is not None else {}
        return headers

    def add_output(
        self,
        additive: Mapping[str, Any] | None = None,
        complete: Mapping[str, Any] | None = None,
    ) -> None:
        """Add chart data to this iteration's result: Rally's `additive` and `complete` items.

        Values need not be plain: see `pack_output`. Raises TypeError for data that cannot be
        packed, and ValueError if title, chart_plugin or data is missing.
        """
        for kind, item in (("additive", additive), ("complete", complete)):
            if item is None:
                continue
            missing = [key for key in ("title", "chart_plugin", "data") if key not in item]
            if missing:
                raise ValueError(
                    f"{kind} output lacks {', '.join(missing)}; give title, chart_plugin and data"
                )
            if self._outputs is None:
                self._outputs = []
            self._outputs.append(pack_output(kind, item))
