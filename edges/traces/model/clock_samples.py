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
from collections.abc import Sequence

import numpy as np

from osbench.edges.traces.model.clock_skew import Clocks, HostSkew
from osbench.edges.traces.model.clock_stretches import Bounds, fit, offset_within
from osbench.edges.traces.model.spans import LOST_START, LOST_STOP, STEPPED, Span, Trace

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


class ClockSamples:
    """Collects bounds of clock offsets between hosts from the calls in traces.

    Memory is bounded: at most `KINDS` kinds of calls per pair of hosts, and 5,000 samples of each,
    some of which later calls replace.
    """

    def __init__(self) -> None:
        self._pairs: dict[_Pair, dict[_Edge, _Samples]] = {}

    def add(self, trace: Trace) -> None:
        """Add a sample for each span of a trace whose parent is on another host.

        A call is left out if a host is unknown (""), or if either span has lost its start or stop,
        or its clock was set back.
        """
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
        """Return the clock offset of each pair of hosts that has a sample: a call between them.

        The samples stay: it may be called again after more traces.
        """
        return Clocks(
            _estimate(pair, list(edges.values())) for pair, edges in sorted(self._pairs.items())
        )

    def _take(self, caller: Span, span: Span) -> None:
        low = caller.start_ns - span.start_ns
        # a span that is longer than its caller's was not waited for, and gives no upper bound
        waited_for = span.duration_ns <= caller.duration_ns
        high = caller.end_ns - span.end_ns if waited_for else None
        pair = (caller.host, span.host)
        edge = (caller.service, caller.name, span.service, span.name)
        turned = pair[0] > pair[1]
        if turned:
            pair = (pair[1], pair[0])
        edges = self._pairs.setdefault(pair, {})
        if edge in edges or len(edges) < KINDS:
            # all times of a pair are by the clock of its first host
            at = span.start_ns if turned else caller.start_ns
            samples = edges.get(edge)
            if samples is None:
                # spans of servers of HTTP: OpenTelemetry's kind, OSProfiler's name
                answered = span.kind == "server" or span.name == "wsgi"
                samples = edges[edge] = _Samples(turned=turned, answered=answered)
            samples.add(at, low, high)


class _Samples:
    """Calls of one kind between two hosts, each with bounds of the clock offset, nanoseconds.

    A kind is caller's service and span name, callee's service and span name. `count` counts all
    calls, also those not stored.
    """

    def __init__(self, *, turned: bool, answered: bool) -> None:
        """Begin without samples.

        `turned`: the callee is on the first host of the pair. `answered`: the calls are requests,
        for whose response callers wait, not messages.
        """
        self.count = 0
        self.turned = turned
        self._answered = answered
        self._at = array("q")
        self._low = array("q")
        self._high = array("q")
        self._waited = array("b")

    def add(self, at: int, low: int, high: int | None) -> None:
        if len(self._low) < _SAMPLES:
            self._at.append(at)
            self._low.append(low)
            self._high.append(high or 0)
            self._waited.append(high is not None)
        else:
            place = self.count * 2654435761 % _SAMPLES
            self._at[place], self._low[place] = at, low
            self._high[place], self._waited[place] = high or 0, high is not None
        self.count += 1

    def bounds(self) -> tuple[float, float]:
        """Return bounds (low, high) of the nanoseconds to add to times of the pair's second host.

        Infinite if there is no bound. 1 % of the samples may contradict a bound. If callers did not
        wait for most calls of this kind, ends of calls give no bound.
        """
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

    def each(self, kind: int) -> Bounds:
        """Return the bounds of each stored call as arrays, not sorted by time.

        `kind`: an integer that the caller chooses for this kind of call; it is in each entry.
        """
        lows = np.array(self._low, np.float64)
        waited = np.array(self._waited, bool)
        highs = np.where(waited, np.array(self._high, np.float64), _UNBOUND)
        return Bounds(
            at=np.array(self._at, np.int64),
            low=-highs if self.turned else lows,
            high=-lows if self.turned else highs,
            turned=np.full(len(lows), self.turned),
            kind=np.full(len(lows), kind),
            answered=np.full(len(lows), self._answered),
        )


def _estimate(pair: _Pair, edges: Sequence[_Samples]) -> HostSkew:
    weighed = [(*samples.bounds(), samples.count) for samples in edges]
    low, high = _most_agreed(weighed)
    add = offset_within(low, high)
    found = fit(Bounds.of([samples.each(kind) for kind, samples in enumerate(edges)]), add)
    stretches = found.stretches
    return HostSkew(
        reference=pair[0],
        host=pair[1],
        add_ns=stretches[0].add_ns if stretches else round(add),
        low_ns=None if math.isinf(low) or stretches else round(low),
        high_ns=None if math.isinf(high) or stretches else round(high),
        samples=sum(count for _, _, count in weighed),
        stretches=stretches,
        error_ns=found.error_ns,
        unsteady=found.unsteady,
    )


def _most_agreed(bounds: list[tuple[float, float, int]]) -> tuple[float, float]:
    """Return the interval (low, high) that the bounds of most samples have in common.

    `bounds` has low, high and number of samples per kind of call. Of several such intervals,
    returns the nearest to 0; (0, 0) if `bounds` is empty.
    """
    edges = [edge for low, high, _ in bounds for edge in (low, high) if not math.isinf(edge)]
    best = max(
        [*edges, 0.0],
        key=lambda at: (sum(n for low, high, n in bounds if low <= at <= high), -abs(at)),
    )
    around = [(low, high) for low, high, _ in bounds if low <= best <= high]
    if not around:
        return 0.0, 0.0
    return max(low for low, _ in around), min(high for _, high in around)
