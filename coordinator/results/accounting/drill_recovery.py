"""Time in which a load recovered from a fault: the end of the last stretch that is not as before.

Two things are judged in every stretch of bins of time: the share of iterations that do not succeed,
and the response times of others, by p50 and p90. docs/adr/0048-drills.md has the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.results.accounting.delayed_iterations import (
    LatenessOverTime,
    most_delayed_ns,
    touched_share,
)
from osbench.coordinator.results.accounting.drill_figures import Bounds, SlowLimit
from osbench.coordinator.results.accounting.drill_rows import PhaseRows, together
from osbench.coordinator.results.statistics.block_intervals import (
    BlockEstimate,
    block_intervals,
    rank_bounds,
)
from osbench.coordinator.results.statistics.latency_matrix import latencies_at, percentile_of
from osbench.coordinator.results.statistics.off_stretches import OffStretch, fewest_bad, last_off
from osbench.coordinator.results.statistics.proportions import design_effect, share_interval

Ints = NDArray[np.int64]

#: Iterations that have to succeed before a fault for its response times to be known.
ENOUGH = 40
#: Percentiles of response times that are compared with those before the fault.
JUDGED = (50.0, 90.0)
#: A percentile that grows by less than a tenth is as before.
LEAST_GROWTH = 1.1
#: Greatest share of failures before a fault that one can recover to.
_MOST_FAILING = 0.9
#: Bins of time at most that are looked at for a recovery.
_BINS = 600
#: Iterations of a block of time at least, for its percentiles; and the fewest blocks.
_BLOCK, _FEWEST_BLOCKS = 30, 8
#: Successes of one bin resemble each other: one pause makes many slow. They count as so many.
_IN_BIN = 5
#: Normal deviate of a two-sided 95 % interval.
_Z = 1.96


@dataclass(frozen=True, kw_only=True)
class _Trait:
    """A kind of iterations whose share is compared with its share before the fault.

    `usual` is the fraction that is as before, `effect` the variance of their number relative to
    independent iterations. `slow` is the limit of slow iterations; None for failures.
    """

    usual: float
    effect: float
    slow: SlowLimit | None = None


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """Time from the fault to recovery, with its interval; seconds.

    `at_s` is None if the load did not recover, or that is not known: `doubt` is the reason.
    """

    at_s: float | None = None
    ci: Bounds | None = None
    doubt: str = ""
    #: Limits above which a percentile of response times is not as before.
    limits: tuple[SlowLimit, ...] = ()
    #: Whether the load generator was late nearly all the time before the fault.
    late_before: bool = False
    #: Shortest outage of all requests that would be seen.
    unseen_s: float | None = None
    #: Begin and end of the last stretch that is not as before, seconds after the fault.
    stretch_s: tuple[float, float] | None = None
    #: Greatest lateness of the load generator in it.
    lag_s: float = 0.0


def recoveries(
    before: PhaseRows, since: PhaseRows, lasted_s: float, lateness: LatenessOverTime, fault_s: float
) -> tuple[Recovery, Recovery]:
    """Return two recoveries: as measured, and without delays and failures by the load generator.

    `lasted_s`: seconds from the fault, `fault_s` after t0, to the last scheduled iteration. Both
    are equal if the generator delayed and failed none. A recovery has a `doubt` and no time if the
    load was not as before when it ended. Both are so if `since` is empty, fewer than `ENOUGH`
    succeeded before the fault, or most may have failed before it. Time in which the generator was
    late sets no limits, if enough is left.
    """
    if not since.counts().sum():
        unknown = Recovery(doubt="no iteration was scheduled after the fault")
        return unknown, unknown
    if (succeeded := int(before.well().sum())) < ENOUGH:
        unknown = Recovery(
            doubt=f"{succeeded} iterations ended well before the fault: {ENOUGH} are needed to know"
            " the usual times"
        )
        return unknown, unknown
    punctual = before.punctual(lateness)
    is_late = int(punctual.well().sum()) < ENOUGH
    failures, *slow = _traits(before if is_late else punctual)
    if failures.usual > _MOST_FAILING:
        limits = tuple(one.slow for one in slow if one.slow is not None)
        unknown = Recovery(doubt="most iterations failed before the fault", limits=limits)
        return unknown, unknown
    load = _Load(since, lateness, fault_s, lasted_s)
    measured = replace(load.recovery([failures, *slow], delayed=True), late_before=is_late)
    if not load.is_delayed:
        return measured, measured
    return measured, load.recovery([failures, *slow], delayed=False)


class _Load:
    """The load since a fault, in bins of time of at most `_BINS`."""

    def __init__(
        self, since: PhaseRows, lateness: LatenessOverTime, fault_s: float, lasted_s: float
    ) -> None:
        self._since = since
        counts = since.counts()
        self._times = 1
        while len(counts) > _BINS * self._times:
            self._times *= 2
        self._width_s = self._times * since.width_s
        self._counts = together(counts, self._times)
        self._bad = together(since.bad(), self._times)
        self._well = together(since.well(), self._times)
        self._own = together(since.own(), self._times)
        self._count_per_s = int(counts.sum()) / max(lasted_s, self._width_s)
        late, self._lag_ns = lateness.by_bin(fault_s, since.width_s, len(counts))
        self._touched = touched_share(late)

    @property
    def is_delayed(self) -> bool:
        """Return whether the load generator may have delayed or failed any iteration."""
        return bool(self._touched.any() or self._own.any())

    def recovery(self, traits: list[_Trait], *, delayed: bool) -> Recovery:
        """Return the recovery: 0 s if nothing was unusual, no time if something was at the end.

        `delayed`: with delays and failures by the generator.
        """
        bins = len(self._counts)
        found: list[tuple[OffStretch, int]] = []
        seen_s: list[float] = []
        for one in traits:
            bad, counts = self._of(one, delayed=delayed)
            needed = fewest_bad(bins, one.usual, one.effect)
            seen_s.append(needed / self._count_per_s)
            if (off := last_off(bad, counts, one.usual, one.effect)) is not None:
                found.append((off, needed))
        limits = tuple(
            replace(one.slow, unseen_s=unseen_s)
            for one, unseen_s in zip(traits, seen_s, strict=True)
            if one.slow is not None
        )
        common = Recovery(limits=limits, unseen_s=seen_s[0])
        if not found:
            return replace(common, at_s=0.0, ci=(0.0, max(seen_s)))
        last, needed = max(found, key=lambda one: one[0].end)
        stretch_s = (last.begin * self._width_s, last.end * self._width_s)
        here = slice(last.begin * self._times, last.end * self._times)
        lag_s = float(np.max(self._lag_ns[here], initial=0.0)) / 1e9
        common = replace(common, stretch_s=stretch_s, lag_s=lag_s)
        if int(self._counts[last.end :].sum()) < needed:
            return replace(common, doubt="the load had not recovered when it ended")
        return replace(
            common, at_s=stretch_s[1], ci=_bounds([off for off, _ in found], self._width_s)
        )

    def _of(self, trait: _Trait, *, delayed: bool) -> tuple[Ints, Ints]:
        """Return by bin the numbers of iterations with a trait, and of all that could have it."""
        slow = trait.slow
        if slow is None:
            bad = self._bad if delayed else self._bad - self._own
            return bad, self._counts
        found = self._since.slow(slow.limit_s * 1e9)
        if not delayed:
            most_ns = most_delayed_ns(slow.before_s * 1e9, self._lag_ns)
            explained = self._since.slow(slow.limit_s * 1e9, most_ns)
            touched = np.ceil(self._touched * self._since.well()).astype(np.int64)
            found = found - np.minimum(explained, touched)
        return together(found, self._times), self._well


def _traits(before: PhaseRows) -> Iterator[_Trait]:
    """Yield the trait of failures, then of slowness by each percentile of `JUDGED` known before."""
    bad, counts, well = before.bad(), before.counts(), before.well()
    effect = design_effect(bad, counts)
    yield _Trait(usual=share_interval(int(bad.sum()), int(counts.sum()), effect)[1], effect=effect)
    found = block_intervals(before.response, JUDGED)
    assert found is not None
    for one in found.estimates:
        upper_ns = _upper_ns(before, one)
        if math.isinf(upper_ns):
            continue
        limit_ns = max(upper_ns, LEAST_GROWTH * one.value_ns, _spread_ns(before, one.percent))
        slow = before.slow(limit_ns)
        effect = max(design_effect(slow, well), float(well[well > 0].mean()) / _IN_BIN)
        _, usual = share_interval(int(slow.sum()), int(well.sum()), effect)
        yield _Trait(
            usual=max(usual, 1 - one.percent / 100),
            effect=effect,
            slow=SlowLimit(
                percent=one.percent, before_s=one.value_ns / 1e9, limit_s=limit_ns / 1e9
            ),
        )


def _upper_ns(before: PhaseRows, estimate: BlockEstimate) -> float:
    """Return the upper bound of a percentile before the fault, ns; infinite without one.

    If blocks of time give none, iterations are taken as independent.
    """
    if estimate.interval_ns is not None and not math.isinf(estimate.interval_ns[1]):
        return estimate.interval_ns[1]
    sums, share = before.response.summed(), estimate.percent / 100
    total = float(sums.sum())
    ranks = rank_bounds(total, share, _Z * math.sqrt(total * share * (1 - share)))
    if ranks is None or math.isinf(ranks[1]):
        return math.inf
    return float(latencies_at(sums, before.response.lowest, np.array([ranks[1]]))[0])


def _spread_ns(before: PhaseRows, percent: float) -> float:
    """Return the upper end of a percentile's spread over short blocks of time before the fault, ns.

    It is two standard deviations above the median. The deviation is from ranks, so that a few bad
    moments do not change it. 0 if there are fewer than `_FEWEST_BLOCKS` blocks.
    """
    counts = before.response.counts()
    each = math.ceil(_BLOCK * len(counts) / max(int(counts.sum()), 1))
    blocks = np.add.reduceat(counts, np.arange(0, len(counts) - each + 1, each))
    found = [percentile_of(one, before.response.lowest, percent) for one in blocks if one.any()]
    if len(found) < _FEWEST_BLOCKS:
        return 0.0
    middle, deviation = np.percentile(found, [50, 84])
    return float(middle + 2 * (deviation - middle))


def _bounds(found: list[OffStretch], width_s: float) -> Bounds:
    """Return the interval of the recovery, in seconds after the fault; bins are `width_s` wide.

    `found`: last stretches in which some trait was unusual. The interval goes from a bin before the
    earliest end of the last stretch to a bin after the latest end of all.
    """
    last = max(found, key=lambda one: one.end)
    latest = max(one.latest_end for one in found)
    return max(0.0, (last.earliest_end - 1) * width_s), (latest + 1) * width_s
