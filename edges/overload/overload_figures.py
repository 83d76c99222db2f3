"""Figures of an overload in the report: the verdict, its phases, and the loop."""

from __future__ import annotations

import enum
from dataclasses import dataclass

#: Lower and upper bound of an interval.
Bounds = tuple[float, ...]


class OverloadAnswer(enum.StrEnum):
    """Whether a service comes back after an overload."""

    #: It is as before, and stays so.
    BACK = "back"
    #: It stays worse than before at the load that it held before.
    STUCK = "stuck"
    #: It gets slower and slower at the same load, before the overload as after it.
    LEAK = "leak"
    #: The overload changed nothing.
    NOT_OVERLOADED = "not overloaded"
    #: The load does not show it: the reason is known.
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class PhaseState:
    """The service in one stretch of the load; times are from start to end of iterations."""

    #: before, overload, after (the first half of the observation) or end (its second half).
    name: str = ""
    from_s: float = 0.0
    to_s: float = 0.0
    #: Iterations that ran per second, and that ended well.
    ran_per_s: float = 0.0
    ok_per_s: float = 0.0
    #: Failed and timed out iterations as a part of all that ran; None if none ran.
    bad_share: float | None = None
    p50_s: float | None = None
    p90_s: float | None = None
    #: Iterations in flight on average, while the stretch's iterations ran.
    in_flight: float = 0.0
    #: HTTP requests, and connections that were opened for them, per iteration that ran.
    requests: float = 0.0
    connections: float = 0.0
    #: Arrivals that never reached the service, as a part of all: dropped, or without resources.
    own_share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class HeldFigure:
    """A figure that changed in the overload and has stayed so at the load held before it."""

    name: str = ""
    #: As counters have it; "" for a plain number.
    unit: str = ""
    before: float | None = None
    overload: float | None = None
    end: float | None = None


@dataclass(frozen=True, kw_only=True)
class LoopPoint:
    """Load and latency in one stretch of time; the points in order are the loop."""

    at_s: float = 0.0
    offered_per_s: float = 0.0
    #: Median time of all iterations that ran, also of failed ones; None without any.
    p50_s: float | None = None
    bad_share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class OverloadFigures:
    """Whether a service came back after an overload, with the figures behind the verdict."""

    verdict: OverloadAnswer = OverloadAnswer.UNKNOWN
    #: Why the verdict is not known; "" if it is.
    reason: str = ""
    #: The load generator or the task's own limits are the reason.
    is_generators: bool = False
    #: Seconds after the return to the share until all was as before; None if it is not so.
    back_s: float | None = None
    back_ci: Bounds | None = None
    #: Begin and end of short moments after that which were slow again, seconds after the return.
    moments: tuple[Bounds, ...] = ()
    #: Arrivals per second held before and after, and of the overload.
    held_per_s: float = 0.0
    overload_per_s: float = 0.0
    #: Begin of the overload, and the return to the share, seconds after t0.
    begin_s: float = 0.0
    return_s: float = 0.0
    #: Seconds after the return for which the load was watched, and which a plain backlog drains in.
    watched_s: float = 0.0
    drains_s: float = 0.0
    #: Growth of the median at the same load, as a part of it per minute; None if it did not grow.
    growth_per_min: float | None = None
    phases: tuple[PhaseState, ...] = ()
    held_by: tuple[HeldFigure, ...] = ()
    loop: tuple[LoopPoint, ...] = ()
    #: The figures in words.
    sentences: tuple[str, ...] = ()
