"""How often intervals of one run hold the true percentile, for processes that are known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from helpers.latency_processes import PERCENTS, PROCESSES, Process, matrix_of
from osbench.coordinator.results.statistics.block_intervals import block_intervals

RUNS = 1000
#: Shares of intervals that hold the truth, and standard errors that chance is given.
LEAST, MOST, _ERRORS = 0.93, 0.99, 3.0
#: Half widths below this are those of a bucket: the resolution of what is kept.
_RESOLUTION = 0.02


@dataclass
class Coverage:
    """The intervals of one percentile over runs of a process."""

    runs: int = 0
    held: list[bool] = field(default_factory=list)
    #: Half widths as shares of the percentile, infinite without upper bound.
    widths: list[float] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The share of intervals that hold the truth."""
        return float(np.mean(self.held)) if self.held else math.nan

    @property
    def width(self) -> float:
        """The median half width."""
        return float(np.median(self.widths)) if self.widths else math.nan

    @property
    def bounded(self) -> float:
        """The share of runs whose interval has both bounds."""
        return sum(map(math.isfinite, self.widths)) / self.runs if self.runs else 0.0

    @property
    def bounded_share(self) -> float:
        """The share of those with both bounds that hold the truth."""
        of = [held for held, width in zip(self.held, self.widths, strict=True) if width < math.inf]
        return float(np.mean(of)) if of else math.nan

    def wrong(self, process: Process) -> bool:
        """Whether more, or fewer, hold the truth than may."""
        if process.unjudged or not self.held:
            return False
        low, high = (
            bound + sign * _ERRORS * math.sqrt(bound * (1 - bound) / len(self.held))
            for bound, sign in ((LEAST, -1), (MOST, 1))
        )
        exact = process.may_be_wide or not _RESOLUTION < self.width < math.inf
        return self.share < low or (self.share > high and not exact)


def coverage_of(process: Process, runs: int, seed: int = 1) -> dict[float, Coverage]:
    """By percentile."""
    random = np.random.default_rng(seed)
    truth = process.percentiles(random)
    found = {percent: Coverage() for percent in PERCENTS}
    for _ in range(runs):
        run = process.draw(random)
        if process.shows is not None and not process.shows(run[1]):
            continue
        intervals = block_intervals(matrix_of(run), PERCENTS)
        assert intervals is not None
        for one in intervals.estimates:
            of = found[one.percent]
            of.runs += 1
            if one.interval_ns is not None:
                low, high = one.interval_ns
                of.held.append(low <= truth[one.percent] * 1e9 <= high)
                of.widths.append((high - low) / 2 / one.value_ns)
    return found


def coverage() -> Iterator[str]:
    """The table; its last line begins with "wrong" if any share is out of bounds."""
    yield f"95 % intervals of one run: of {RUNS} runs those with an interval, with both of its"
    yield "bounds, how many intervals hold the truth, how many of those with both bounds do, and"
    yield "their median half width"
    wrong = []
    for process in PROCESSES:
        for percent, found in coverage_of(process, RUNS).items():
            printed = len(found.held) / max(found.runs, 1)
            width = f"{found.width:.0%}" if math.isfinite(found.width) else "open"
            bad = found.wrong(process)
            says = " WRONG" if bad else ""
            says = says or (f" not judged: {process.unjudged}" if process.unjudged else "")
            yield (
                f"{process.name:58} p{percent:<3g} {printed:5.0%} {found.bounded:5.0%}"
                f" {found.share:7.1%} {found.bounded_share:7.1%} {width:>6}{says}"
            )
            if bad:
                wrong.append(f"p{percent:g} of {process.name}")
    if wrong:
        yield f"wrong: {', '.join(wrong)}"
