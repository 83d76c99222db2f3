"""The code, arguments and settings of iterations, prepared once per workload, before its load."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, field
from inspect import GEN_CREATED, getgeneratorstate
from typing import TYPE_CHECKING, Any

import msgpack

from osbench.common.plugin.atomic import Names, Recorder
from osbench.common.plugin.scenario import CHECKS, OUTPUT_LIMIT, Scenario, VirtualUser
from osbench.common.protocol.messages import Batch
from osbench.worker.engine.asides import Asides
from osbench.worker.engine.failures import Failures
from osbench.worker.engine.users.user_plan import UserPlan

if TYPE_CHECKING:
    from osbench.worker.tracing.profiling import Tracer

_NEW = object.__new__


@dataclass(frozen=True, kw_only=True)
class Body:
    """Objects that all iterations of a workload in this process share, such as class and arguments.

    Made once, before the load. `failures`, `asides` and `names` are filled during the load.
    """

    cls: type[Scenario]
    #: The method that runs an iteration, unbound.
    function: Callable[..., Any]
    #: It is `async def`: virtual users share an event loop.
    is_coroutine: bool = False
    #: Keyword arguments for an iteration number.
    arguments: Callable[[int], dict[str, Any]]
    #: Takes the rows that come with a batch; None without a data file.
    feed: Callable[[Batch], None] | None = None
    #: The context of every iteration; "iteration" is added to a copy.
    context: dict[str, Any]
    #: Bound of one iteration, nanoseconds; 0 is none.
    timeout_ns: int = 0
    tracer: Tracer | None = None
    users: UserPlan = field(default_factory=UserPlan)
    names: Names = field(default_factory=Names)
    failures: Failures = field(default_factory=Failures)
    asides: Asides = field(default_factory=Asides)

    def tell_aside(self, what: str) -> None:
        """Count an error outside the iterations by its message `what`, in `asides`."""
        self.asides.add(what)

    def mask_failures(self, masked: Callable[[str], str]) -> None:
        """Mask the texts of new failures by `masked` from now on; numbered ones are unchanged."""
        self.failures.masked = masked

    def instance(self, iteration: int, recorder: Recorder, user: VirtualUser) -> Scenario:
        """Return a new scenario object for one iteration of `user`; its actions go to `recorder`.

        The scenario has a copy of the context, with the iteration's number under "iteration": 0 in
        the object that runs `on_start` or `on_stop`. Exceptions of the scenario's constructor are
        not caught.
        """
        scenario: Scenario = _NEW(self.cls)
        scenario._recorder = recorder
        scenario._user = user
        # the class has them, too: an attribute of the object is looked up faster
        scenario._idle_ns = 0
        scenario._outputs = None
        context = self.context.copy()
        context["iteration"] = iteration
        scenario.__init__(context)  # type: ignore[misc]
        return scenario

    def extras(
        self, outputs: list[bytes] | None, trace: bytes, exchanges: bytes | bytearray
    ) -> Any:
        """Return the last column of a row: (trace id, outputs, requests), or None if all are empty.

        Outputs of more than `OUTPUT_LIMIT` bytes in all, or of other types than osbench's, are
        dropped: the iteration counts once in `failures.cut`.
        """
        if outputs is not None:
            outputs = _packed_outputs(outputs)
            if outputs is None:
                self.failures.cut += 1
        if not (trace or outputs or exchanges):
            return None
        # a copy: a thread that the scenario started may still add to them
        return trace, outputs, bytes(exchanges)


def without_loop(function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    """Return a plain function that runs `function`, an `async def` method that never suspends.

    It returns the method's result. If the method suspends after all, as when it needs an event
    loop, the coroutine is closed and RuntimeError raised.
    """

    def called(*args: Any, **kwargs: Any) -> Any:
        work = function(*args, **kwargs)
        try:
            work.send(None)
        except StopIteration as ended:
            return ended.value
        work.close()
        raise RuntimeError(
            f"{function.__qualname__} waits for an event loop; correct THREADS_UP_TO"
        )

    return called


def refuse_awaitable(returned: Any) -> None:
    """Raise TypeError if a scenario's method returned something that waits to be run.

    It is an awaitable, an asynchronous iterable or a generator not yet begun. Such an iteration
    would count as done although its work did not run. A coroutine is closed.
    """
    if isinstance(returned, AsyncGenerator):
        raise TypeError("an `async def` method with `yield` does not run by itself: await instead")
    if isinstance(returned, Generator):
        if getgeneratorstate(returned) == GEN_CREATED:
            raise TypeError(
                "a generator was returned, and its code has not run: write the method without "
                "`yield`, or iterate over the generator"
            )
        return
    if isinstance(returned, Awaitable | AsyncIterable):
        name = type(returned).__name__
        if isinstance(returned, Coroutine):
            # else Python warns that it was never awaited
            returned.close()
        raise TypeError(
            f"a {name} was returned, which does not run by itself: declare the scenario's method "
            "`async def` and await it there"
        )


def _packed_outputs(outputs: Any) -> list[bytes] | None:
    """Return an iteration's outputs, each packed as bytes; None if they cannot be shipped.

    They cannot if they are more than `OUTPUT_LIMIT` bytes in all, or `outputs` is not a list of
    osbench's outputs, such as a scenario's own attribute of that name.
    """
    # a scenario may use an attribute of this name for values that cannot be shipped
    if type(outputs) is not list:
        return None
    packed = [msgpack.packb(part) if _is_checks(part) else part for part in outputs]
    if any(type(part) is not bytes for part in packed) or sum(map(len, packed)) > OUTPUT_LIMIT:
        return None
    return packed


def _is_checks(part: Any) -> bool:
    return type(part) is dict and part.get("kind") == CHECKS
