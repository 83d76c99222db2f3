"""Figures of a drill (a fault caused under load): the load before, during and after the fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Bounds of a 95 % interval; an upper bound that is not known is None.
Bounds = tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class LeftKind:
    """Resources of one kind that were in error, or still changing, after the load of a drill."""

    #: In the plural.
    kind: str = ""
    in_error: int = 0
    changing: int = 0
    #: Number of both by state, as the service reports it.
    states: Mapping[str, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of resources in error or changing."""
        return self.in_error + self.changing


@dataclass(frozen=True, kw_only=True)
class LeftFigures:
    """Resources of a drill that were in error, or still changing, before they were removed."""

    #: Kinds that were listed, also without such resources.
    kinds: tuple[LeftKind, ...] = ()
    #: Kinds that could not be listed, and why.
    unlisted: Mapping[str, str] = field(default_factory=dict)
    #: Seconds from the begin of the search for which changes were awaited.
    waited_s: float = 0.0
    #: Reason if the search was broken off; else "".
    problem: str = ""
    #: Reason why some are in no phase although their iteration is of one; else "".
    unplaced: str = ""

    @property
    def count(self) -> int:
        """Number of resources in error or changing."""
        return sum(one.count for one in self.kinds)

    @property
    def doubt(self) -> str:
        """Reason why `count` may lack some; "" if it is exact."""
        return self.problem or "; ".join(
            f"{kind} could not be listed: {why}" for kind, why in self.unlisted.items()
        )


@dataclass(frozen=True, kw_only=True)
class PhaseFigures:
    """Figures of one phase of a drill: before, fault or after.

    Iterations that ran when the fault began count as `fault`.
    """

    #: before, fault or after.
    name: str = ""
    #: Seconds after t0; the last phase ends with the last iteration that was scheduled.
    from_s: float = 0.0
    to_s: float = 0.0
    ok: int = 0
    failed: int = 0
    timed_out: int = 0
    dropped: int = 0
    #: Failed, timed out and dropped iterations as a share of all, with its interval; None of none.
    bad_share: float | None = None
    bad_ci: Bounds | None = None
    #: Iterations of the phase that ended well, per second of it.
    ok_per_s: float | None = None
    #: Response times of those, seconds, and their intervals by percentile.
    p50_s: float | None = None
    p90_s: float | None = None
    p99_s: float | None = None
    ci: Mapping[str, Bounds | None] = field(default_factory=dict)
    #: Resources in error or changing that iterations of the phase created, by kind.
    left: Mapping[str, int] = field(default_factory=dict)
    #: Share of its iterations that created some, with its interval; None if not all are known.
    leaving_share: float | None = None
    leaving_ci: Bounds | None = None

    @property
    def bad(self) -> int:
        """Number of iterations that failed, timed out or were dropped."""
        return self.failed + self.timed_out + self.dropped

    @property
    def count(self) -> int:
        """Number of iterations of the phase: successful and bad ones."""
        return self.ok + self.bad


@dataclass(frozen=True, kw_only=True)
class SlowLimit:
    """The limit above which a percentile of response times is not as before the fault."""

    #: 0 to 100.
    percent: float = 0.0
    #: The percentile before the fault, and its limit, seconds: the highest of the upper bound of
    #: its interval, its spread between short blocks of time, and a tenth more than it.
    before_s: float = 0.0
    limit_s: float = 0.0
    #: Seconds that it has to be exceeded for by every iteration to be seen.
    unseen_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class DrillFigures:
    """Figures of a drill: phases, bad iterations since the fault began, and time to recover."""

    #: Instants at which the hooks fired that begin the phases `fault` and `after`, seconds after
    #: t0; None if they did not, or if none was asked for.
    fault_s: float | None = None
    after_s: float | None = None
    phases: tuple[PhaseFigures, ...] = ()
    #: Failed, timed out and dropped iterations from the fault on.
    bad: int = 0
    #: How many more that are than at the share of `before`, with the interval.
    bad_beyond: float | None = None
    bad_beyond_ci: Bounds | None = None
    #: Seconds from the fault until failures and response times are as before and stay so, with the
    #: interval; None if they did not, or if that is not known: `doubt` says why.
    recovery_s: float | None = None
    recovery_ci: Bounds | None = None
    doubt: str = ""
    #: Reason why the drill is not valid, "" if it is: a hook has failed, or has not fired.
    problem: str = ""
    #: Limits above which a percentile of response times is not as before.
    limits: tuple[SlowLimit, ...] = ()
    #: Seconds that an outage of all requests has to last for to be seen; None if not known.
    unseen_s: float | None = None
    #: Effects that the load generator itself may have had, as a message; "" without any.
    generator: str = ""
    #: Resources in error; None if they were not searched, or the scenario makes none.
    left: LeftFigures | None = None
    #: Verdict and `sentences` of an edge whose runner's load was the fault; None of hooks.
    overload: Mapping[str, Any] | None = None

    @property
    def left_in_error(self) -> int | None:
        """Number of resources in error or changing; None if they were not searched."""
        return None if self.left is None else self.left.count

    @property
    def left_doubt(self) -> str:
        """Reason why `left_in_error` is not known, or may lack some; "" if it is exact."""
        if self.left is None:
            return "resources in error were not searched: the load did not end as planned"
        return self.left.doubt
