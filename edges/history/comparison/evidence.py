"""Tests whether a difference of two sides of runs is more than chance; finds odd runs of a side.

The spread is from runs of both sides, from earlier runs, or from time within a run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from osbench.coordinator.formatting import count
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.results.statistics.block_intervals import BlockEstimate, block_intervals
from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix
from osbench.edges.history.comparison.block_shift import BlockShift, block_shift
from osbench.edges.history.comparison.compared_run import ComparedRun
from osbench.edges.history.comparison.comparison_result import Basis
from osbench.edges.history.comparison.run_series import SeriesKey, log_values
from osbench.edges.history.comparison.two_samples import (
    Shifted,
    paired_shift,
    pooled_shift,
    welch,
)

#: Runs a side from which each side says how much its own runs differ.
_OWN_SPREAD = 3
#: Runs per side from which ranks alone can distinguish sides at half the level.
_RANKED = 5
#: Degrees of freedom from which a spread of other runs counts as known: five runs of a kind.
_KNOWN = 4
#: Runs a side from which two that agree show a third to be odd.
_FEWEST = 3
#: Standard deviations of the other runs, and share, from which a run is odd in a percentile.
_DEVIATIONS, _SHARE = 6.0, 0.05


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Two sides of runs to compare, and earlier runs that show how much such runs differ anyway."""

    before: Sequence[ComparedRun]
    after: Sequence[ComparedRun]
    #: Earlier runs with the fingerprint of one of them.
    history: Sequence[ComparedRun] = ()
    #: The runs of the two sides were made in pairs.
    in_pairs: bool = False
    #: Number of the block of each run, by its id, if the runs of both sides were made in blocks
    #: around a change; numbers follow time, and no block has runs of both sides.
    blocks: Mapping[str, int] = field(default_factory=dict)

    @property
    def basis(self) -> Basis:
        """Kind of test that the number of runs allows; TIME_BLOCKS if it allows none."""
        if self.blocks:
            return Basis.BLOCKS
        sizes = len(self.before), len(self.after)
        if self.in_pairs and sizes[0] == sizes[1] >= 2:
            return Basis.PAIRS
        own = self._freedom([self.before, self.after])
        if min(sizes) >= _OWN_SPREAD or own >= _KNOWN:
            return Basis.REPLICATES
        if self._freedom([self.before, self.after, *self._kinds()]) >= _KNOWN:
            return Basis.HISTORY
        return Basis.REPLICATES if min(sizes) >= 2 else Basis.TIME_BLOCKS

    @property
    def by_rank(self) -> bool:
        """Return whether ranks can be tested, too: at least five runs a side, not in pairs."""
        enough = min(len(self.before), len(self.after)) >= _RANKED
        return enough and self.basis is Basis.REPLICATES

    @property
    def apart_in_time(self) -> bool:
        """Return whether all runs of one side ended before all runs of the other side began.

        False for pairs and for blocks, whose test allows for it, and if a time is not known.
        """
        if self.basis in (Basis.PAIRS, Basis.BLOCKS):
            return False
        first, second = ([run.report for run in side] for side in (self.before, self.after))
        return _ended_first(first, second) or _ended_first(second, first)

    @property
    def grounds(self) -> str:
        """Message on the runs that the verdicts are based on, and on the limits of verdicts."""
        if not self.apart_in_time or self.basis is Basis.TIME_BLOCKS:
            return self._grounds
        return (
            f"{self._grounds}. All runs of one side were made before all runs of the other: a"
            " change around the service in that time looks like a change of the service; `duel`"
            " lets both take turns"
        )

    @property
    def _grounds(self) -> str:
        before, after = count(len(self.before), "run"), count(len(self.after), "run")
        match self.basis:
            case Basis.PAIRS:
                return f"{count(len(self.before), 'pair')} of runs made in turn"
            case Basis.BLOCKS:
                first, second = (len(self._runs_by_block(side)) for side in self._sides)
                return (
                    f"{count(first, 'block')} with {before} before the change, and {second} with"
                    f" {after} after it; a difference counts if neither the spread"
                    " of the blocks of a side nor their steps from each to the next explain it"
                )
            case Basis.REPLICATES:
                ranks = " and their ranks" if self.by_rank else ""
                return f"{before} before and {after} after, tested by their own spread{ranks}"
            case Basis.HISTORY:
                return (
                    f"{before} before and {after} after, with the spread of"
                    f" {count(len(self.history), 'earlier run')} of the same task, load,"
                    " deployment and number of workers"
                )
        return (
            f"{before} before and {after} after: the normal variation between runs of this task is"
            " not known, so any difference may be chance. Repeat the runs (`run --repeat 5`), or"
            " let both take turns (`duel`). Intervals are from blocks of time within each run"
        )

    def shifted(self, key: SeriesKey) -> Shifted | None:
        """Return the result of the test of a percentile's difference between both sides.

        `key` names the percentile. The shift is in natural logarithms of seconds. None if there are
        too few values for a test.
        """
        before, after = log_values(self.before, key), log_values(self.after, key)
        match self.basis:
            case Basis.PAIRS:
                return paired_shift(before, after)
            case Basis.BLOCKS:
                return block_shift(*self.block_levels(key))
            case Basis.REPLICATES if min(len(before), len(after)) >= _OWN_SPREAD:
                return welch(before, after)
            case Basis.REPLICATES:
                return pooled_shift(before, after)
            case Basis.HISTORY:
                kinds = [log_values(kind, key) for kind in self._kinds()]
                return pooled_shift(before, after, kinds)
        return None

    def levels(
        self, key: SeriesKey, shifted: Shifted | None
    ) -> tuple[Sequence[float], Sequence[float]]:
        """Return the values of both sides whose means are `shifted.by` apart, as logarithms.

        They are the runs' percentiles, the means of blocks, or of the two blocks next to the
        change. `shifted`: result of the method of this name for the same key.
        """
        if not isinstance(shifted, BlockShift):
            return log_values(self.before, key), log_values(self.after, key)
        before, after = self.block_levels(key)
        return (before[-1:], after[:1]) if shifted.is_step else (before, after)

    def block_levels(self, key: SeriesKey) -> tuple[list[float], list[float]]:
        """Return the means of a percentile's logarithms in the blocks of each side, by time.

        Raises KeyError if the block of a run is not known.
        """
        first, second = (
            [float(np.mean(log_values(runs, key))) for runs in self._runs_by_block(side)]
            for side in self._sides
        )
        return first, second

    @property
    def block_size(self) -> int:
        """Return how many runs each block has; 0 without blocks, or if their sizes differ."""
        if not self.blocks:
            return 0
        sizes = {len(runs) for side in self._sides for runs in self._runs_by_block(side)}
        return sizes.pop() if len(sizes) == 1 else 0

    def _runs_by_block(self, side: Sequence[ComparedRun]) -> list[list[ComparedRun]]:
        def block(run: ComparedRun) -> int:
            return self.blocks[run.run_id]

        return [list(runs) for _, runs in groupby(sorted(side, key=block), block)]

    @property
    def _sides(self) -> tuple[Sequence[ComparedRun], Sequence[ComparedRun]]:
        return self.before, self.after

    def within(self, key: SeriesKey) -> tuple[float, float] | None:
        """Return the 95 % interval of a percentile's change, as logarithms of after / before.

        It is computed from blocks of time within the runs. None if a side has several runs, or if a
        run does not bound the percentile.
        """
        if len(self.before) != 1 or len(self.after) != 1:
            return None
        found = [_estimate(side[0], key) for side in (self.before, self.after)]
        if not all(map(_is_bounded, found)):
            return None
        (first, low_1, high_1), (second, low_2, high_2) = map(_logarithms, found)
        # each end takes the arms that point its way: Zou and Donner, Statistics in Medicine 27,
        # 2008
        by = second - first
        return (
            by - math.hypot(second - low_2, high_1 - first),
            by + math.hypot(high_2 - second, first - low_1),
        )

    def _kinds(self) -> list[list[ComparedRun]]:
        """Return the earlier runs in groups of one fingerprint each.

        Their levels may differ, but their spreads are taken as equal.
        """

        def fingerprint(run: ComparedRun) -> str:
            return run.fingerprint

        grouped = groupby(sorted(self.history, key=fingerprint), fingerprint)
        return [list(runs) for _, runs in grouped]

    @staticmethod
    def _freedom(groups: Iterable[Sequence[ComparedRun]]) -> int:
        return sum(max(len(group) - 1, 0) for group in groups)


def numbered_blocks(
    before: Sequence[ComparedRun], after: Sequence[ComparedRun], size: int
) -> dict[str, int]:
    """Return `Evidence.blocks` for sides of runs in the order of time, `size` runs a block.

    `size` divides the number of runs of each side.
    """
    return {run.run_id: at // size for at, run in enumerate((*before, *after))}


def _ended_first(first: Sequence[Report], second: Sequence[Report]) -> bool:
    ends = [one.finished_at for one in first]
    begins = [one.started_at for one in second]
    if not all(ends) or not all(begins):
        return False
    # times of one format and time zone are in the order of their text
    return max(map(str, ends)) <= min(map(str, begins))


def _estimate(run: ComparedRun, key: SeriesKey) -> BlockEstimate | None:
    workload = run.times.get(key.workload)
    if workload is None:
        return None
    document = workload["actions"].get(key.action) if key.action else workload["service"]
    if document is None:
        return None
    found = block_intervals(LatencyMatrix.from_dict(document), (key.percent,))
    return found.estimates[0] if found else None


def _is_bounded(estimate: BlockEstimate | None) -> bool:
    interval = estimate.interval_ns if estimate else None
    return interval is not None and math.isfinite(interval[1])


def _logarithms(estimate: BlockEstimate | None) -> tuple[float, float, float]:
    assert estimate is not None
    assert estimate.interval_ns is not None
    low, high = estimate.interval_ns
    return math.log(estimate.value_ns), math.log(low), math.log(high)


@dataclass(frozen=True, kw_only=True)
class OddRun:
    """A run that differs from the other runs of its side in at least half of the percentiles."""

    run_id: str
    #: The percentile in which it is most so, and how many times the median of its side that is.
    label: str
    ratio: float


def odd_runs(evidence: Evidence, keys: Sequence[SeriesKey]) -> list[OddRun]:
    """Return the odd runs of both sides, in order; `keys` are the compared percentiles.

    A run is odd if, in at least half of them, it is more than `_DEVIATIONS` standard deviations and
    `_SHARE` from its side's median. Empty with fewer than three runs a side, in pairs or in blocks.
    """
    sides = (evidence.before, evidence.after)
    if evidence.basis in (Basis.PAIRS, Basis.BLOCKS):
        return []
    if min(map(len, sides)) < _FEWEST or not keys:
        return []
    apart = [np.array([log_values(side, key) for key in keys]).T for side in sides]
    apart = [one - np.median(one, axis=0) for one in apart]
    found = []
    for number, side in enumerate(sides):
        other = apart[1 - number]
        for at, run in enumerate(side):
            rest = np.concatenate([np.delete(apart[number], at, axis=0), other])
            # each side has given one of its numbers to its median
            spread = np.sqrt((rest**2).sum(axis=0) / max(len(rest) - 2, 1))
            own = np.abs(apart[number][at])
            if np.mean((own > _DEVIATIONS * spread) & (own > math.log1p(_SHARE))) >= 0.5:
                most = int(own.argmax())
                found.append(
                    OddRun(
                        run_id=run.run_id,
                        label=f"p{keys[most].percent:g} of"
                        f" {keys[most].action or keys[most].workload}",
                        ratio=math.exp(float(apart[number][at][most])),
                    )
                )
    return found
