"""Finds remarkable courses of a load: standstill, drift, outliers; as messages for notes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from osbench.common.values.histogram import Histogram
from osbench.coordinator.formatting import count, spaced
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics
from osbench.coordinator.results.statistics.latency_matrix import LatencyMatrix, percentile_of

#: A closed load stands still if nothing begins for so long, and for so many times the p95 of its
#: iterations, and their mean with think time.
STILL_S, STILL_P95, STILL_MEAN = 0.5, 10.0, 3.0
#: Parts of a load that are compared for a drift, and iterations that each must have.
PARTS, PART_ROWS = 10, 20
#: Rank correlation of the parts' medians with time, and ratio of the last to the first, that are
#: a drift: of independent medians one load in two thousand has this correlation.
DRIFT_CORRELATION, DRIFT_RATIO = 0.85, 1.25
#: Iterations that may stand out, the least share of the others, and by how much they do.
FEW, OTHERS, FACTOR, APART_S = 3, 100, 5.0, 0.1
#: Iterations that run on average in a bin of time in which something runs.
RUNS = 0.5
#: Share of a stretch in which something runs, at least.
MOSTLY = 0.9


def observations(outcome: WorkloadOutcome) -> Iterator[str]:
    """Yield messages on the course of a load, without full stop; nothing if it was steady.

    Standstills are reported for closed loads, drifts for loads of one stage, outliers for all.
    """
    statistics = outcome.statistics
    if not outcome.offered.is_open:
        yield from _standstill(statistics)
    # a load that changes by plan has its times by stage
    if not outcome.stages and outcome.search is None:
        yield from _drift(statistics.over_time.service)
    yield from _outliers(statistics.service.ok, statistics.over_time.service)


@dataclass(frozen=True, kw_only=True)
class _Gap:
    from_s: float
    lasts_s: float


def _standstill(statistics: WorkloadStatistics) -> Iterator[str]:
    """Yield a message on times without starts while iterations ran; nothing without such times."""
    service = statistics.service.ok
    if not service.count or not statistics.ran:
        return
    mean_s = statistics.busy_s / statistics.ran
    p95_s = service.percentile(95) / 1e9
    gaps = _gaps(statistics, max(STILL_S, STILL_P95 * p95_s, STILL_MEAN * mean_s))
    still_s = sum(gap.lasts_s for gap in gaps)
    if not gaps or statistics.first_start is None or statistics.last_start is None:
        return
    rest_s = (statistics.last_start - statistics.first_start) / 1e9 - still_s
    missed = round(statistics.ran * still_s / rest_s) if rest_s > 0 else 0
    longest = max(gaps, key=lambda gap: gap.lasts_s)
    where = f"from {spaced(longest.from_s)} on"
    if len(gaps) > 1:
        where = f"in {len(gaps)} stretches, the longest {spaced(longest.lasts_s)} {where}"
    yield (
        f"no iteration began for {spaced(still_s)}, {where}: a closed load waits for its "
        f"responses, so that about {count(missed)} iterations are in no percentile (coordinated "
        "omission); an open load counts them"
    )


def _gaps(statistics: WorkloadStatistics, least_s: float) -> list[_Gap]:
    """Return the stretches of at least `least_s` seconds without starts in which iterations ran.

    In at least the fraction `MOSTLY` of a stretch's bins, iterations ran.
    """
    series = statistics.profile.series(1 << 20)
    begun = np.flatnonzero(series.starts)
    running = np.array(series.running)
    found = []
    for before, after in zip(begun[:-1].tolist(), begun[1:].tolist(), strict=True):
        lasts_s = (after - before - 1) * series.bin_s
        if lasts_s < least_s:
            continue
        # users may think once their responses have come
        if (running[before + 1 : after] >= RUNS).mean() >= MOSTLY:
            found.append(_Gap(from_s=(before + 1) * series.bin_s, lasts_s=lasts_s))
    return found


def _drift(service: LatencyMatrix) -> Iterator[str]:
    """Yield a message if iterations became steadily slower or faster in the course of the load.

    Compares medians of up to `PARTS` parts; nothing if a part other than the last has fewer than
    `PART_ROWS` iterations, or parts are few.
    """
    parts = service.rebinned(PARTS)
    counts = parts.counts()
    if len(counts) < PARTS // 2 or (counts.sum(axis=1)[:-1] < PART_ROWS).any():
        return
    # the last part may be cut short by the end of the load
    counts = counts if counts[-1].sum() >= PART_ROWS else counts[:-1]
    medians = np.array([percentile_of(row, parts.lowest, 50) for row in counts]) / 1e9
    ranks = np.argsort(np.argsort(medians))
    correlation = float(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1])
    first_s, last_s = float(medians[0]), float(medians[-1])
    ratio = last_s / first_s if first_s else 1.0
    if abs(correlation) < DRIFT_CORRELATION or max(ratio, 1 / ratio) < DRIFT_RATIO:
        return
    verb = "rose" if ratio > 1 else "fell"
    yield (
        f"the median of service time {verb} from {spaced(first_s)} in the first "
        f"{parts.width_s:.3g} s to {spaced(last_s)} in the last: percentiles of the whole load mix "
        "both"
    )


def _outliers(service: Histogram, over_time: LatencyMatrix) -> Iterator[str]:
    """Yield a message if a few iterations took many times as long as all others.

    At most `FEW` iterations, one per `OTHERS`, if they took `FACTOR` times as long as the next
    slowest and at least `APART_S` longer.
    """
    total = service.count
    few = min(FEW, total // OTHERS)
    if not few:
        return
    slowest = service.at_ranks([total - place for place in range(few, -1, -1)])[::-1]
    for number in range(1, few + 1):
        least_s, next_s = slowest[number - 1] / 1e9, slowest[number] / 1e9
        if least_s >= FACTOR * next_s and least_s - next_s >= APART_S:
            took = spaced(slowest[0] / 1e9)
            took = took if number == 1 else f"{spaced(least_s)} to {took}"
            when = f", scheduled {_last_at(over_time):.3g} s into the load" if number == 1 else ""
            yield (
                f"{count(number, 'iteration')} took {took}{when}, the next slowest of "
                f"{count(total)} {spaced(next_s)}"
            )
            return


def _last_at(over_time: LatencyMatrix) -> float:
    """Return the middle of the first time bin with a slowest iteration, seconds after t0."""
    counts = over_time.counts()
    slowest = np.flatnonzero(counts.any(axis=0))[-1]
    return (int(np.flatnonzero(counts[:, slowest])[0]) + 0.5) * over_time.width_s
