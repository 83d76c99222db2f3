"""Estimates clock offsets between hosts from the spans of all traces together.

The span of a callee on another host lies within the caller's span: it starts no earlier and ends
no later. So for each such pair of spans the correction of the callee's clock is at least
`caller.start - callee.start` and at most `caller.end - callee.end`; the fastest request and the
fastest reply of thousands leave a narrow interval. NTP measures an offset in the same way (RFC
5905, section 8); Cristian's algorithm uses the best of many samples, too (Distributed Computing
3, 1989). Jaeger corrects each trace separately, by the same rule.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from osbench.coordinator.traces.model.spans import LOST_START, LOST_STOP, STEPPED, Span, Trace

_BROKEN = LOST_START | LOST_STOP | STEPPED

#: Limit on samples of one kind of call between two hosts; later ones replace some of them.
_SAMPLES = 5000
#: Limit on kinds of calls between two hosts, because some services build names from data.
KINDS = 1000
#: Percentage of the samples that may contradict a bound, because of stale threads or clock steps.
_OUTLIERS = 1.0
_UNBOUND = math.inf

_Pair = tuple[str, str]
_Edge = tuple[str, str, str, str]


@dataclass(frozen=True, kw_only=True)
class HostSkew:
    """The estimated offset between the clocks of two hosts."""

    #: The host whose clock is the reference, and the other one.
    reference: str
    host: str
    #: Nanoseconds to add to the instants of `host`; 0 if the clocks may agree.
    add_ns: int
    #: Bounds of the correction, nanoseconds; None if no call bounds it.
    low_ns: int | None
    high_ns: int | None
    #: Number of pairs of spans that it was estimated from.
    samples: int

    @property
    def width_ns(self) -> int:
        """Half the width of the interval, nanoseconds; 0 if it is not bounded."""
        if self.low_ns is None or self.high_ns is None:
            return 0
        return max(self.high_ns - self.low_ns, 0) // 2


class Clocks:
    """Clock offsets between hosts; unknown pairs of hosts have the offset 0."""

    def __init__(self, skews: Iterable[HostSkew] = ()) -> None:
        self.skews = tuple(skews)
        self._add: dict[_Pair, int] = {}
        self._width: dict[_Pair, int] = {}
        for one in self.skews:
            self._add[one.reference, one.host] = one.add_ns
            self._add[one.host, one.reference] = -one.add_ns
            self._width[one.reference, one.host] = one.width_ns
            self._width[one.host, one.reference] = one.width_ns

    def add_ns(self, reference: str, host: str) -> int:
        """Nanoseconds to add to instants of `host` to convert them to the clock of `reference`."""
        return self._add.get((reference, host), 0)

    def width_ns(self, reference: str, host: str) -> int:
        """Uncertainty of that, nanoseconds."""
        return self._width.get((reference, host), 0)


class ClockSamples:
    """Collects samples of clock offsets from traces; memory does not grow with their number."""

    def __init__(self) -> None:
        self._pairs: dict[_Pair, dict[_Edge, _Samples]] = {}

    def add(self, trace: Trace) -> None:
        """Add the calls between hosts in one trace."""
        hosts = {span.host for span in trace.spans}
        if len(hosts) < 2:
            return
        known = {span.span_id: span for span in trace.spans}
        for span in trace.spans:
            caller = known.get(span.parent_id)
            if caller is None or caller.host == span.host or not (caller.host and span.host):
                continue
            if not (caller.marks | span.marks) & _BROKEN:
                self._take(caller, span)

    def estimate(self) -> Clocks:
        """The offsets of all pairs of hosts with calls between them."""
        return Clocks(
            _estimate(pair, edges.values()) for pair, edges in sorted(self._pairs.items())
        )

    def _take(self, caller: Span, span: Span) -> None:
        low = caller.start_ns - span.start_ns
        # a span that is longer than its caller's was not waited for, and gives no upper bound
        waited_for = span.duration_ns <= caller.duration_ns
        high = caller.end_ns - span.end_ns if waited_for else None
        pair = (caller.host, span.host)
        edge = (caller.service, caller.name, span.service, span.name)
        if pair[0] > pair[1]:
            pair = (pair[1], pair[0])
        edges = self._pairs.setdefault(pair, {})
        if edge in edges or len(edges) < KINDS:
            edges.setdefault(edge, _Samples()).add(low, high, turned=pair[0] != caller.host)


class _Samples:
    """Bounds from one kind of call, in the direction of the call."""

    def __init__(self) -> None:
        self.count = 0
        self.turned = False
        self._low = array("q")
        self._high = array("q")
        self._waited = array("b")

    def add(self, low: int, high: int | None, *, turned: bool) -> None:
        self.turned = turned
        if len(self._low) < _SAMPLES:
            self._low.append(low)
            self._high.append(high or 0)
            self._waited.append(high is not None)
        else:
            at = self.count * 2654435761 % _SAMPLES
            self._low[at], self._high[at], self._waited[at] = low, high or 0, high is not None
        self.count += 1

    def bounds(self) -> tuple[float, float]:
        """Bounds of the correction for the second host of the pair."""
        lows = np.array(self._low, np.float64)
        low = float(np.percentile(lows, 100 - _OUTLIERS, method="higher"))
        highs = np.array(self._high, np.float64)[np.array(self._waited, bool)]
        # A call that ended after its caller, with any offset that fits the starts, was not waited
        # for. If that is so for most calls of this kind, the kind is asynchronous.
        possible = highs[highs >= low]
        high = _UNBOUND
        if len(possible) * 2 > len(lows):
            high = float(np.percentile(possible, _OUTLIERS, method="lower"))
        return (-high, -low) if self.turned else (low, high)


def _estimate(pair: _Pair, edges: Iterable[_Samples]) -> HostSkew:
    weighed = [(*samples.bounds(), samples.count) for samples in edges]
    low, high = _most_agreed(weighed)
    if low <= 0 <= high:
        add = 0.0
    elif math.isinf(low):
        add = high
    elif math.isinf(high):
        add = low
    else:
        add = (low + high) / 2
    return HostSkew(
        reference=pair[0],
        host=pair[1],
        add_ns=round(add),
        low_ns=None if math.isinf(low) else round(low),
        high_ns=None if math.isinf(high) else round(high),
        samples=sum(count for _, _, count in weighed),
    )


def _most_agreed(bounds: list[tuple[float, float, int]]) -> tuple[float, float]:
    """The interval that most samples agree with; of several the one nearest to 0."""
    edges = [edge for low, high, _ in bounds for edge in (low, high) if not math.isinf(edge)]
    best = max(
        [*edges, 0.0],
        key=lambda at: (sum(n for low, high, n in bounds if low <= at <= high), -abs(at)),
    )
    around = [(low, high) for low, high, _ in bounds if low <= best <= high]
    if not around:
        return 0.0, 0.0
    return max(low for low, _ in around), min(high for _, high in around)


def clocks_from(rows: Iterable[Mapping[str, object]]) -> Clocks:
    """Clocks from the mappings of their offsets."""
    return Clocks(HostSkew(**row) for row in rows)  # type: ignore[arg-type]  # written by us
