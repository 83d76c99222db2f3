"""Reads the counters of a run from Prometheus after the load, within limits of time and size.

Errors become notes of the report; they never fail the run.
"""

from __future__ import annotations

import logging
import re
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from oslo_config import cfg

from osbench.common.errors import StorageError
from osbench.common.secrets.masking import error_text, mask_text
from osbench.coordinator.counters.counter_file import write_counters
from osbench.coordinator.counters.counter_query import (
    WINDOW,
    CounterQuery,
    read_queries,
)
from osbench.coordinator.counters.counter_series import (
    CollectedCounters,
    CounterSeries,
    WorkloadCounters,
    grid_values,
)
from osbench.coordinator.counters.default_queries import DEFAULT_QUERIES
from osbench.coordinator.counters.prometheus import (
    Prometheus,
    PrometheusAwayError,
    QueriedSeries,
    QueryRefusedError,
)
from osbench.coordinator.formatting import count, plain, spaced
from osbench.coordinator.storage.run_directory import RunDirectory

LOG = logging.getLogger(__name__)

#: Most values of a series.
POINTS = 600
#: Most series of a query that are kept: the greatest, by 95th percentile.
_MOST_SERIES = 20
#: Number of scrapes that a rate is computed from, about: one scrape may be missing.
_SCRAPES = 3
#: Least length of a load, in scrapes.
_FEWEST_SCRAPES = 3
#: Usual interval of scrapes, if `up` does not show it, seconds.
_USUAL_SCRAPE_S = 15.0
_LEAST_STEP_S = 0.1
#: Loads that begin within this time of the first count as one group, seconds.
_AT_ONCE_S = 1.0
#: Least difference of clocks that a note reports, seconds.
_NOTICEABLE_S = 0.5
_POLL_S = 0.1
_NAMED = 3
_LABEL_CHARS = 60
_PORT = re.compile(r"(?<=[^:]):\d{1,5}\Z|(?<=\]):\d{1,5}\Z")
_UNNAMED_LABELS = frozenset(("__name__", "job", "instance"))
_RAW_SCRAPES = "up[5m]"
_HOST_NAMES = "node_uname_info"


@dataclass(frozen=True, kw_only=True)
class CounterSettings:
    """Prometheus server and queries of the counters, and limits of time for reading them."""

    server: Prometheus
    queries: tuple[CounterQuery, ...] = DEFAULT_QUERIES
    #: Longest wait for the last scrape of a load, and for all queries, seconds.
    late_s: float = 15.0
    limit_s: float = 60.0


@dataclass(frozen=True, kw_only=True)
class LoadSpan:
    """The load of one workload: its begin in Redis time, and how many seconds it lasted."""

    #: Redis time, seconds since 1970.
    t0_at: float
    #: Seconds.
    elapsed_s: float


def counter_settings(conf: cfg.ConfigOpts) -> CounterSettings | None:
    """Return the settings of the section `[metrics]`; None if it names no Prometheus.

    Reads the file of queries, if one is named: its queries replace default queries of the same
    name. Raises UsageError.
    """
    metrics = conf.metrics
    if not metrics.prometheus:
        return None
    queries = {one.name: one for one in DEFAULT_QUERIES if metrics.default_queries}
    if metrics.queries:
        queries |= {one.name: one for one in read_queries(Path(metrics.queries))}
    return CounterSettings(
        server=Prometheus(str(metrics.prometheus), str(metrics.prometheus_headers)),
        queries=tuple(queries.values()),
        late_s=metrics.late_s,
        limit_s=metrics.limit_s,
    )


def collect_counters(
    directory: RunDirectory,
    settings: CounterSettings | None,
    loads: Mapping[int, LoadSpan],
    redis_now_s: Callable[[], float],
    wanted: Callable[[], bool],
) -> CollectedCounters:
    """Read the counters of loads from Prometheus, and write them to the run directory.

    `loads` is by number of the workload; `redis_now_s` gives Redis time in seconds since 1970.
    Reads in a thread; ends after `late_s + limit_s` seconds, or when `wanted` returns False, with
    the counters read until then. Returns no counters without settings or loads. Errors become
    notes; if the file cannot be written, no counters are returned.
    """
    if settings is None or not loads or not wanted():
        return CollectedCounters()
    reading = _Reading(settings=settings, loads=loads, redis_now_s=redis_now_s)
    # a daemon, so that a response that drips does not keep the process
    thread = threading.Thread(target=reading.run, name="counters", daemon=True)
    thread.start()
    deadline = time.monotonic() + settings.late_s + settings.limit_s
    while thread.is_alive() and wanted() and time.monotonic() < deadline:
        thread.join(_POLL_S)
    reading.ended.set()
    found = reading.result()
    try:
        if found.workloads:
            write_counters(directory, found.workloads)
    except StorageError as error:
        return CollectedCounters(notes=(*found.notes, f"counters: {error}"))
    return found


@dataclass(kw_only=True)
class _Axis:
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


@dataclass(kw_only=True)
class _Reading:
    """Reads the counters of one run from Prometheus in a thread, step by step.

    `run` is the body of the thread; the caller's thread calls `result`, at any time.
    """

    settings: CounterSettings
    loads: Mapping[int, LoadSpan]
    redis_now_s: Callable[[], float]
    ended: threading.Event = field(default_factory=threading.Event)
    #: Clock of the server minus Redis time, and half of the round trip, seconds.
    ahead_s: float = 0.0
    error_s: float = 0.0
    scrape_s: float = _USUAL_SCRAPE_S
    #: Names of hosts by the host part of `instance`.
    hosts: dict[str, str] = field(default_factory=dict)
    done: list[tuple[_Axis, float, CounterQuery, list[CounterSeries]]] = field(default_factory=list)
    #: Queries with series; reasons of refused queries; numbers of series that were left out.
    found: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    failure: str = ""
    finished: bool = False

    def run(self) -> None:
        """Read all counters, until the end or until `ended` is set.

        An error goes into `failure`, for the notes; an unexpected one is also logged with its
        traceback.
        """
        try:
            self._read()
        except PrometheusAwayError as error:
            self.failure = str(error)
        except Exception as error:
            LOG.exception("counters could not be read")
            self.failure = error_text(error)
        self.finished = not self.failure

    def result(self) -> CollectedCounters:
        """Return the counters read until now, by workload, and notes; `run` may still be going on.

        Workloads and series without values are left out.
        """
        finished, done = self.finished, list(self.done)
        workloads = {}
        for number, load in self.loads.items():
            mine = [
                (axis, step_s, some) for axis, step_s, _, some in done if number in axis.numbers
            ]
            if not any(some for _, _, some in mine):
                continue
            axis, step_s, _ = mine[0]
            skipped = round((load.t0_at - axis.begin_at) / step_s)
            points = int(load.elapsed_s / step_s) + 1
            series = tuple(
                CounterSeries(
                    name=one.name,
                    host=one.host,
                    kind=one.kind,
                    unit=one.unit,
                    values=one.values[skipped : skipped + points],
                )
                for _, _, some in mine
                for one in some
            )
            workloads[number] = WorkloadCounters(
                step_s=step_s,
                elapsed_s=load.elapsed_s,
                series=tuple(one for one in series if one.is_known),
            )
        return CollectedCounters(
            workloads={number: one for number, one in workloads.items() if one.series},
            notes=tuple(f"counters: {note}" for note in self._notes(workloads, finished)),
        )

    def _read(self) -> None:
        server = self.settings.server
        before = time.monotonic()
        now_s = server.now_s()
        self.error_s = (time.monotonic() - before) / 2
        self.ahead_s = now_s + self.error_s - self.redis_now_s()
        self.scrape_s = self._scrape_s()
        self._await_scrapes()
        axes = self._axes()
        if not axes:
            return
        self.hosts = self._host_names()
        for axis in axes:
            for query in self.settings.queries:
                if self.ended.is_set():
                    return
                if query.name not in self.refused:
                    self._ask(axis, query)

    def _scrape_s(self) -> float:
        """Return the median interval of scrapes in seconds, at least `_LEAST_STEP_S`.

        Asks Prometheus; returns `_USUAL_SCRAPE_S` if it does not show it, or refuses the query.
        Raises PrometheusAwayError.
        """
        try:
            found = self.settings.server.at(_RAW_SCRAPES)
        except QueryRefusedError:
            return _USUAL_SCRAPE_S
        apart = [
            statistics.median(b[0] - a[0] for a, b in zip(one.points, one.points[1:], strict=False))
            for one in found
            if len(one.points) > 1
        ]
        return max(statistics.median(apart), _LEAST_STEP_S) if apart else _USUAL_SCRAPE_S

    def _await_scrapes(self) -> None:
        """Wait until all loads have ended and a further interval of scrapes has passed.

        At most `late_s` seconds; ends early if `ended` is set.
        """
        last_at = max(load.t0_at + load.elapsed_s for load in self.loads.values())
        left_s = last_at + self.scrape_s - self.redis_now_s()
        self.ended.wait(min(max(left_s, 0.0), self.settings.late_s))

    def _axes(self) -> list[_Axis]:
        """Return the time axes of loads, in order of time; loads that began at once share one.

        At once: within `_AT_ONCE_S` seconds. Loads shorter than `_FEWEST_SCRAPES` scrapes are left
        out.
        """
        found: list[_Axis] = []
        for number, load in sorted(self.loads.items(), key=lambda one: one[1].t0_at):
            if load.elapsed_s < _FEWEST_SCRAPES * self.scrape_s:
                continue
            end_at = load.t0_at + load.elapsed_s
            if found and load.t0_at - found[-1].begin_at <= _AT_ONCE_S:
                found[-1].end_at = max(found[-1].end_at, end_at)
                found[-1].numbers.append(number)
            else:
                found.append(_Axis(begin_at=load.t0_at, end_at=end_at, numbers=[number]))
        return found

    def _host_names(self) -> dict[str, str]:
        """Return the names that hosts give themselves (`nodename`), by `instance` without port.

        Names that several hosts have, and empty names, are left out. {} if the server refuses the
        query. Raises PrometheusAwayError.
        """
        try:
            found = self.settings.server.at(_HOST_NAMES)
        except QueryRefusedError:
            return {}
        names = {
            _host_part(one.labels.get("instance", "")): one.labels.get("nodename", "")
            for one in found
        }
        several = Counter(names.values())
        return {part: name for part, name in names.items() if name and several[name] == 1}

    def _ask(self, axis: _Axis, query: CounterQuery) -> None:
        step_s = max(self.scrape_s, axis.span_s / (POINTS - 1))
        window_s = max(_SCRAPES * self.scrape_s, step_s)
        # a value belongs to the time around its place on the axis, not to the time before it
        shift_s = (window_s if WINDOW in query.query else self.scrape_s) / 2
        begin = axis.begin_at + self.ahead_s + shift_s
        end = min(axis.end_at + self.ahead_s + shift_s, self.redis_now_s() + self.ahead_s)
        text = query.query.replace(WINDOW, f"{round(1000 * window_s)}ms")
        try:
            found = self.settings.server.over(text, begin, end, step_s)
        except QueryRefusedError as error:
            self.refused[query.name] = str(error)
            return
        points = int(axis.span_s / step_s) + 1
        series = [self._counter(one, query, begin, step_s, points) for one in found]
        known = [one for one in series if one.is_known]
        if known:
            self.found.add(query.name)
        known.sort(key=lambda one: (-float(np.nanpercentile(one.values, 95)), one.label))
        self.left_out[query.name] += max(len(known) - _MOST_SERIES, 0)
        self.done.append((axis, step_s, query, _told_apart(known[:_MOST_SERIES])))

    def _counter(
        self, found: QueriedSeries, query: CounterQuery, begin: float, step_s: float, points: int
    ) -> CounterSeries:
        labels = found.labels
        part = _host_part(labels.get(query.host_label, ""))
        more = ", ".join(
            f"{name}={value}"
            for name, value in sorted(labels.items())
            if name not in _UNNAMED_LABELS and name != query.host_label
        )
        name = f"{query.name} ({more})" if more else query.name
        return CounterSeries(
            name=plain(mask_text(name), _LABEL_CHARS + len(query.name)),
            host=plain(mask_text(self.hosts.get(part, part)), _LABEL_CHARS),
            kind=query.kind,
            unit=query.unit,
            values=grid_values(found.points, begin, step_s, points),
        )

    def _notes(self, workloads: Mapping[int, WorkloadCounters], finished: bool) -> list[str]:
        settings, shown = self.settings, self.settings.server.shown
        if self.failure:
            return [
                f"could not be read from {shown}: {self.failure}. Look at [metrics] prometheus, and"
                " whether it runs"
            ]
        series = [one for some in workloads.values() for one in some.series]
        notes = []
        if series:
            hosts = len({one.host for one in series if one.host})
            different = len({one.label for one in series})
            step_s = max(one.step_s for one in workloads.values())
            notes.append(
                f"{count(different, 'counter')} of {count(hosts, 'host')} from {shown},"
                f" one value per {spaced(step_s)}"
            )
        without = [
            one.name
            for one in settings.queries
            if one.name not in self.found and one.name not in self.refused
        ]
        if finished and without and self._axes():
            told = ", ".join(without[:_NAMED]) + (", ..." if len(without) > _NAMED else "")
            where = "" if series else f" at {shown}"
            of = count(len(settings.queries), "query", "queries")
            notes.append(f"{count(len(without))} of {of} had no series{where}: {told}")
        if finished and not self._axes():
            notes.append(
                f"no load was as long as {_FEWEST_SCRAPES} scrapes of {shown}, which are"
                f" {spaced(self.scrape_s)} apart"
            )
        if not finished:
            notes.append("not all were read: [metrics] limit_s was over, or the run was stopped")
        for name, why in list(self.refused.items())[:_NAMED]:
            notes.append(f"the query {name!r} was refused by {shown}: {why}")
        if len(self.refused) > _NAMED:
            notes.append(
                f"{count(len(self.refused) - _NAMED, 'more query', 'more queries')} refused"
            )
        for name, number in list(self.left_out.items()):
            if number:
                notes.append(f"{count(number)} series of {name} with smaller values were left out")
        if abs(self.ahead_s) > max(_NOTICEABLE_S, self.error_s):
            word = "ahead of" if self.ahead_s > 0 else "behind"
            notes.append(
                f"the clock of {shown} is {spaced(abs(self.ahead_s))} {word} that of Redis"
                f" (+-{spaced(self.error_s)}), corrected"
            )
        return notes


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
