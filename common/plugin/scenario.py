"""The scenario interface: what one iteration does."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import msgpack

from osbench.common.plugin import atomic

T = TypeVar("T")

#: Longest single sleep: the exception that ends a timed-out iteration cannot interrupt a sleep.
PIECE_S = 1.0

#: Attribute that `configure` leaves on a class or a method.
MARK = "_osbench_scenario"

#: Bytes of packed output an iteration may return.
OUTPUT_LIMIT = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The arguments of `configure`."""

    #: Name in task files; None on a method: `ClassName.method_name`.
    name: str | None
    #: Contexts that this scenario always needs, by name; the task's own override them.
    context: Mapping[str, Any]


def configure(
    name: str | None = None, context: Mapping[str, Any] | None = None
) -> Callable[[T], T]:
    """Mark a `Scenario` class with a `run` method, or one method of a class, as a scenario."""

    def mark(target: T) -> T:
        setattr(target, MARK, Configuration(name=name, context=dict(context or {})))
        return target

    return mark


def pause(sleep_s: float) -> None:
    """Sleep in short steps, so that a timed-out iteration ends soon. Raises ValueError below 0."""
    if sleep_s <= PIECE_S:
        if sleep_s != 0:
            time.sleep(sleep_s)
        return
    end = time.monotonic() + sleep_s
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, PIECE_S))


class Scenario:
    """Base of scenarios. A new instance serves each iteration.

    `context` is what the workload's contexts prepared, narrowed to this iteration, with
    "iteration" (global, from 1), "run" (run id) and "task" ({"uuid"}).
    """

    #: The engine sets these on the instance before the constructor runs; the class holds the
    #: defaults for instances that are created directly, as in a unit test.
    _recorder: atomic.Recorder
    _idle_ns = 0
    _outputs: list[bytes] | None = None

    #: Arguments that name files on the coordinator's host: workers get the text in their place.
    FILES: ClassVar[tuple[str, ...]] = ()

    def __init__(self, context: dict[str, Any]) -> None:
        self.context = context

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        self._recorder = atomic.Recorder(atomic.Names())
        return self

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Prepare this process before the load, outside every timer: imports, connections."""

    def sleep_between(
        self, min_sleep: float, max_sleep: float | None = None, atomic_delay: float = 0.1
    ) -> None:
        """Sleep a random time between two bounds in seconds; it does not count as service time.

        Raises ValueError where 0 <= min_sleep <= max_sleep does not hold. `atomic_delay`
        is accepted for compatibility with Rally and has no effect.
        """
        high = min_sleep if max_sleep is None else max_sleep
        if not 0 <= min_sleep <= high:
            raise ValueError(f"0 <= min_sleep <= max_sleep must hold, got {min_sleep}, {high}")
        begin = time.monotonic_ns()
        with atomic.pause_span(self._recorder):
            pause(random.uniform(min_sleep, high))  # noqa: S311 - load, not secrets
        self._idle_ns += time.monotonic_ns() - begin

    def trace_headers(self) -> dict[str, str]:
        """Headers that attach a request made now to this iteration's trace; {} if not traced.

        Send them only to services of the deployment: one of them is signed with their key.
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

        Raises TypeError where the data cannot be stored (msgpack types only) and ValueError
        where title, chart_plugin or data is missing.
        """
        for kind, item in (("additive", additive), ("complete", complete)):
            if item is None:
                continue
            missing = [key for key in ("title", "chart_plugin", "data") if key not in item]
            if missing:
                raise ValueError(f"{kind} output lacks {', '.join(missing)}")
            packed = msgpack.packb({"kind": kind, "item": dict(item)})
            if self._outputs is None:
                self._outputs = []
            self._outputs.append(packed)
