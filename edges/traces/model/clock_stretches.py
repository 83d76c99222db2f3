"""Clock offsets that change during a run: steps, and drift.

The samples are put in order of time and into bins. The calls of a bin leave an interval for the
correction. A straight line through the intervals of neighbouring bins is a clock that drifts
evenly; if no line leads through the next interval, the clock was set, and a stretch begins. A line
fits if each two of its bins allow its slope (Moon, Skelly and Towsley, INFOCOM 1999, fit a line to
one-way delays by linear programming, for the same purpose).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from osbench.edges.traces.model.clock_skew import ClockStretch

Floats = NDArray[np.float64]

#: Most bins, least samples in a bin, and least bins for a fit.
_BINS, _IN_BIN, _FEW = 128, 16, 4
#: Largest fraction of the samples that a constant offset may contradict.
_CONTRADICTING = 0.02
#: Least fraction of the calls of a kind that callers must have waited for, for a bound.
_WAITED = 0.8
#: Difference that is not a contradiction, nanoseconds: spans begin a little late.
_NOISE = 100_000.0
#: Fastest drift, nanoseconds per nanosecond; NTP slews a clock by 0.0005.
_FASTEST = 0.002
#: A clock cannot be corrected if a larger fraction of the samples contradicts all stretches.
_UNSTEADY = 0.1


@dataclass(frozen=True, kw_only=True, eq=False)
class Bounds:
    """Calls between two hosts as arrays with an entry per call.

    `low` and `high` bound the nanoseconds to add to times of the second host; infinite if a call
    gives no such bound.
    """

    #: Times of the calls by the clock of the reference, nanoseconds since 1970.
    at: NDArray[np.int64]
    low: Floats
    high: Floats
    #: The call is one to the reference, so that its start gives the upper bound.
    turned: NDArray[np.bool_]
    #: Numbers of the kinds of calls.
    kind: NDArray[np.int64]
    #: The call is a request, for whose response its caller waited.
    answered: NDArray[np.bool_]

    @classmethod
    def of(cls, parts: Sequence[Self]) -> Self:
        """Return the calls of all `parts`, sorted by time. Raises ValueError without parts."""
        whole = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("at", "low", "high", "turned", "kind", "answered")
        }
        order = np.argsort(whole["at"], kind="stable")
        return cls(**{name: values[order] for name, values in whole.items()})


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Result of `fit`: periods of the offset between two hosts, and the error of corrected times.

    `unsteady`: more than 10 % of the calls contradict the periods, so no correction fits.
    """

    #: Empty if the offset was constant.
    stretches: tuple[ClockStretch, ...] = ()
    #: Largest error of a corrected time, nanoseconds.
    error_ns: int = 0
    unsteady: bool = False


def offset_within(low: float, high: float) -> float:
    """Return the clock offset between two bounds: 0 if it lies between them, else their middle.

    If only one bound is finite, returns that bound instead of the middle.
    """
    return 0.0 if low <= 0 <= high else _middle(low, high)


def _middle(low: float, high: float) -> float:
    if math.isinf(low) and math.isinf(high):
        return 0.0
    if math.isinf(low):
        return high
    return low if math.isinf(high) else (low + high) / 2


def fit(bounds: Bounds, constant: float) -> Fit:
    """Return periods of a constant or drifting clock offset that fit the bounds, sorted by time.

    Returns only the error, without periods, if the offset `constant` (nanoseconds) contradicts at
    most 2 % of the calls. Returns an empty result if there are fewer calls than four bins need: 64
    or more.
    """
    count = len(bounds.at)
    size = max(_IN_BIN, -(-count // _BINS))
    if count < _FEW * size:
        return Fit()
    bounds = _waited_for(bounds, size)
    bins = _Bins(bounds, size)
    lines = [_Line(0, len(bins.at), 0.0, constant)]
    if _share(bounds, bins, lines) <= _CONTRADICTING:
        return Fit(error_ns=bins.error_ns(lines))
    lines = _lines(bins)
    return Fit(
        stretches=tuple(_stretches(bounds, bins, lines)),
        error_ns=bins.error_ns(lines),
        unsteady=_share(bounds, bins, lines) > _UNSTEADY,
    )


@dataclass(frozen=True)
class _Line:
    """Correction in the bins `first` to `end - 1`, nanoseconds: `offset + drift * t`.

    t: nanoseconds after the first call of the run.
    """

    first: int
    end: int
    drift: float
    offset: float


class _Bins:
    """Bins of `size` consecutive calls, each with bounds of the correction that its calls allow.

    A bin whose calls contradict one another has infinite bounds.
    """

    def __init__(self, bounds: Bounds, size: int) -> None:
        self.size = size
        self.begin = int(bounds.at[0])
        #: Times of the calls after the first call, nanoseconds.
        self.each = (bounds.at - self.begin).astype(np.float64)
        self.at = np.array(
            [self.each[at : at + size].mean() for at in range(0, len(self.each), size)]
        )
        low = _extreme(bounds.low, size) - _NOISE
        high = -_extreme(-bounds.high, size) + _NOISE
        # the clock was set within the bin, which says nothing then
        torn = low > high
        self.low, self.high = np.where(torn, -np.inf, low), np.where(torn, np.inf, high)

    def error_ns(self, lines: Sequence[_Line]) -> int:
        """Return the median over bins of the distance from line to farther bound, nanoseconds.

        `lines` cover all bins in order. Bins with an infinite bound are left out; 0 if no bin is
        left.
        """
        used = np.concatenate(
            [line.offset + line.drift * self.at[line.first : line.end] for line in lines]
        )
        found = np.maximum(self.high - used, used - self.low)
        found = found[np.isfinite(found)]
        return max(round(float(np.median(found))), 0) if len(found) else 0


def _extreme(values: Floats, size: int) -> Floats:
    """Return nearly the greatest value of each bin of `size` values; the last bin may be shorter.

    The greatest one and a further 1 % are skipped, since they may be wrong.
    """
    short = -len(values) % size
    table = np.concatenate((values, np.full(short, -np.inf))).reshape(-1, size)
    place = size - 2 - size // 100
    found: Floats = np.partition(table, place, axis=1)[:, place]
    return found


def _waited_for(bounds: Bounds, size: int) -> Bounds:
    """Return a copy of the bounds without bounds from ends of calls that callers did not wait for.

    Such calls are messages whose end contradicts every offset that fits the starts in their bin. If
    more than a fifth of a kind are such messages, all messages of that kind lose this bound. A
    bound that is removed becomes infinite.
    """
    number = np.arange(len(bounds.at)) // size
    turned = bounds.turned
    least = _extreme(np.where(turned, -np.inf, bounds.low), size)[number] - _NOISE
    most = -_extreme(np.where(turned, -bounds.high, -np.inf), size)[number] + _NOISE
    possible = np.where(turned, bounds.low <= most, bounds.high >= least)
    possible &= np.isfinite(np.where(turned, bounds.low, bounds.high))
    kinds = np.bincount(bounds.kind)
    share = np.bincount(bounds.kind, possible) / np.maximum(kinds, 1)
    used = bounds.answered | (possible & (share >= _WAITED)[bounds.kind])
    return Bounds(
        at=bounds.at,
        low=np.where(turned & ~used, -np.inf, bounds.low),
        high=np.where(~turned & ~used, np.inf, bounds.high),
        turned=turned,
        kind=bounds.kind,
        answered=bounds.answered,
    )


def _contradicting(bounds: Bounds, bins: _Bins, line: _Line, part: slice) -> NDArray[np.bool_]:
    """Return a boolean per call of `part`: whether the line lies outside the bounds of the call.

    `part` is a slice of the calls. Up to `_NOISE` nanoseconds outside count as inside.
    """
    used = line.offset + line.drift * bins.each[part]
    low, high = bounds.low[part], bounds.high[part]
    found: NDArray[np.bool_] = (low > used + _NOISE) | (high < used - _NOISE)
    return found


def _share(bounds: Bounds, bins: _Bins, lines: Sequence[_Line]) -> float:
    """Return the fraction (0 to 1) of all calls that contradict the line of their bin."""
    wrong = 0
    for line in lines:
        part = slice(line.first * bins.size, line.end * bins.size)
        wrong += int(_contradicting(bounds, bins, line, part).sum())
    return wrong / len(bounds.at)


def _lines(bins: _Bins) -> list[_Line]:
    """Return lines for all bins in order, each through as many consecutive bins as possible.

    A line passes between the bounds of its bins. A new one begins at the first bin that the last
    one could not reach with a drift up to 0.2 %. There must be a bin.
    """
    at, low, high = bins.at, bins.low, bins.high
    begins = [0]
    least, most = -_FASTEST, _FASTEST
    for now in range(1, len(at)):
        before = slice(begins[-1], now)
        apart = np.maximum(at[now] - at[before], 1.0)
        least = max(least, float(((low[now] - high[before]) / apart).max()))
        most = min(most, float(((high[now] - low[before]) / apart).min()))
        if least > most:
            begins.append(now)
            least, most = -_FASTEST, _FASTEST
    return [_line(bins, first, end) for first, end in pairwise([*begins, len(at)])]


def _line(bins: _Bins, first: int, end: int) -> _Line:
    """Return the line through the bins `first` to `end - 1`, without drift if that is possible.

    With three bins or more, the first and the last are not used, unless the run begins or ends
    there: the clock may have been set within them.
    """
    inner = slice(first, end)
    if end - first > 2:
        # the clock may have been set within a bin at either end
        inner = slice(first + (first > 0), end - (end < len(bins.at)))
    at, low, high = bins.at[inner], bins.low[inner], bins.high[inner]
    drift = 0.0
    apart = at[:, None] - at
    later = apart > 0
    if low.max() > high.min() and later.any():
        flattest = ((low[:, None] - high)[later] / apart[later]).max()
        steepest = ((high[:, None] - low)[later] / apart[later]).min()
        drift = float(np.clip((flattest, steepest), -_FASTEST, _FASTEST).mean())
    below, above = float((low - drift * at).max()), float((high - drift * at).min())
    offset = _middle(below, above) if drift else offset_within(below, above)
    return _Line(first, end, drift, offset)


def _stretches(bounds: Bounds, bins: _Bins, lines: Sequence[_Line]) -> Iterator[ClockStretch]:
    """Yield a period for each line, in order of time.

    A period begins at the call near the change for which fewest calls contradict their line.
    """
    begins = [0]
    for before, line in pairwise(lines):
        near = slice((line.first - 1) * bins.size, (line.first + 1) * bins.size)
        sooner = _contradicting(bounds, bins, before, near)
        later = _contradicting(bounds, bins, line, near)
        wrong = np.cumsum(sooner) - sooner + later[::-1].cumsum()[::-1]
        begins.append(max(near.start + int(wrong.argmin()), begins[-1]))
    for line, begin, end in zip(lines, begins, [*begins[1:], len(bins.each)], strict=True):
        at = float(bins.each[begin])
        yield ClockStretch(
            from_ns=bins.begin + round(at),
            to_ns=bins.begin + round(float(bins.each[max(end - 1, begin)])),
            add_ns=round(line.offset + line.drift * at),
            drift=line.drift,
        )
