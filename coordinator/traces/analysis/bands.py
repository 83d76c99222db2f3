"""Compares a band of slow traces with those in the middle, key by key.

The times of a trace's keys sum to its duration, so the differences of their means sum to the
difference of the durations: nothing is left unexplained and nothing is counted twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.traces.analysis.bootstrap import Difference, difference
from osbench.coordinator.traces.analysis.features import Features, Ints
from osbench.coordinator.traces.analysis.quantiles import ENOUGH
from osbench.coordinator.traces.model.span_keys import SpanKey

Floats = NDArray[np.float64]

#: Keys that are tested; the remaining ones are summed.
TESTED = 60
#: Most traces of a band that are sampled; more would only increase the run time.
_MOST = 5000
_EXEMPLARS = 3
#: Least share of the slow traces' time on one host for the host to be named.
_ON_ONE_HOST = 0.8

#: Criteria for a clear cause, in addition to its p-value. More than this share of the slow traces
#: have more of it than 99 % of those in the middle ...
_SEEN = 0.5
#: ... and there is more of it, by this factor, than if its usual spread continued as an
#: exponential tail: otherwise the slow traces are merely the tail of an ordinary distribution,
#: without a cause of their own.
_BEYOND = 2.25


@dataclass(frozen=True, kw_only=True)
class Cause:
    """The contribution of one key to slow traces. Times are mean seconds per trace."""

    who: str
    what: str
    about: str
    #: Excess over the middle, with its 95 % interval, and its share of the total excess.
    excess_s: float
    interval_s: tuple[float, float]
    share: float
    share_interval: tuple[float, float]
    slow_s: float
    base_s: float
    calls_slow: float
    calls_base: float
    #: Shares of the traces with any call.
    occurs_slow: float
    occurs_base: float
    #: The two parts of the excess: more calls, each as long as in the middle; longer calls.
    more_calls_s: float
    slower_calls_s: float
    #: Share of the slow traces that have more of it than 99 % of those in the middle.
    seen_in: float
    #: p-value of the difference, corrected for the number of keys.
    p: float
    #: It is significant, and most of the difference.
    clear: bool
    #: Shares of its time in the slow traces by host, largest first.
    hosts: tuple[tuple[str, float], ...]

    @property
    def key(self) -> SpanKey:
        """The key."""
        return SpanKey(self.who, self.what, self.about)

    @property
    def host(self) -> str:
        """The host with most of the time; "" if it is spread over hosts or not known."""
        name, share = self.hosts[0] if self.hosts else ("", 0.0)
        return name if share >= _ON_ONE_HOST else ""


@dataclass(frozen=True, kw_only=True)
class BandExample:
    """A trace that is typical of its band."""

    trace_id: str
    #: -1 if it is not of an iteration.
    iteration: int
    duration_s: float
    #: Its spans are kept, so it can be shown.
    kept: bool


@dataclass(frozen=True, kw_only=True)
class Band:
    """Slow traces compared with those in the middle. Times are seconds."""

    name: str
    #: Number of traces in the band, and in the middle.
    traces: int
    base_traces: int
    #: Shortest and longest.
    from_s: float
    to_s: float
    mean_s: float
    base_s: float
    excess_s: float
    interval_s: tuple[float, float]
    #: There are enough traces to compare; if not, there are no causes.
    enough: bool
    #: Largest excess first.
    causes: tuple[Cause, ...] = ()
    #: Excess that is not among the causes.
    rest_s: float = 0.0
    exemplars: tuple[BandExample, ...] = ()

    @property
    def clear(self) -> Cause | None:
        """The clear cause, if there is one."""
        return next((cause for cause in self.causes if cause.clear), None)


@dataclass(frozen=True, kw_only=True)
class Middle:
    """The traces that slow ones are compared with."""

    features: Features
    #: Numbers of the traces in the middle, and of all that succeeded and are not outliers.
    base: Ints
    all: Ints
    seed: int = 0


def compare(
    middle: Middle, name: str, slow: Ints, between: tuple[float, float], shown: int = 10
) -> Band:
    """Explain a band between two percentiles; for failures both are nan."""
    features = middle.features
    total = features.total / 1e9
    enough = len(slow) >= ENOUGH and len(middle.base) >= ENOUGH
    excess = _mean(total[slow]) - _mean(total[middle.base])
    band = {
        "name": name,
        "traces": len(slow),
        "base_traces": len(middle.base),
        "from_s": float(total[slow].min()) if len(slow) else 0.0,
        "to_s": float(total[slow].max()) if len(slow) else 0.0,
        "mean_s": _mean(total[slow]),
        "base_s": _mean(total[middle.base]),
        "excess_s": excess,
        "exemplars": exemplars(features, slow),
    }
    if not enough:
        return Band(**band, interval_s=(excess, excess), enough=False)  # type: ignore[arg-type]  # one dict of several types
    comparison = _Comparison(middle, slow, between)
    causes = comparison.causes()
    return Band(
        **band,  # type: ignore[arg-type]  # one dict of several types
        enough=True,
        interval_s=(comparison.found.total_low, comparison.found.total_high),
        causes=tuple(causes[:shown]),
        rest_s=excess - sum(cause.excess_s for cause in causes[:shown]),
    )


def exemplars(features: Features, rows: Ints) -> tuple[BandExample, ...]:
    """The traces nearest to the medians of all keys; kept ones first."""
    rows = _thinned(rows, 1000)
    if not len(rows):
        return ()
    times = features.dense(rows, features.time)
    apart = np.abs(times - np.median(times, axis=0)).sum(axis=1)
    order = np.lexsort((rows, apart, ~features.kept[rows]))
    return tuple(exemplar(features, at) for at in rows[order[:_EXEMPLARS]].tolist())


def exemplar(features: Features, at: int) -> BandExample:
    """A trace as an example."""
    return BandExample(
        trace_id=features.traces[at],
        iteration=int(features.iteration[at]),
        duration_s=float(features.total[at]) / 1e9,
        kept=bool(features.kept[at]),
    )


class _Comparison:
    def __init__(self, middle: Middle, slow: Ints, between: tuple[float, float]) -> None:
        self._features = features = middle.features
        self._slow = slow
        # means over all traces, so that they sum to the total
        both = (slow, middle.base)
        self._means = [features.mean(rows, features.time) / 1e9 for rows in both]
        self._calls = [features.mean(rows, features.calls) for rows in both]
        self._excess = self._means[0] - self._means[1]
        self._occurs = [features.occurrence(rows).tolist() for rows in both]
        drawn = [_thinned(rows, _MOST) for rows in both]
        self._times = [features.dense(rows, features.time) / 1e9 for rows in drawn]
        # the greatest differences are tested separately, all others together
        order = np.argsort(-np.abs(self._excess), kind="stable")
        self._tested = order[:TESTED]
        rest = order[TESTED:]
        tables = [
            np.column_stack((table[:, self._tested], table[:, rest].sum(axis=1)))
            for table in self._times
        ]
        self.found: Difference = difference(
            tables[0],
            tables[1],
            middle.seed,
            clusters=_episodes(middle, drawn[0]),
            tests=int((self._means[0] + self._means[1] > 0).sum()),
        )
        self._tails = self._tail(middle.all, between)

    def causes(self) -> list[Cause]:
        """Every tested key with a time above 0, largest excess first."""
        found = [self._cause(column, int(key)) for column, key in enumerate(self._tested)]
        found = [cause for cause in found if cause.slow_s or cause.base_s]
        return sorted(found, key=lambda cause: -cause.excess_s)

    def _cause(self, column: int, key: int) -> Cause:
        slow, base = (table[:, key] for table in self._times)
        calls_slow, calls_base = (float(calls[key]) for calls in self._calls)
        slow_s, base_s = (float(means[key]) for means in self._means)
        excess = float(self._excess[key])
        # calls that do not occur in the middle count as additional calls
        each_base = base_s / calls_base if calls_base else slow_s / max(calls_slow, 1e-300)
        more = (calls_slow - calls_base) * each_base
        seen = float(np.mean(slow > np.percentile(base, 99)))
        difference = self.found
        share_low = float(difference.share_low[column])
        whole = float(self._excess.sum())
        base_share = base_s / max(float(self._means[1].sum()), 1e-300)
        clear = bool(
            difference.total_low > 0
            and float(difference.p[column]) < 0.05
            # a share well above its usual one, so that the largest key is not named for noise
            and share_low > (1 + base_share) / 2
            and seen > _SEEN
            and excess > _BEYOND * self._tails[column]
        )
        who, what, about = self._features.keys[key]
        return Cause(
            who=who,
            what=what,
            about=about,
            excess_s=excess,
            interval_s=(float(difference.low[column]), float(difference.high[column])),
            share=excess / whole if whole else 0.0,
            share_interval=(share_low, float(difference.share_high[column])),
            slow_s=slow_s,
            base_s=base_s,
            calls_slow=calls_slow,
            calls_base=calls_base,
            occurs_slow=self._occurs[0][key],
            occurs_base=self._occurs[1][key],
            more_calls_s=more,
            slower_calls_s=excess - more,
            seen_in=seen,
            p=float(difference.p[column]),
            clear=clear,
            hosts=self._hosts(key),
        )

    def _hosts(self, key: int) -> tuple[tuple[str, float], ...]:
        features = self._features
        inside = np.zeros(len(features), bool)
        inside[self._slow] = True
        entries = inside[features.rows()]
        spent = np.bincount(
            features.place[entries], features.time[entries], minlength=len(features.places)
        )
        hosts: dict[str, float] = {}
        for (number, host), time in zip(features.places, spent.tolist(), strict=True):
            if number == key and time and host:
                hosts[host] = hosts.get(host, 0.0) + time
        whole = sum(hosts.values())
        ordered = sorted(hosts.items(), key=lambda pair: (-pair[1], pair[0]))
        return tuple((host, time / whole) for host, time in ordered[:5])

    def _tail(self, rows: Ints, between: tuple[float, float]) -> Floats:
        """The excess of each tested key if its usual spread continued as an exponential tail.

        The spread is estimated from median and upper quartile, which rare faults do not affect.
        """
        low, high = (percent / 100 for percent in between)
        if math.isnan(low):
            return np.zeros(len(self._tested))
        times = self._features.dense(_thinned(rows, _MOST), self._features.time) / 1e9
        median, quartile = np.percentile(times[:, self._tested], (50, 75), axis=0)
        scale: Floats = (quartile - median) / math.log(2)
        return scale * (_exponential_mean(low, high) - math.log(2))


def _episodes(middle: Middle, slow: Ints) -> Ints:
    """A cluster number for each slow trace, the same for close neighbours.

    Neighbours may be slow for a single reason: a stall of a second is one event, however many
    requests it delays. Traces are close if their distance is below a tenth of the average one, so
    that one in ten randomly placed traces is assigned to its neighbour's cluster.
    """
    numbers = middle.features.iteration[slow]
    if len(np.unique(numbers)) < len(slow):
        # not of iterations, or of several runs
        return np.arange(len(slow))
    every = middle.features.iteration[middle.all]
    close = int(every.max() - every.min() + 1) // (10 * len(slow))
    order = np.argsort(numbers)
    found = np.empty(len(slow), np.int64)
    found[order] = np.concatenate(([0], np.cumsum(np.diff(numbers[order]) > max(close, 1))))
    return found


def _exponential_mean(low: float, high: float) -> float:
    """Mean of the unit exponential distribution between two of its quantiles, 0 to 1."""

    def integral(share: float) -> float:
        # of -ln(1 - u) from `share` to 1
        left = 1 - share
        return left - left * math.log(left) if left > 0 else 0.0

    return (integral(low) - integral(high)) / (high - low)


def _thinned(rows: Ints, most: int) -> Ints:
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(int)]


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else 0.0
