"""The plan of an overload: a share of the capacity, a multiple of it, and the same share again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from osbench.coordinator.plugins.runners.rates import Stages, exact

#: Defaults of the runner's settings: multiple of the capacity, its seconds, and the share.
TIMES, FOR_S, BACK_TO = 2.0, 60.0, "70 %"
#: The observation lasts so many times longer than a plain backlog takes to drain, by default; and
#: less than `ENOUGH` times as long does not show that a service is stuck.
WATCH, ENOUGH = 1.5, 1.2


@dataclass(frozen=True, kw_only=True)
class OverloadPlan:
    """Rates and times of an overload: before it, during it, and the observation after it."""

    #: The capacity, arrivals per second; the overload as a multiple, the share as a part of it.
    of_per_s: Fraction
    times: Fraction
    share: Fraction
    #: Seconds of the share before the overload, of the overload, and of the share after it.
    before_s: Fraction
    for_s: Fraction
    watch_s: Fraction

    @classmethod
    def of(cls, config: Mapping[str, Any], capacity: float) -> OverloadPlan:
        """Return the plan by the configuration of the runner; `capacity` in arrivals per second."""
        for_s = exact(config.get("for", FOR_S))
        times, share = exact(config.get("times", TIMES)), share_of(config.get("back_to", BACK_TO))
        drains_s = drain_s(times, share, for_s)
        watch_s = config.get("watch")
        return cls(
            of_per_s=exact(capacity),
            times=times,
            share=share,
            before_s=exact(config.get("before", float(for_s))),
            for_s=for_s,
            watch_s=max(for_s, exact(WATCH) * drains_s) if watch_s is None else exact(watch_s),
        )

    @property
    def held_per_s(self) -> Fraction:
        """Arrivals per second before and after the overload."""
        return self.of_per_s * self.share

    @property
    def overload_per_s(self) -> Fraction:
        """Arrivals per second of the overload."""
        return self.of_per_s * self.times

    @property
    def begin_s(self) -> float:
        """Instant at which the overload begins, seconds after t0."""
        return float(self.before_s)

    @property
    def return_s(self) -> float:
        """Instant at which the load returns to the share, seconds after t0."""
        return float(self.before_s + self.for_s)

    @property
    def end_s(self) -> float:
        """Instant at which the last iteration is due, seconds after t0."""
        return float(self.before_s + self.for_s + self.watch_s)

    @property
    def drains_s(self) -> float:
        """Seconds after the return in which a plain backlog of the overload is worked off."""
        return float(drain_s(self.times, self.share, self.for_s))

    @property
    def curve(self) -> Stages:
        """Return the rate over time: two jumps between three constant rates."""
        jump = Fraction(0)
        return Stages(
            self.held_per_s,
            [
                (self.before_s, self.held_per_s),
                (jump, self.overload_per_s),
                (self.for_s, self.overload_per_s),
                (jump, self.held_per_s),
                (self.watch_s, self.held_per_s),
            ],
        )


def share_of(written: float | str) -> Fraction:
    """Return a share of 0 to 1 as a task has it: 0.7, or a text such as "70 %"."""
    if isinstance(written, str):
        return exact(float(written.strip().removesuffix("%"))) / 100
    return exact(written)


def drain_s(times: Fraction, share: Fraction, for_s: Fraction) -> Fraction:
    """Return the seconds in which a service at its capacity works off all that was too much.

    An overload of `times` the capacity for `for_s` leaves (times - 1) for_s seconds of work, and
    the part 1 - share of the capacity is free to do it.
    """
    return max(Fraction(0), times - 1) * for_s / (1 - share)
