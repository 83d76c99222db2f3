"""The one judge of the time that the load generator added to a stretch of a load.

A watchdog of each worker process, or its event loop, should wake at times that are evenly spread,
and measures how late it does. So the share of late wake-ups is the share of time in which
nothing of the process could start, send or read. An iteration reads the clock at its start and its
end and waits for the service between, so it can meet such a delay at each of these points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

from osbench.common.histogram import Histogram
from osbench.common.plugin.sla import Times
from osbench.coordinator.formatting import count, spaced
from osbench.coordinator.results.delayed_iterations import (
    LEAST_NS,
    most_delayed_ns,
    touched_share,
)
from osbench.coordinator.results.workload_statistics import WorkloadStatistics

#: Below this part of a stretch of load, delays mean nothing.
SHARE_LEAST = 0.01


class GeneratorDelay:
    """Delays that the worker processes of a stretch of load added, from their late wake-ups."""

    def __init__(self, statistics: WorkloadStatistics) -> None:
        self._statistics = statistics
        #: Iterations that failed because the workers had no more of something, such as open files.
        self.failed = statistics.errors.lacking().total()
        #: Latenesses of wake-ups, nanoseconds: of event loops or of threads, whichever were later.
        self.lags = max(
            (statistics.loop_lag, statistics.thread_lag),
            key=lambda one: _share_above(one, LEAST_NS),
        )

    @cached_property
    def share(self) -> float:
        """Share (0 to 1) of the time in which a process was delayed by more than `LEAST_NS`."""
        return _share_above(self.lags, LEAST_NS)

    def is_late(self, limit_s: float) -> bool:
        """Return whether wake-ups were later than `limit_s` at p99."""
        return bool(self.lags.count) and self.lags.percentile(99) / 1e9 > limit_s

    @property
    def sentence(self) -> str:
        """Lateness of the processes in words: "its processes were late by up to 0.8 s, in ..."."""
        late = (
            f"its processes were late by up to {spaced(self.lags.max / 1e9)},"
            f" in {100 * self.share:.2g} % of the time"
        )
        if not self.failed:
            return late
        lacking = f"{count(self.failed, 'iteration')} failed because it lacked resources"
        return f"{lacking}; {late}" if self.share >= SHARE_LEAST else lacking

    def without(self, times: Histogram) -> Histogram:
        """Return times as they may have been without delays, which are left out.

        They are the longest ones, as many as may have met a delay at any of `POINTS`, and no longer
        than a typical one with the longest delay at each.
        """
        if not times.count or self.share < SHARE_LEAST:
            return times
        most_ns = most_delayed_ns(times.percentile(50), self.lags.max)
        return times.without_highest(
            math.ceil(touched_share(self.share) * times.count), int(most_ns)
        )

    @property
    def statistics_without(self) -> UndisturbedStatistics | None:
        """The statistics as they may have been without delays; None if there were too few delays.

        Iterations that failed for want of the generator's resources are left out, too. A drill has
        the delays of each stretch of it. SLA criteria that they meet, and the measured ones do not,
        have no verdict.
        """
        drill = self._statistics.drill
        told = drill is not None and drill.generator
        if self.share < SHARE_LEAST and not self.failed and not told:
            return None
        return UndisturbedStatistics(self._statistics, self)


class UndisturbedStatistics:
    """Statistics for SLA criteria, as they may have been without the generator's delays."""

    def __init__(self, statistics: WorkloadStatistics, delay: GeneratorDelay) -> None:
        self._statistics = statistics
        self._delay = delay
        self.checks = statistics.checks
        self.drill = statistics.undisturbed_drill
        self.ok_per_s = statistics.ok_per_s
        self.first_start = statistics.first_start
        self.last_end = statistics.last_end

    def count(self, state: str) -> int:
        """Number of iterations in a state."""
        found = self._statistics.count(state)
        return max(0, found - self._delay.failed) if state == "failed" else found

    @property
    def service(self) -> Times:
        """Service times."""
        return _UndisturbedTimes(self._statistics.service, self._delay)

    @property
    def response(self) -> Times:
        """Response times."""
        return _UndisturbedTimes(self._statistics.response, self._delay)

    @property
    def actions(self) -> Mapping[str, Times]:
        """Durations of atomic actions by name."""
        return {
            name: _UndisturbedTimes(times, self._delay)
            for name, times in self._statistics.actions.items()
        }

    @property
    def start_lag(self) -> Histogram:
        """Start lags."""
        return self._delay.without(self._statistics.start_lag)


class _UndisturbedTimes:
    """Times by state, each without times that may be delayed."""

    def __init__(self, times: Times, delay: GeneratorDelay) -> None:
        self._times = times
        self._delay = delay

    def state(self, name: str) -> Histogram:
        return self._delay.without(self._times.state(name))


def _share_above(lags: Histogram, limit_ns: int) -> float:
    return lags.count_above(limit_ns) / lags.count if lags.count else 0.0
