"""The progress of a workload, and the load that its runner requests from then on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Progress of one workload so far, which `Runner.step` gets: numbers of iterations."""

    #: Iteration numbers given out (closed) or arrivals planned (open).
    allotted: int
    #: Iterations in a final state, returned unused, or in doubt since their worker was lost.
    settled: int
    #: Code of the runner that starts iterations in a worker has returned.
    ended: bool = False


@dataclass(frozen=True, kw_only=True)
class Step:
    """The load that a runner requests from now on: virtual users (closed), or arrivals (open)."""

    #: Closed runners: virtual users each worker should keep busy; same order as `capacity`.
    users: tuple[int, ...] | None = None
    #: Closed runners: iteration numbers that may be given out in all; None is unlimited.
    budget: int | None = None
    #: Open runners: due times, seconds after t0, ascending, of the arrivals that follow the
    #: `allotted` ones.
    arrivals: Sequence[float] = ()
    #: No iteration starts at or after this time, seconds after t0.
    stop_s: float | None = None
    #: Nothing more will be asked for once all that was allotted is settled.
    done: bool = False
