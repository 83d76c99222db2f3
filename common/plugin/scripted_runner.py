"""Runners whose own code starts iterations: it runs in one process of one worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from osbench.common.plugin.runner import Runner, Step, Totals, split


@dataclass(frozen=True, kw_only=True)
class DoneAction:
    """An atomic action of an iteration; times are seconds since 1970-01-01 UTC."""

    name: str
    #: Position of the enclosing action in the iteration; -1 without one.
    parent: int
    started_at: float
    ended_at: float
    failed: bool


@dataclass(frozen=True, kw_only=True)
class DoneIteration:
    """An iteration that has ended, as the code that started it sees it."""

    number: int
    #: Seconds since 1970-01-01 UTC.
    started_at: float
    #: Without think time, and the think time; seconds.
    duration_s: float
    idle_s: float
    #: Type, message and traceback of the failure; empty if it succeeded.
    error: tuple[str, ...]
    actions: Sequence[DoneAction]
    #: Packed charts.
    outputs: Sequence[bytes]


class LoadOver(SystemExit):
    """The load is over. Ends the thread that would start an iteration.

    Threads end by it without a message, and `except Exception` does not catch it.
    """


class ScriptedLoad(Protocol):
    """The load of one workload in this process, for the code that starts its iterations."""

    @property
    def args(self) -> Mapping[str, Any]:
        """Return the arguments of the scenario."""

    @property
    def context(self) -> Mapping[str, Any]:
        """Return the context of the workload."""

    @property
    def over(self) -> bool:
        """Return whether nothing starts any more."""

    def call_when_over(self, callback: Any) -> None:
        """Call a function without arguments, once, as soon as nothing starts any more."""

    def iterate(self, args: Mapping[str, Any]) -> DoneIteration:
        """Run the next iteration in this thread. Raises LoadOver if nothing starts any more.

        Waits until one may start. Several threads may call this at once.
        """

    def tell_aside(self, what: str) -> None:
        """Report an error outside the iterations."""


class ScriptedRunner(Runner):
    """Base of runners whose own code starts iterations, and decides when the load is over."""

    #: SHA-256, in hex, of the file of the code: workers need the same.
    SOURCE_HASH: ClassVar[str] = ""

    @property
    def concurrency(self) -> int:
        """Return 1: the code itself decides how many iterations run at once, in one process."""
        return 1

    def asked(self) -> Sequence[tuple[float, float]]:
        """Return no load: it is not known beforehand."""
        return ()

    def step(self, elapsed_s: float, totals: Totals, capacity: Sequence[int]) -> Step:
        """Let the code run until it returns, then wait for running iterations."""
        if totals.ended:
            done = totals.settled >= totals.allotted
            return Step(shares=(0,) * len(capacity), stop_s=max(0.0, elapsed_s), done=done)
        return Step(shares=split(self.concurrency, capacity))

    def drive(self, load: ScriptedLoad) -> None:
        """Start iterations, in a worker process, until the load is over.

        Any exception but LoadOver ends the load as failed.
        """
        raise NotImplementedError
