"""An overload as it was seen: recoveries, phases, and blocks of time before and after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from osbench.coordinator.results.accounting.drill_recovery import Recovery
from osbench.edges.overload.drift import TimedBlock
from osbench.edges.overload.overload_figures import PhaseState
from osbench.edges.overload.overload_plan import OverloadPlan
from osbench.edges.overload.service_rows import ServiceRows


@dataclass(frozen=True, kw_only=True)
class WatchedBlock:
    """A block of time of an observation: its median (None without successes) and failures."""

    at_s: float
    arrivals: float
    p50_s: float | None
    #: Iterations that ran, and that failed or timed out.
    ran: int
    bad: int

    @property
    def bad_share(self) -> float:
        """Failed and timed out iterations as a part of all that ran; 0 without any."""
        return self.bad / self.ran if self.ran else 0.0

    @property
    def timed(self) -> TimedBlock | None:
        """The block with its median; None without one."""
        if self.p50_s is None:
            return None
        return TimedBlock(at_s=self.at_s, arrivals=self.arrivals, p50_s=self.p50_s)


@dataclass(frozen=True, kw_only=True)
class Observation:
    """An overload as it was seen; times are seconds after t0 unless they say otherwise."""

    plan: OverloadPlan
    #: Due time of the last iteration.
    last_due_s: float
    #: Recoveries as measured, and without what the load generator did; seconds after the overload
    #: began.
    measured: Recovery
    without: Recovery
    #: before, overload, after and end, by name.
    phases: Mapping[str, PhaseState]
    #: Arrivals per second that were counted in each phase, by name.
    arrivals_per_s: Mapping[str, float]
    before: Sequence[WatchedBlock]
    after: Sequence[WatchedBlock]
    #: Judges the second half of the time before the overload by its first half.
    halves: Callable[[], Recovery | None]

    @property
    def watched_s(self) -> float:
        """Seconds after the return for which iterations were due."""
        return max(0.0, self.last_due_s - self.plan.return_s)

    def settled(self, from_s: float) -> list[TimedBlock]:
        """Return the blocks with a median that begin after a time, seconds after t0."""
        return [one.timed for one in self.after if one.timed is not None and one.at_s >= from_s]

    @property
    def usual(self) -> list[TimedBlock]:
        """Blocks before the overload that have a median."""
        return [one.timed for one in self.before if one.timed is not None]


def watched_blocks(
    rows: ServiceRows, number: int, from_s: float, arrivals: int
) -> list[WatchedBlock]:
    """Return blocks of time of a stretch that begins at `from_s`, after so many arrivals."""
    found = []
    for at_s, block in rows.blocks(number):
        count, ran = int(block.counts().sum()), int(block.ran().sum())
        if count:
            (p50_s,) = block.percentiles_s(50)
            found.append(
                WatchedBlock(
                    at_s=from_s + at_s,
                    arrivals=arrivals + count / 2,
                    p50_s=p50_s,
                    ran=ran,
                    bad=ran - int(block.well().sum()),
                )
            )
        arrivals += count
    return found
