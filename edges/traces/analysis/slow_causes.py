"""The causes of a band of slow traces: keys that take more time in it than around the median.

The times of a trace's keys sum to its duration, so the differences of their means sum to the
difference of the durations: nothing is left unexplained and nothing is counted twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.edges.traces.analysis.bootstrap import Difference, Floats, difference
from osbench.edges.traces.analysis.features import Features, Ints
from osbench.edges.traces.model.span_keys import WAIT_QUEUE, WAIT_SERVICE, SpanKey

_WAITS = (WAIT_SERVICE, WAIT_QUEUE)
#: Keys that are tested; the remaining ones are summed.
TESTED = 60
#: Most traces of a band that are sampled; more would only increase the run time.
_MOST = 5000
#: Least share of the slow traces' time on one host for the host to be named.
_ON_ONE_HOST = 0.8

#: Criteria for a clear cause, in addition to its p-value. More than this share of the slow traces
#: have more of it than 99 % of the traces in the middle ...
_SEEN = 0.5
#: ... and there is more of it, by this factor, than if its usual spread continued as an exponential
#: tail: otherwise the slow traces are merely the tail of an ordinary distribution, without a
#: separate cause.
_BEYOND = 2.25
#: Several causes may be as clear together as one has to be alone, if each is beyond its usual
#: spread, has this share of the excess, and is in this share of the slow traces.
_SHARE_OF_SEVERAL, _SEEN_OF_SEVERAL = 0.1, 0.06
#: Part of the excess of a key that is due to more calls, for these calls to be the cause.
_MOSTLY_CALLS = 0.5
#: Keys are called by the same repeated calls if they have more calls in the same slow traces: this
#: part of the traces in which any of two has more.
_SAME_TRACES = 0.8


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Excess of one key (a kind of work or of waiting) in slow traces over those around the median.

    Times are mean seconds per trace, calls mean numbers per trace. `clear` says whether it may be
    named as a cause.
    """

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
    #: Share of the slow traces that have more of it than 99 % of the traces in the middle.
    seen_in: float
    #: p-value of the difference, corrected for the number of keys.
    p: float
    #: It is significant, and most of the difference, alone or with others.
    clear: bool
    #: Shares of its time in the slow traces by host, largest first.
    hosts: tuple[tuple[str, float], ...]

    @property
    def key(self) -> SpanKey:
        """Service, name and detail of the spans, or of the wait."""
        return SpanKey(self.who, self.what, self.about)

    @property
    def host(self) -> str:
        """Host with at least 80 % of the key's time in slow traces; else ""."""
        name, share = self.hosts[0] if self.hosts else ("", 0.0)
        return name if share >= _ON_ONE_HOST else ""


@dataclass(frozen=True, kw_only=True)
class RepeatedCalls:
    """A cause of several keys: calls that slow traces make more often, with all that they take.

    Such as a request that is made ten times instead of once, with its phases or its inner spans.
    """

    #: The key that is called first, and all keys; each is a clear cause.
    first: Cause
    keys: tuple[SpanKey, ...]
    #: Share of all keys together in the excess, with its 95 % interval.
    share: float
    share_interval: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Middle:
    """The traces around the median (`base`), and all traces that slow ones were selected from.

    Traces are given as rows of `features`.
    """

    features: Features
    #: Numbers of the traces in the middle, and of all that succeeded and are not outliers.
    base: Ints
    all: Ints
    seed: int = 0


class CauseSearch:
    """Finds the keys whose time makes a band of traces slower than the traces around the median.

    `slow` has the rows of the band, `between` its percentiles, nan for failed traces. Neither the
    band nor the middle may be empty.
    """

    def __init__(self, middle: Middle, slow: Ints, between: tuple[float, float]) -> None:
        self._features = features = middle.features
        self._middle, self._slow, self._between = middle, slow, between
        # means over all traces, so that they sum to the total
        both = (slow, middle.base)
        self._means = [features.mean(rows, features.time) / 1e9 for rows in both]
        self._calls = [features.mean(rows, features.calls) for rows in both]
        self._excess = self._means[0] - self._means[1]
        self._occurs = [features.occurrence(rows).tolist() for rows in both]
        drawn = [thinned_rows(rows, _MOST) for rows in both]
        self._times = [features.dense(rows, features.time) / 1e9 for rows in drawn]
        self._numbers = [features.dense(rows, features.calls) for rows in drawn]
        # the greatest differences are tested separately, all others together
        order = np.argsort(-np.abs(self._excess), kind="stable")
        self._tested = order[:TESTED]
        self._episodes = _episodes(middle, drawn[0])
        self.found: Difference = self._difference(self._tested)
        every = thinned_rows(middle.all, _MOST)
        self._usual = features.dense(every, features.time)[:, self._tested] / 1e9
        self._usual_calls = features.dense(every, features.calls)[:, self._tested]
        self._repeated = self._repeated_columns()
        self._clear = self._clear_columns()

    def causes(self) -> list[Cause]:
        """Return a cause for each tested key, clear or not, largest excess first.

        Tested are the `TESTED` keys with the greatest differences; keys without time in slow traces
        and in the middle are left out.
        """
        clear = {column for columns in self._clear for column in columns}
        found = [
            self._cause(column, int(key), column in clear)
            for column, key in enumerate(self._tested)
        ]
        found = [cause for cause in found if cause.slow_s or cause.base_s]
        return sorted(found, key=lambda cause: -cause.excess_s)

    def repetitions(self) -> tuple[RepeatedCalls, ...]:
        """Return the clear causes that have several keys, largest share first."""
        found = [self._repeated_calls(columns) for columns in self._clear if len(columns) > 1]
        return tuple(sorted(found, key=lambda one: -one.share))

    def _difference(self, alone: Ints) -> Difference:
        """Return the difference of slow traces and middle by column: a key of `alone` in each.

        The last column is the sum of all other keys.
        """
        tables = [
            np.column_stack((table[:, alone], np.delete(table, alone, axis=1).sum(axis=1)))
            for table in self._times
        ]
        return difference(
            tables[0],
            tables[1],
            self._middle.seed,
            clusters=self._episodes,
            tests=int((self._means[0] + self._means[1] > 0).sum()),
        )

    def _repeated_columns(self) -> list[list[int]]:
        """Return columns (positions among the tested keys) whose excess is due to more calls.

        Columns that have more calls in the same slow traces are in one list: a call that is made
        more often takes all its phases, or its inner spans, more often.
        """
        slow, base = (table[:, self._tested] for table in self._numbers)
        more = slow > np.percentile(base, 99, axis=0)
        found: list[list[int]] = []
        for column in np.argsort(-self._excess[self._tested]).tolist():
            if not self._is_repeated(column, more[:, column]):
                continue
            for columns in found:
                both = more[:, [columns[0], column]]
                if both.all(axis=1).sum() >= _SAME_TRACES * both.any(axis=1).sum():
                    columns.append(column)
                    break
            else:
                found.append([column])
        return found

    def _is_repeated(self, column: int, more: NDArray[np.bool_]) -> bool:
        """Return whether a key has more calls than is usual, and takes longer because of them.

        `column` is its position among the tested keys; `more` says of each slow trace whether it
        has more calls than 99 % of the middle.
        """
        key = self._tested[column]
        excess = float(self._excess[key])
        calls = [float(calls[key]) for calls in self._calls]
        tail = _tail(self._usual_calls[:, column], self._between)
        return bool(
            excess > 0
            and more.mean() >= _SEEN_OF_SEVERAL
            and self._more_calls_s(int(key)) >= _MOSTLY_CALLS * excess
            and calls[0] - calls[1] > _BEYOND * tail
        )

    def _clear_columns(self) -> list[list[int]]:
        """Return the clear causes, each as columns (positions among the tested keys); or none.

        Candidates are keys, or keys of repeated calls, beyond their usual spread with a part of the
        excess. All candidates are causes if a single one explains the excess alone, or if all
        explain it together.
        """
        grouped = {column for columns in self._repeated for column in columns}
        single = [[column] for column in range(len(self._tested)) if column not in grouped]
        parts = [columns for columns in (*self._repeated, *single) if self._is_part(columns)]
        alone = any(self._is_clear([columns]) for columns in parts)
        return parts if alone or (len(parts) > 1 and self._is_clear(parts)) else []

    def _cause(self, column: int, key: int, clear: bool) -> Cause:
        slow, base = (table[:, key] for table in self._times)
        calls_slow, calls_base = (float(calls[key]) for calls in self._calls)
        slow_s, base_s = (float(means[key]) for means in self._means)
        excess = float(self._excess[key])
        more = self._more_calls_s(key)
        seen = float(np.mean(slow > np.percentile(base, 99)))
        difference = self.found
        share_low = float(difference.share_low[column])
        whole = float(self._excess.sum())
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

    def _more_calls_s(self, key: int) -> float:
        """Return the seconds of excess due to more calls, each as long as in the middle.

        Calls that do not occur in the middle count as additional calls.
        """
        (calls_slow, calls_base) = (float(calls[key]) for calls in self._calls)
        slow_s, base_s = (float(means[key]) for means in self._means)
        each_base = base_s / calls_base if calls_base else slow_s / max(calls_slow, 1e-300)
        return (calls_slow - calls_base) * each_base

    def _repeated_calls(self, columns: list[int]) -> RepeatedCalls:
        keys = self._tested[columns]
        first = self._first_called(keys)
        low, high = self._share_bounds(columns)
        return RepeatedCalls(
            first=self._cause(columns[keys.tolist().index(first)], first, clear=True),
            keys=tuple(self._features.keys[key] for key in keys.tolist()),
            share=float(self._excess[keys].sum() / self._excess.sum()),
            share_interval=(low, high),
        )

    def _first_called(self, keys: Ints) -> int:
        """Return which of `keys` most slow traces call first; the first of `keys` if unknown.

        Waits are for calls, so they are not the first if there is another key.
        """
        features = self._features
        calls = [key for key in keys.tolist() if features.keys[key].what not in _WAITS]
        numbers, counts = np.unique(features.shape[self._slow], return_counts=True)
        for number in numbers[np.argsort(-counts, kind="stable")].tolist():
            for key in features.shapes[number] if number >= 0 else ():
                if key in calls:
                    return int(key)
        return int((calls or keys.tolist())[0])

    def _hosts(self, key: int) -> tuple[tuple[str, float], ...]:
        features = self._features
        entries = features.entries_of(self._slow)
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

    def _is_beyond(self, columns: list[int]) -> bool:
        tail = _tail(self._usual[:, columns].sum(axis=1), self._between)
        return float(self._excess[self._tested[columns]].sum()) > _BEYOND * tail

    def _is_part(self, columns: list[int]) -> bool:
        """Return whether the tested keys at `columns` may be a cause together with others.

        A corrected p-value must be below 0.05, and their part of the excess at least a tenth. Some
        of the slow traces must have more of them than 99 % of the middle, and these far more than
        their usual spread explains.
        """
        keys = self._tested[columns]
        slow, base = (table[:, keys].sum(axis=1) for table in self._times)
        seen = slow > np.percentile(base, 99)
        if seen.mean() < _SEEN_OF_SEVERAL:
            return False
        tail = _tail(self._usual[:, columns].sum(axis=1), (99, 100))
        return bool(
            float(self.found.p[columns].min()) < 0.05
            and self._excess[keys].sum() >= _SHARE_OF_SEVERAL * self._excess.sum()
            and slow[seen].mean() - base.mean() > _BEYOND * tail
        )

    def _is_clear(self, parts: list[list[int]]) -> bool:
        """Return whether the tested keys at the positions in `parts` together explain the excess.

        Their part must surely be more than half, their excess beyond their usual spread, and most
        slow traces must have more of them than 99 % of the middle.
        """
        columns = [column for part in parts for column in part]
        # noise gives each key about its usual share; so do repeated calls, but their number shows
        # that they are not noise
        noisy = self._tested[[part[0] for part in parts if part not in self._repeated]]
        base_share = float(self._means[1][noisy].sum()) / max(float(self._means[1].sum()), 1e-300)
        return bool(
            self.found.total_low > 0
            # a share well above its usual one, so that the largest key is not named for noise
            and self._share_bounds(columns)[0] > (1 + base_share) / 2
            and self._seen(columns) > _SEEN
            and self._is_beyond(columns)
        )

    def _share_bounds(self, columns: list[int]) -> tuple[float, float]:
        if len(columns) == 1:
            at = columns[0]
            return float(self.found.share_low[at]), float(self.found.share_high[at])
        # the share of all others is that of these, the other way round
        others = self._difference(self._tested[columns])
        return 1 - float(others.share_high[-1]), 1 - float(others.share_low[-1])

    def _seen(self, columns: list[int]) -> float:
        """Return which fraction of slow traces has more time in keys than 99 % of the middle.

        0 to 1. The times of all keys at `columns` (positions among the tested keys) are added up.
        """
        slow, base = (table[:, self._tested[columns]].sum(axis=1) for table in self._times)
        return float(np.mean(slow > np.percentile(base, 99)))


def _tail(usual: Floats, between: tuple[float, float]) -> float:
    """Return how far the values between two percentiles would exceed the median, on average.

    The spread of the values of all ordinary traces is continued as an exponential tail, from median
    and upper quartile: rare faults do not affect it. 0 for failed traces (nan).
    """
    low, high = (percent / 100 for percent in between)
    if math.isnan(low):
        return 0.0
    median, quartile = np.percentile(usual, (50, 75))
    scale = float(quartile - median) / math.log(2)
    return scale * (_exponential_mean(low, high) - math.log(2))


def thinned_rows(rows: Ints, most: int) -> Ints:
    """Return `rows` if they are at most `most`, else `most` of them at equal distances.

    The first and the last row are among them.
    """
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(int)]


def _episodes(middle: Middle, slow: Ints) -> Ints:
    """Return a cluster number for each row of `slow`, the same for close neighbours.

    Neighbours may be slow for a single reason: a stall of a second is one event, however many
    requests it delays. Traces are close if their iteration numbers differ by at most a tenth of the
    average distance, or by 1: one in ten randomly placed traces joins its neighbour's cluster. Each
    row is alone if iteration numbers repeat, or are unknown.
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
    """Return the mean of the unit exponential distribution between two quantiles (0 to 1)."""

    def integral(share: float) -> float:
        # of -ln(1 - u) from `share` to 1
        left = 1 - share
        return left - left * math.log(left) if left > 0 else 0.0

    return (integral(low) - integral(high)) / (high - low)
