"""Computes chart data from a latency matrix: percentiles over time, a heat map, a latency curve."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.results.statistics.latency_matrix import (
    LatencyMatrix,
    bounds_of,
    percentile_of,
    percentiles_of,
)

Ints = NDArray[np.int64]

#: Percentiles of the bands.
BAND_PERCENTS = (50.0, 90.0, 95.0, 99.0)
#: Iterations of an average bin of the bands, and of one of p99; bins widen up to a minute for it.
_BAND_LEAST = 30
_P99_LEAST = 120
_WIDEST_S = 60.0
#: A bin shows no percentile above which it has less than one iteration.
_P99_KNOWN = 100
#: Bins of time at most: of the bands, and of the heat map.
_BAND_BINS = 200
_HEAT_BINS = 240
#: Rows of the heat map for a factor of ten.
PER_DECADE = 12
_CURVE_POINTS = 240
#: The least value, as a percentile.
_FIRST = 1e-6

#: Columns of the heat map as a table.
_COLUMNS = 12
#: Rows of the heat map in one of the table: three for a factor of ten.
_TOGETHER = PER_DECADE // 3


@dataclass(frozen=True, kw_only=True)
class Bands:
    """Percentiles over time in milliseconds, for a chart; None if a bin has too few iterations.

    Widths and middles of bins are seconds.
    """

    width_s: float
    #: Middle of the bin, iterations, then BAND_PERCENTS and the greatest.
    rows: list[list[float | None]]
    p99_width_s: float
    #: Middle of the bin and p99, in wider bins.
    p99: list[list[float]]


@dataclass(frozen=True, kw_only=True)
class Heat:
    """A heat map of durations over time; `cells` are [time bin, row of duration, count]."""

    width_s: float
    cells: list[list[int]]

    @property
    def most(self) -> int:
        """Greatest count of a cell; 0 without cells."""
        return max((cell[2] for cell in self.cells), default=0)


@dataclass(frozen=True, kw_only=True)
class HeatRow:
    """A row of a heat map as a table: counts by time, of durations from `low_s` seconds on."""

    low_s: float
    counts: list[int]


@dataclass(frozen=True, kw_only=True)
class HeatTable:
    """A heat map as a table, the longest durations first; columns begin at `heads` (seconds)."""

    heads: list[float]
    rows: list[HeatRow]


def bands(matrix: LatencyMatrix, end_s: float) -> Bands:
    """Return percentiles over time, in bins widened up to a minute to have enough iterations.

    p99 has wider bins; bins with too few iterations for it are left out. `end_s`: end of the load,
    seconds after t0, at which the last bin is cut.
    """
    counts, width_s = matrix.counts(), matrix.width_s
    whole = int(counts.sum())
    wide = _width(whole, len(counts), width_s, _BAND_LEAST)
    wide = max(wide, _doublings(len(counts), _BAND_BINS))
    wider = max(_width(whole, len(counts), width_s, _P99_LEAST), wide)
    rows = []
    for number, line in enumerate(_group_sums(counts, wide)):
        middle = _middle(number, wide * width_s, end_s)
        rows.append([middle, int(line.sum()), *_percentiles(line, matrix.lowest)])
    p99 = [
        [_middle(number, wider * width_s, end_s), _ms(percentile_of(line, matrix.lowest, 99))]
        for number, line in enumerate(_group_sums(counts, wider))
        if line.sum() >= _P99_KNOWN
    ]
    return Bands(width_s=wide * width_s, rows=rows, p99_width_s=wider * width_s, p99=p99)


def heat(matrix: LatencyMatrix) -> Heat:
    """Return counts of durations by bin of time and by row; cells are sorted.

    Row N begins at 10 ** (N / PER_DECADE) ms.
    """
    shown = matrix.rebinned(_HEAT_BINS)
    counts = shown.counts()
    buckets = np.arange(counts.shape[1]) + shown.lowest
    low, high = bounds_of(buckets)
    row = np.floor(np.log10((low + high) / 2e6) * PER_DECADE).astype(np.int64)
    cells: dict[tuple[int, int], int] = {}
    for at, column in zip(*np.nonzero(counts), strict=True):
        key = (int(at), int(row[column]))
        cells[key] = cells.get(key, 0) + int(counts[at, column])
    return Heat(
        width_s=shown.width_s, cells=[[at, line, cells[at, line]] for at, line in sorted(cells)]
    )


def heat_table(found: Heat) -> HeatTable:
    """Return a heat map as a table: at most `_COLUMNS` columns, three rows for a factor of ten."""
    cells = found.cells
    last = max((cell[0] for cell in cells), default=-1) + 1
    wide = max(1, math.ceil(last / _COLUMNS))
    columns = math.ceil(last / wide)
    counts: dict[int, list[int]] = {}
    for at, row, count in cells:
        line = counts.setdefault(row // _TOGETHER, [0] * columns)
        line[at // wide] += count
    return HeatTable(
        heads=[column * wide * found.width_s for column in range(columns)],
        rows=[
            HeatRow(low_s=10 ** (row * _TOGETHER / PER_DECADE) / 1e3, counts=counts[row])
            for row in sorted(counts, reverse=True)
        ],
    )


def curve(matrix: LatencyMatrix, most_s: float | None) -> list[list[float]]:
    """Return [rarity, milliseconds] points: at rarity 1 one in ten takes longer, at 2 one in 100.

    `most_s`, the exact maximum in seconds, replaces the last value unless it is None. Empty for
    fewer than two durations.
    """
    counts = matrix.summed()
    total = int(counts.sum())
    if total < 2:
        return []
    end = math.log10(total)
    rarities = [step / (_CURVE_POINTS - 1) * end for step in range(_CURVE_POINTS)]
    percents = [max(100 * (1 - 10**-rare), _FIRST) for rare in rarities]
    values = percentiles_of(counts, matrix.lowest, percents)
    points = [[round(rare, 4), _ms(value)] for rare, value in zip(rarities, values, strict=True)]
    if most_s is not None:
        points[-1][1] = round(most_s * 1e3, 4)
    return points


def _percentiles(line: Ints, lowest: int) -> list[float | None]:
    count = int(line.sum())
    *values, greatest = percentiles_of(line, lowest, (*BAND_PERCENTS, 100.0))
    found: list[float | None] = [
        _ms(value) if count * (100 - percent) >= 99.9 else None
        for percent, value in zip(BAND_PERCENTS, values, strict=True)
    ]
    return [*found, _ms(greatest) if count else None]


def _ms(nanoseconds: float) -> float:
    return round(nanoseconds / 1e6, 4)


def _middle(number: int, width_s: float, end_s: float) -> float:
    begin = number * width_s
    return round((begin + max(min(begin + width_s, end_s), begin)) / 2, 3)


def _width(total: int, bins: int, width_s: float, least: int) -> int:
    """Return how many bins to join, a power of 2, to have `least` iterations a bin on average.

    `total` iterations are in `bins` bins of `width_s` seconds. Fewer are joined if they would be
    wider than `_WIDEST_S`.
    """
    together = 1
    while total * together < least * bins and 2 * together * width_s <= _WIDEST_S:
        together *= 2
    return together


def _doublings(bins: int, most: int) -> int:
    together = 1
    while bins > together * most:
        together *= 2
    return together


def _group_sums(counts: Ints, together: int) -> Ints:
    """Return the sums of groups of `together` successive rows; the last group may be smaller."""
    if not len(counts):
        return counts
    summed: Ints = np.add.reduceat(counts, np.arange(0, len(counts), together), axis=0)
    return summed
