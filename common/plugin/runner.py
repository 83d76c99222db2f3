"""The interface of runners: pure functions from elapsed time to the load to be offered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from osbench.common.config.durations import TIMEOUT_S
from osbench.common.plugin.iteration_rows import IterationRows
from osbench.common.plugin.load_step import Step, Totals

__all__ = ["Capacity", "Runner", "SearchingRunner", "Step", "Totals", "Trial", "split"]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A trial of a search for the capacity: the offered load, and whether it held."""

    #: Arrivals per second; virtual users at once if the runner is closed.
    rate: float
    #: Every criterion was met, and the load was the one asked for.
    held: bool


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """The result of a search for the capacity; `unit` is the unit of its loads."""

    #: "found"; "below": even the lowest load did not hold; "above": the highest that was tried did;
    #: "unfinished": the search was stopped.
    kind: str
    #: The load that holds as often as not, and the interval in which it lies with 95 %; None if
    #: they are unknown: so long as every load held, or none did, there is only a bound.
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    #: The highest load that held, and the lowest one above it that did not; None without one.
    held: float | None = None
    broke: float | None = None
    #: The interval is as narrow as was asked for.
    precise: bool = True
    #: Change of the runner's configuration that would show more: "raise `high`"; "" if there is
    #: none.
    advice: str = ""
    #: "arrivals/s" or "users"; osbench sets it by the kind of runner.
    unit: str = "arrivals/s"


def split(total: int, capacity: Sequence[int]) -> tuple[int, ...]:
    """Split `total` virtual users over workers as evenly as their capacities allow.

    The parts, in the order of `capacity`, sum to min(total, sum(capacity)); no part exceeds its
    capacity.
    """
    parts = [0] * len(capacity)
    left = min(total, sum(capacity))
    while left:
        free = [k for k in range(len(parts)) if parts[k] < capacity[k]]
        base, extra = divmod(left, len(free))
        for rank, k in enumerate(free):
            add = min(base + (rank < extra), capacity[k] - parts[k])
            parts[k] += add
            left -= add
    return tuple(parts)


class Runner:
    """Base class of runners: `step` computes the load from elapsed time and progress only.

    A runner has no clock and makes no connection. The only I/O is to read a file that the
    configuration names (`FILES`).
    """

    #: Name in task files.
    NAME: ClassVar[str] = ""
    #: JSON schema of the runner's configuration.
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {"type": "object"}
    #: True: iterations are due at planned times (open). False: when a virtual user is free.
    OPEN: ClassVar[bool] = False
    #: Keys of the configuration that name files. Paths are relative to the folder of the task
    #: file; the runner gets them absolute.
    FILES: ClassVar[tuple[str, ...]] = ()

    #: Levels of `asked` are stages of the load, and reports have figures of each.
    STAGED: ClassVar[bool] = True

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config

    @classmethod
    def check(cls, config: Mapping[str, Any]) -> list[str]:
        """Return messages on errors that the schema cannot detect; `config` fits the schema.

        [] unless a subclass overrides it.
        """
        return []

    @classmethod
    def notes(cls, config: Mapping[str, Any]) -> list[str]:
        """Return messages on settings in `config` that have no effect; they are not refused.

        [] unless a subclass overrides it.
        """
        return []

    @classmethod
    def settled(cls, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the configuration that a run and its `resume` use, of one with `FILES`.

        A subclass may replace a file by values that it reads from it. `config` is not checked yet;
        if the file cannot be read, it stays, and `check` reports that.
        """
        return config

    @property
    def timeout_s(self) -> float:
        """Return the timeout of an iteration in seconds, `TIMEOUT_S` unless given; 0 means none."""
        return float(self.config.get("timeout", TIMEOUT_S) or 0)

    @property
    def concurrency(self) -> int:
        """Return the number of virtual users; for an open load the most at once, 0 for no limit."""
        return int(self.config.get(*("max_concurrency", 0) if self.OPEN else ("concurrency", 1)))

    @property
    def planned(self) -> int | None:
        """Return the number of iterations of the whole load; None if its duration ends it."""
        return None

    @property
    def lasts_s(self) -> float | None:
        """Return the configured duration, in seconds, during which iterations start, or None."""
        return None

    @property
    def planned_s(self) -> float | None:
        """Return for how many seconds iterations start: configured, or by number and rate.

        None if that is not known before the load.
        """
        return self.lasts_s

    @property
    def ramp_up_s(self) -> float:
        """Return the seconds over which a closed runner starts its virtual users.

        0 if all start at once.
        """
        return 0.0

    def rows(self, key: bytes | None = None) -> IterationRows | None:
        """Return the rows of arguments by iteration number; None if the runner has none.

        `key` encrypts them in batches; None creates a new one.
        """
        return None

    def users(self, elapsed_s: float) -> int:
        """Return the number of virtual users that a closed runner requests `elapsed_s` after t0."""
        return self.concurrency

    def asked(self) -> Sequence[tuple[float, float]]:
        """Return the requested load over time, for charts: points to be joined by straight lines.

        Each has seconds after t0, and virtual users (closed) or arrivals per second (open) from
        then on; the last value holds until the load ends. Empty: not known beforehand.
        """
        if self.OPEN:
            return ()
        users = float(self.concurrency)
        return ((0.0, 0.0), (self.ramp_up_s, users)) if self.ramp_up_s else ((0.0, users),)

    def step(self, elapsed_s: float, totals: Totals, capacity: Sequence[int]) -> Step:
        """Return the load to be offered at `elapsed_s` seconds after t0 (negative before it).

        Subclasses override this; the result depends on the arguments only. `capacity` is the number
        of virtual users that each worker of the load can run.
        """
        raise NotImplementedError


class SearchingRunner(Runner):
    """Base class of runners that search for the highest load that the SLA criteria allow.

    The load is a rate of arrivals if the runner is open, else a number of virtual users; a closed
    one gives the most of them as `concurrency`. Between two trials no load is requested until every
    iteration of the first has ended. A trial holds a load for `settle_s`, of which nothing counts,
    and `hold_s`, which is judged.
    """

    OPEN: ClassVar[bool] = True

    @property
    def settle_s(self) -> float:
        """Return the seconds at the beginning of a trial that do not count; 0 unless overridden."""
        return 0.0

    @property
    def hold_s(self) -> float:
        """Return the seconds of a trial whose iterations are judged; subclasses override this."""
        raise NotImplementedError

    @property
    def unit(self) -> str:
        """Return the unit of loads: "arrivals/s", or "users" if the runner is closed."""
        return "arrivals/s" if self.OPEN else "users"

    @property
    def most_rate(self) -> float | None:
        """Return the highest load to try; None: not known beforehand."""
        return None

    def next_rate(self, trials: Sequence[Trial]) -> float | None:
        """Return the load of the next trial; None ends the search.

        `trials`: all trials so far, first to last. Subclasses override this.
        """
        raise NotImplementedError

    def found(self, trials: Sequence[Trial]) -> Capacity:
        """Return the result of the search from all `trials`, first to last.

        Subclasses override this.
        """
        raise NotImplementedError

    def users(self, elapsed_s: float) -> int:
        """Return 0: there are no virtual users before the first trial."""
        return 0

    def asked(self) -> Sequence[tuple[float, float]]:
        """Return (): the load is not known beforehand."""
        return ()

    def step(self, elapsed_s: float, totals: Totals, capacity: Sequence[int]) -> Step:
        """Return a step without load: the load of a search comes from `next_rate` instead."""
        return Step(users=None if self.OPEN else split(0, capacity))
