"""The interface of runners whose own code starts iterations, in one worker process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

from osbench.common.plugin.entry_points import load_object
from osbench.common.plugin.runner import Runner, Step, Totals, split


def scripted_part(name: str) -> Any:
    """Return the class or function for such runners: allocation, dispatcher, engine, faults.

    Raises PluginError if no package provides it.
    """
    return load_object("scripted_load", name)


class ScriptedLoad(Protocol):
    """A workload in this process, as the code of a scripted runner sees and drives it."""

    @property
    def args(self) -> Mapping[str, Any]:
        """Return the arguments of the scenario."""

    @property
    def context(self) -> Mapping[str, Any]:
        """Return the context of the workload: the data that its contexts prepared."""

    @property
    def over(self) -> bool:
        """Return whether no iteration starts any more."""

    def call_when_over(self, callback: Any) -> None:
        """Call `callback` without arguments, once, as soon as no iteration starts any more."""

    def iterate(self, args: Mapping[str, Any]) -> Any:
        """Run the next iteration in this thread, as soon as it may start, and return its result.

        Several threads may call this at once. Raises SystemExit if no iteration starts any more.
        """

    def tell_aside(self, what: str) -> None:
        """Report an error that belongs to no iteration; reports show `what` with its count."""


class ScriptedRunner(Runner):
    """Base class of runners whose own code starts iterations, and decides when the load is over."""

    #: SHA-256, in hex, of the file of the code: workers need the same.
    SOURCE_HASH: ClassVar[str] = ""

    @property
    def concurrency(self) -> int:
        """Return 1, for one worker process: the code decides how many iterations run at once."""
        return 1

    @property
    def timeout_s(self) -> float:
        """Return the timeout of an iteration in seconds; 0, unless given, means none.

        The runner's code may have separate limits.
        """
        return float(self.config.get("timeout", 0) or 0)

    def asked(self) -> Sequence[tuple[float, float]]:
        """Return (): the load is not known beforehand."""
        return ()

    def step(self, elapsed_s: float, totals: Totals, capacity: Sequence[int]) -> Step:
        """Request one worker process until the runner's code has returned, then none.

        The load is done when all iterations so far are settled.
        """
        if totals.ended:
            done = totals.settled >= totals.allotted
            return Step(users=(0,) * len(capacity), stop_s=max(0.0, elapsed_s), done=done)
        return Step(users=split(self.concurrency, capacity))

    def drive(self, load: ScriptedLoad) -> None:
        """Start iterations with `load.iterate` until the load is over; runs in a worker process.

        Subclasses override this. Any exception but that of `iterate` ends the load as failed.
        """
        raise NotImplementedError
