"""The one judge of the time that the load generator added to a stretch of a load.

A watchdog of each worker process, or its event loop, should wake at times that are evenly spread,
and measures how late it does. So the share of wake-ups that are later than x is the share s(x) of
time in which nothing of the process could start, send or read for x longer. An iteration reads the
clock at its start and its end and waits for the service between. The probability that it is delayed
by more than x at a single point of these three is at most 3 s(x), at two points 3 s(x)^2, at all
s(x)^3. At worst the longest delays have met the longest iterations: then the shortest iteration of
the longest part f is longer by s^-1(f/3) + s^-1((f/3)^(1/2)) + s^-1(f^(1/3)) than it would be.

An arrival that starts late though virtual users are free is late by the generator: its response
time without that is its service time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from osbench.common.plugin.sla import Times
from osbench.common.protocol.columns import Columns, select
from osbench.common.values.histogram import Histogram
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.formatting import count, spaced
from osbench.coordinator.results.accounting.core_use import FULL
from osbench.coordinator.results.accounting.delayed_iterations import (
    LEAST_NS,
    POINTS,
    touched_share,
)
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

Ints = NDArray[np.int64]

#: Below this part of a stretch of load, delays mean nothing.
SHARE_LEAST = 0.01
#: Steps in which the ranks of delayed iterations are taken.
_STEPS = 256


class GeneratorDelay:
    """Delays that the worker processes of a stretch of load added, from their late wake-ups."""

    def __init__(self, statistics: WorkloadStatistics, users: int = 0) -> None:
        """`users`: virtual users that the load may have at once; 0 if not known."""
        self._statistics = statistics
        #: Iterations that failed because the workers had no more of something, such as open files.
        self.failed = statistics.errors.lacking().total()
        #: Latenesses of wake-ups, nanoseconds: of event loops or of threads, whichever were later.
        self.lags = max(
            (statistics.loop_lag, statistics.thread_lag),
            key=lambda one: _share_above(one, LEAST_NS),
        )
        #: Late starts are the generator's: the load is open, and virtual users were free.
        self.starts_are_own = statistics.is_open and not is_full(
            statistics, statistics.drops, users
        )

    @cached_property
    def share(self) -> float:
        """Share (0 to 1) of the time in which a process was delayed by more than `LEAST_NS`."""
        return _share_above(self.lags, LEAST_NS)

    def late_s(self, percent: float) -> float:
        """Return a percentile (0 to 100) of the lateness of wake-ups, seconds; 0 without any."""
        return self.lags.percentile(percent) / 1e9 if self.lags.count else 0.0

    @property
    def sentence(self) -> str:
        """Delays by the generator in words, and iterations that lacked resources; or ""."""
        found = []
        if self.failed:
            found.append(f"{count(self.failed, 'iteration')} failed because it lacked resources")
        if self.share >= SHARE_LEAST:
            late = f"its processes were late by up to {spaced(self.lags.max / 1e9)}"
            found.append(f"{late}, in {100 * self.share:.2g} % of the time")
        if self._starts_late:
            starts = self._statistics.start_lag
            found.append(f"arrivals started up to {spaced(starts.max / 1e9)} late")
        return "; ".join(found) or self._of_drill

    @property
    def _of_drill(self) -> str:
        """Delays of stretches of a drill, in words; "" for none."""
        drill = self._statistics.drill
        return "" if drill is None else drill.generator

    @property
    def _starts_late(self) -> bool:
        starts = self._statistics.start_lag
        return self.starts_are_own and _share_above(starts, LEAST_NS) >= SHARE_LEAST

    @property
    def is_noticeable(self) -> bool:
        """Return whether starts or wake-ups were often late, or iterations lacked resources.

        True also if a stretch of a drill may have been delayed.
        """
        late = self.share >= SHARE_LEAST or self._starts_late
        return late or bool(self.failed) or bool(self._of_drill)

    def without(self, times: Histogram) -> Histogram:
        """Return times as they may have been without delays; `times` itself if delays were few."""
        touched = min(times.count - 1, math.ceil(touched_share(self.share) * times.count))
        if touched < 1 or self.share < SHARE_LEAST:
            return times
        ranks = np.unique(np.geomspace(1, touched, _STEPS).astype(np.int64))
        longest = times.samples(times.count + 1 - ranks)
        shorter = _less_delays(longest, ranks / times.count, times.percentile(50), self.lags)
        return times.with_highest(shorter, np.diff(ranks, prepend=0))

    @property
    def statistics_without(self) -> UndisturbedStatistics | None:
        """The statistics as they may have been without delays; None if there were too few delays.

        Iterations that failed for want of the generator's resources are left out, too. SLA criteria
        that they meet, and the measured ones do not, have no verdict.
        """
        return UndisturbedStatistics(self._statistics, self) if self.is_noticeable else None


def rows_without(columns: Columns, lags: Ints, lacking: NDArray[np.bool_] | None = None) -> Columns:
    """Return the rows of a block as they may have been without delays: some end earlier.

    `lags`: of the process since its block before, nanoseconds. `lacking`: rows that failed for want
    of the generator's resources, which are left out; None for none.
    """
    if lacking is not None and lacking.any():
        columns = select(columns, ~lacking)
    if not (lags > LEAST_NS).any():
        return columns
    late = Histogram()
    late.add(lags)
    touched = math.ceil(touched_share(_share_above(late, LEAST_NS)) * len(columns))
    ran = np.flatnonzero(columns.outcome <= Outcome.TIMED_OUT)
    touched = min(touched, len(ran))
    if not touched:
        return columns
    service = columns.ended - columns.started - columns.idle
    longest = ran[np.argsort(-service[ran], kind="stable")[:touched]]
    part = np.arange(1, touched + 1) / len(ran)
    floor = int(np.median(service[ran]))
    delays = service[longest] - _less_delays(service[longest], part, floor, late)
    ended = columns.ended.copy()
    ended[longest] -= delays
    return replace(columns, ended=ended)


def is_full(statistics: WorkloadStatistics, drops: Mapping[str, int], users: int) -> bool:
    """Return whether all virtual users of an open load were busy: its arrivals waited for them.

    They were if more arrivals were dropped for them than for lateness (`drops`, by reason), or if
    the peak of running iterations was near their number; `users` is 0 if it is not known.
    """
    number = Counter(drops)
    if number["capacity"] + number["max_concurrency"] > number["late"]:
        return True
    return bool(users) and statistics.profile.peak() > FULL * users


class UndisturbedStatistics:
    """Statistics for SLA criteria, as they may have been without the generator's delays."""

    def __init__(self, statistics: WorkloadStatistics, delay: GeneratorDelay) -> None:
        self._statistics = statistics
        self.delay = delay
        self.checks = statistics.checks
        self.drill = statistics.undisturbed_drill
        self.first_start = statistics.first_start
        self.last_end = statistics.last_end

    def count(self, state: str) -> int:
        """Number of iterations in a state."""
        found = self._statistics.count(state)
        return max(0, found - self.delay.failed) if state == "failed" else found

    @property
    def ok_per_s(self) -> float | None:
        """Successful iterations per second; more by the share of time that a process was late."""
        rate = self._statistics.ok_per_s
        return None if rate is None else rate / max(1 - self.delay.share, SHARE_LEAST)

    @property
    def service(self) -> Times:
        """Service times."""
        return _UndisturbedTimes(self._statistics.service, self.delay)

    @property
    def response(self) -> Times:
        """Response times: service times if late starts are the generator's."""
        if self.delay.starts_are_own:
            return self.service
        return _UndisturbedTimes(self._statistics.response, self.delay)

    @property
    def actions(self) -> Mapping[str, Times]:
        """Durations of atomic actions by name."""
        return {
            name: _UndisturbedTimes(times, self.delay)
            for name, times in self._statistics.actions.items()
        }

    @property
    def start_lag(self) -> Histogram:
        """Start lags: none if they are the generator's."""
        lags = self._statistics.start_lag
        if self.delay.starts_are_own:
            return lags.with_highest(np.zeros(1, np.int64), np.array([lags.count]))
        return self.delay.without(lags)


class _UndisturbedTimes:
    """Times by state, as they may have been without the generator's delays."""

    def __init__(self, times: Times, delay: GeneratorDelay) -> None:
        self._times = times
        self._delay = delay

    def state(self, name: str) -> Histogram:
        return self._delay.without(self._times.state(name))


def _less_delays(longest: Ints, part: NDArray[np.float64], floor_ns: int, lags: Histogram) -> Ints:
    """Return durations, longest first, without the delays that may be in them; see the module.

    `part`: share of all durations that are at least as long, for each. `floor_ns`: a typical
    duration; no longer one becomes shorter than that.
    """
    met = np.concatenate((part / POINTS, np.sqrt(part / POINTS), np.cbrt(part)))
    ranks = lags.count - np.floor(met * lags.count).astype(np.int64)
    found = lags.samples(np.clip(ranks, 1, lags.count))
    delays = np.where(found > LEAST_NS, found, 0).reshape(3, -1).sum(0)
    least = np.minimum(longest, floor_ns)
    shorter: Ints = np.maximum(longest - delays, least)
    return shorter


def _share_above(lags: Histogram, limit_ns: int) -> float:
    return lags.count_above(limit_ns) / lags.count if lags.count else 0.0
