"""Reads values of counters from Prometheus onto the time axes of loads."""

from __future__ import annotations

import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from osbench.common.secrets.masking import mask_text
from osbench.coordinator.formatting import plain
from osbench.coordinator.results.accounting.load_span import LoadSpan
from osbench.edges.traces.counters.counter_query import WINDOW, CounterQuery
from osbench.edges.traces.counters.counter_series import (
    CounterSeries,
    Floats,
    WorkloadCounters,
    grid_values,
)
from osbench.edges.traces.counters.prometheus import Prometheus, QueryRefusedError

#: Most values of a series.
POINTS = 600
#: Least length of a load, in scrapes.
FEWEST_SCRAPES = 3
#: Most series of a query that are kept: the greatest, by 95th percentile.
_MOST_SERIES = 20
#: Number of scrapes that a rate is computed from, about: one scrape may be missing.
_SCRAPES = 3
#: Usual interval of scrapes, if `up` does not show it, seconds.
_USUAL_SCRAPE_S = 15.0
_LEAST_STEP_S = 0.1
#: Loads that begin within this time of the first count as one group, seconds.
_AT_ONCE_S = 1.0
_LABEL_CHARS = 60
_PORT = re.compile(r"(?<=[^:]):\d{1,5}\Z|(?<=\]):\d{1,5}\Z")
_UNNAMED_LABELS = frozenset(("__name__", "job", "instance"))
_RAW_SCRAPES = "up[5m]"
_HOST_NAMES = "node_uname_info"

#: Labels of a series, sorted pairs of name and value.
Labels = tuple[tuple[str, str], ...]


@dataclass(kw_only=True)
class LoadAxis:
    """Common time axis of workloads whose loads ran at once: begin and end.

    Redis time, seconds since 1970.
    """

    begin_at: float
    end_at: float
    #: Numbers of the workloads.
    numbers: list[int]

    @property
    def span_s(self) -> float:
        """Length of the axis, seconds."""
        return self.end_at - self.begin_at

    def points(self, step_s: float) -> int:
        """Return the number of values, one per `step_s` seconds from the begin on."""
        return int(self.span_s / step_s) + 1

    def part(
        self, load: LoadSpan, step_s: float, series: Sequence[CounterSeries]
    ) -> WorkloadCounters:
        """Return the values of `series` during one load; series without values are left out.

        The first value of `series` belongs to the begin of the axis.
        """
        skipped = round((load.t0_at - self.begin_at) / step_s)
        points = int(load.elapsed_s / step_s) + 1
        cut = (
            CounterSeries(
                name=one.name,
                host=one.host,
                kind=one.kind,
                unit=one.unit,
                values=one.values[skipped : skipped + points],
            )
            for one in series
        )
        return WorkloadCounters(
            step_s=step_s,
            elapsed_s=load.elapsed_s,
            series=tuple(one for one in cut if one.is_known),
        )


@dataclass(kw_only=True)
class CounterSource:
    """A Prometheus as a source of counters: its clock, scrapes and hosts, and queries to it.

    Methods that query it raise PrometheusAwayError.
    """

    server: Prometheus
    #: Redis time, seconds since 1970.
    redis_now_s: Callable[[], float]
    #: Clock of the server minus Redis time, and half of the round trip, seconds.
    ahead_s: float = 0.0
    error_s: float = 0.0
    scrape_s: float = _USUAL_SCRAPE_S
    #: Names of hosts by the host part of `instance`.
    hosts: dict[str, str] = field(default_factory=dict)

    def measure(self) -> None:
        """Measure the server's clock, and the median interval of its scrapes.

        The interval is at least `_LEAST_STEP_S`, and `_USUAL_SCRAPE_S` if the server does not show
        it, or refuses the query.
        """
        before = time.monotonic()
        now_s = self.server.now_s()
        self.error_s = (time.monotonic() - before) / 2
        self.ahead_s = now_s + self.error_s - self.redis_now_s()
        try:
            found = self.server.at(_RAW_SCRAPES)
        except QueryRefusedError:
            return
        apart = [
            statistics.median(b[0] - a[0] for a, b in zip(one.points, one.points[1:], strict=False))
            for one in found
            if len(one.points) > 1
        ]
        if apart:
            self.scrape_s = max(statistics.median(apart), _LEAST_STEP_S)

    def name_hosts(self) -> None:
        """Read into `hosts` the names that hosts give themselves, by `instance` without port.

        Names that several hosts have, and empty names, are left out. None are read if the server
        refuses the query.
        """
        try:
            found = self.server.at(_HOST_NAMES)
        except QueryRefusedError:
            return
        names = {
            _host_part(one.labels.get("instance", "")): one.labels.get("nodename", "")
            for one in found
        }
        several = Counter(names.values())
        self.hosts = {part: name for part, name in names.items() if name and several[name] == 1}

    def axes(self, loads: Mapping[int, LoadSpan]) -> list[LoadAxis]:
        """Return the time axes of loads, in order of time; loads that began at once share one.

        At once: within `_AT_ONCE_S` seconds. Loads shorter than `FEWEST_SCRAPES` scrapes are left
        out.
        """
        found: list[LoadAxis] = []
        for number, load in sorted(loads.items(), key=lambda one: one[1].t0_at):
            if load.elapsed_s < FEWEST_SCRAPES * self.scrape_s:
                continue
            end_at = load.t0_at + load.elapsed_s
            if found and load.t0_at - found[-1].begin_at <= _AT_ONCE_S:
                found[-1].end_at = max(found[-1].end_at, end_at)
                found[-1].numbers.append(number)
            else:
                found.append(LoadAxis(begin_at=load.t0_at, end_at=end_at, numbers=[number]))
        return found

    def read(
        self, query: CounterQuery, axis: LoadAxis, step_s: float, first: int = 0
    ) -> dict[Labels, Floats]:
        """Return the values of a query by labels of the series: one per `step_s` of the axis.

        The first value belongs to the place `first` of the axis. Unknown values are nan. Empty if
        that place is in the future. Raises QueryRefusedError.
        """
        window_s = max(_SCRAPES * self.scrape_s, step_s)
        # a value belongs to the time around its place on the axis, not to the time before it
        shift_s = (window_s if WINDOW in query.query else self.scrape_s) / 2
        begin_at = axis.begin_at + first * step_s + self.ahead_s + shift_s
        end_at = min(axis.end_at + self.ahead_s + shift_s, self.redis_now_s() + self.ahead_s)
        if end_at < begin_at:
            return {}
        text = query.query.replace(WINDOW, f"{round(1000 * window_s)}ms")
        points = axis.points(step_s) - first
        return {
            tuple(sorted(one.labels.items())): grid_values(one.points, begin_at, step_s, points)
            for one in self.server.over(text, begin_at, end_at, step_s)
        }

    def counters(self, query: CounterQuery, found: Mapping[Labels, Floats]) -> list[CounterSeries]:
        """Return the series of a query as counters with different labels, the greatest first."""
        series = [self._counter(query, dict(labels), values) for labels, values in found.items()]
        series.sort(key=lambda one: (-_p95(one.values), one.label))
        return _told_apart(series)

    def _counter(
        self, query: CounterQuery, labels: Mapping[str, str], values: Floats
    ) -> CounterSeries:
        part = _host_part(labels.get(query.host_label, ""))
        more = ", ".join(
            f"{name}={value}"
            for name, value in labels.items()
            if name not in _UNNAMED_LABELS and name != query.host_label
        )
        name = f"{query.name} ({more})" if more else query.name
        return CounterSeries(
            name=plain(mask_text(name), _LABEL_CHARS + len(query.name)),
            host=plain(mask_text(self.hosts.get(part, part)), _LABEL_CHARS),
            kind=query.kind,
            unit=query.unit,
            values=values,
        )


def workload_counters(
    loads: Mapping[int, LoadSpan],
    read: Sequence[tuple[LoadAxis, float, Sequence[CounterSeries]]],
) -> dict[int, WorkloadCounters]:
    """Return the counters of each load, by number of the workload; loads without any are left out.

    `read` has the series of each query on each axis, with the seconds between two values.
    """
    found = {}
    for number, load in loads.items():
        mine = [one for one in read if number in one[0].numbers]
        if mine:
            axis, step_s, _ = mine[0]
            cut = axis.part(load, step_s, [each for _, _, some in mine for each in some])
            if cut.series:
                found[number] = cut
    return found


def greatest(found: Mapping[Labels, Floats]) -> tuple[dict[Labels, Floats], int]:
    """Return the `_MOST_SERIES` series of greatest 95th percentile, and how many are left out.

    Series without a value are ignored.
    """
    known = {labels: values for labels, values in found.items() if np.isfinite(values).any()}
    if len(known) <= _MOST_SERIES:
        return known, 0
    kept = sorted(known, key=lambda labels: (-_p95(known[labels]), labels))[:_MOST_SERIES]
    return {labels: known[labels] for labels in kept}, len(known) - _MOST_SERIES


def _p95(values: Floats) -> float:
    return float(np.nanpercentile(values, 95))


def _host_part(instance: str) -> str:
    """Return an `instance` label without its port: "db1:9100" gives "db1"."""
    return _PORT.sub("", instance)


def _told_apart(series: Sequence[CounterSeries]) -> list[CounterSeries]:
    """Return the series with labels (name and host) that differ, in the same order.

    Of equal labels the later ones get " #2", " #3" and so on at the end of the name.
    """
    seen: Counter[str] = Counter()
    found = []
    for one in series:
        seen[one.label] += 1
        number = seen[one.label]
        name = f"{one.name} #{number}" if number > 1 else one.name
        found.append(
            CounterSeries(name=name, host=one.host, kind=one.kind, unit=one.unit, values=one.values)
        )
    return found
