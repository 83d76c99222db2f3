"""The load over time: iterations started, ended, failed and running, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

#: Bins of time; when they do not reach far enough their width doubles.
BINS = 4096
#: Bins begin 2**24 ns (17 ms) wide: powers of two turn a division into a shift.
_FINEST_BITS = 24

#: The backlog is that of the last of so many parts of a load.
BACKLOG_PARTS = 10
#: Mean gaps after which the end of a load is too far from its last arrival to be its end.
FAR = 3

_ARRAYS = ("starts", "ends", "failures", "_start_offsets", "_end_offsets")


def arrival_window(
    first: int, last: int, count: int, planned_ns: int | None = None
) -> float | None:
    """Return the length of the window of arrivals, ns; None for fewer than two, or all at one time.

    `first` and `last` are arrival times in ns after t0. The window lasts from the first to the last
    arrival, plus the gap until the next. `planned_ns` is when the next arrival would have been due;
    if that is None, not after `last`, or more than `FAR` mean gaps later, the mean gap is added.
    """
    if count < 2 or last <= first:
        return None
    gap = (last - first) / (count - 1)
    if planned_ns is not None and 0 < planned_ns - last <= FAR * gap:
        gap = planned_ns - last
    return last - first + gap


@dataclass(frozen=True, kw_only=True)
class Series:
    """A load profile for charts: counts per bin of time; the first bin begins at t0."""

    bin_s: float
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    #: Failed and timed out iterations, at their end.
    failures: tuple[int, ...]
    #: Mean number of iterations running.
    running: tuple[float, ...]


class LoadProfile:
    """Counts of iterations that started, ended and failed, by bin of time, in bounded memory.

    The width of bins doubles when the load lasts longer. Sums of the offsets of starts and ends
    within bins give exactly how long iterations ran in each bin.
    """

    __slots__ = ("_bits", "_used", *_ARRAYS)

    def __init__(self) -> None:
        self._bits = _FINEST_BITS
        self._used = 0
        self.starts: Ints = np.zeros(BINS, np.int64)
        self.ends: Ints = np.zeros(BINS, np.int64)
        self.failures: Ints = np.zeros(BINS, np.int64)
        self._start_offsets: Ints = np.zeros(BINS, np.int64)
        self._end_offsets: Ints = np.zeros(BINS, np.int64)

    def add(self, started: Ints, ended: Ints, failed_ended: Ints) -> None:
        """Add iterations by start and end (ns after t0); `failed_ended`: ends of the bad ones."""
        if not len(ended):
            return
        # a foreign worker may report that an iteration began after it had ended
        self._reach(max(int(np.maximum.reduce(ended)), int(np.maximum.reduce(started))))
        self._count(self.starts, self._start_offsets, started)
        self._count(self.ends, self._end_offsets, ended)
        if len(failed_ended):
            np.add.at(self.failures, np.maximum(failed_ended, 0) >> self._bits, 1)

    def running_ns(self) -> Ints:
        """Return the ns that iterations ran in each used bin, summed over iterations."""
        # iterations running when each bin begins
        carried = np.cumsum(self.starts - self.ends) - (self.starts - self.ends)
        whole = (carried + self.starts - self.ends) << self._bits
        running: Ints = whole - self._start_offsets + self._end_offsets
        return running[: self._used]

    def peak(self) -> float:
        """Return the greatest mean number of running iterations of a bin; 0 without iterations."""
        running = self.running_ns()
        return float(running.max()) / (1 << self._bits) if len(running) else 0.0

    def backlog(self) -> tuple[float, float]:
        """Return the mean numbers of running iterations half-way through the starts and at the end.

        Each is over a tenth of the time until the last start. The first is scaled to the rate of
        starts at the end. Both are 0 if that time is too short, or there were no starts half-way.
        """
        last = int(np.flatnonzero(self.starts)[-1]) if self.starts.any() else 0
        part = last // BACKLOG_PARTS
        if not part:
            return 0.0, 0.0
        running = self.running_ns() / (1 << self._bits)
        half, end = (slice(at - part, at) for at in (last // 2, last))
        begun_half, begun_end = self.starts[half].sum(), self.starts[end].sum()
        if not begun_half:
            return 0.0, 0.0
        return float(running[half].mean() * begun_end / begun_half), float(running[end].mean())

    def ended_well(self, until_ns: float) -> float:
        """Return how many iterations had succeeded by `until_ns` (ns after t0).

        In the bin of `until_ns` it is estimated: successes are taken as evenly spread.
        """
        well = self.ends - self.failures
        place, width = int(until_ns) >> self._bits, 1 << self._bits
        if place >= self._used:
            return float(well.sum())
        return float(well[:place].sum() + well[place] * (until_ns / width - place))

    def series(self, bins: int) -> Series:
        """Return the profile in at most `bins` bins; pairs of bins are joined as needed."""
        profile = self._copy()
        while profile._used > bins:
            profile._widen()
        used, width = profile._used, 1 << profile._bits
        return Series(
            bin_s=width / 1e9,
            starts=tuple(profile.starts[:used].tolist()),
            ends=tuple(profile.ends[:used].tolist()),
            failures=tuple(profile.failures[:used].tolist()),
            running=tuple((profile.running_ns() / width).tolist()),
        )

    def _copy(self) -> LoadProfile:
        found = LoadProfile()
        found._bits, found._used = self._bits, self._used
        for name in _ARRAYS:
            getattr(found, name)[:] = getattr(self, name)
        return found

    def _count(self, counts: Ints, offsets: Ints, instants: Ints) -> None:
        # clocks disagree a little: a start can seem to lie before t0
        instants = np.maximum(instants, 0)
        bins = instants >> self._bits
        np.add.at(counts, bins, 1)
        np.add.at(offsets, bins, instants & ((1 << self._bits) - 1))

    def _reach(self, instant: int) -> None:
        while instant >> self._bits >= BINS:
            self._widen()
        self._used = max(self._used, (instant >> self._bits) + 1)

    def _widen(self) -> None:
        # an offset in the second bin of a pair grows by the old width
        self._start_offsets[1::2] += self.starts[1::2] << self._bits
        self._end_offsets[1::2] += self.ends[1::2] << self._bits
        for name in _ARRAYS:
            values = getattr(self, name)
            values[: BINS // 2] = values[0::2] + values[1::2]
            values[BINS // 2 :] = 0
        self._bits += 1
        self._used = (self._used + 1) // 2
