"""Reads the counters of a run from Prometheus after the load, within limits of time and size.

Errors become notes of the report; they never fail the run.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from oslo_config import cfg

from osbench.common.errors import StorageError
from osbench.common.secrets.masking import error_text
from osbench.coordinator.formatting import count, spaced
from osbench.coordinator.results.accounting.load_span import LoadSpan
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.counters.counter_file import read_counters, write_counters
from osbench.edges.traces.counters.counter_query import CounterQuery, read_queries
from osbench.edges.traces.counters.counter_series import (
    CollectedCounters,
    CounterSeries,
    WorkloadCounters,
)
from osbench.edges.traces.counters.counter_source import (
    FEWEST_SCRAPES,
    POINTS,
    CounterSource,
    LoadAxis,
    greatest,
    workload_counters,
)
from osbench.edges.traces.counters.default_queries import DEFAULT_QUERIES
from osbench.edges.traces.counters.prometheus import (
    Prometheus,
    PrometheusAwayError,
    QueryRefusedError,
)

LOG = logging.getLogger(__name__)

#: Least difference of clocks that a note reports, seconds.
_NOTICEABLE_S = 0.5
_POLL_S = 0.1
_NAMED = 3
_LIVE_ONLY = "the report has only counters read during the load, perhaps without its end"
_STOPPED = "not read, the run was stopped"


@dataclass(frozen=True, kw_only=True)
class CounterSettings:
    """Prometheus server and queries of the counters, and limits of time for reading them."""

    server: Prometheus
    queries: tuple[CounterQuery, ...] = DEFAULT_QUERIES
    #: Longest wait for the last scrape of a load, and for all queries, seconds.
    late_s: float = 15.0
    limit_s: float = 60.0


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
    Reads in a thread; ends after `late_s + limit_s` seconds, or when `wanted` returns False.
    Workloads that were not read completely get the counters that were written during the load. So
    do all workloads if the file cannot be written. Returns no counters without settings or loads.
    Errors become notes.
    """
    if settings is None or not loads:
        return CollectedCounters()
    live = read_counters(directory)
    if wanted():
        source = CounterSource(server=settings.server, redis_now_s=redis_now_s)
        reading = _Reading(settings=settings, loads=loads, source=source)
        # a daemon, so that a response that drips does not keep the process
        thread = threading.Thread(target=reading.run, name="counters", daemon=True)
        thread.start()
        deadline = time.monotonic() + settings.late_s + settings.limit_s
        while thread.is_alive() and wanted() and time.monotonic() < deadline:
            thread.join(_POLL_S)
        found = reading.result(live)
        reading.ended.set()
    else:
        notes = (f"counters: {_LIVE_ONLY if live else _STOPPED}",)
        found = CollectedCounters(workloads=live, notes=notes)
    if not found.workloads:
        return found
    try:
        # live ones, too: they were written without a sync
        write_counters(directory, found.workloads)
    except StorageError as error:
        notes = (*found.notes, f"counters: {error}", *([f"counters: {_LIVE_ONLY}"] if live else ()))
        return CollectedCounters(workloads=live, notes=tuple(dict.fromkeys(notes)))
    return found


@dataclass(kw_only=True)
class _Reading:
    """Reads the counters of one run from Prometheus in a thread, step by step.

    `run` is the body of the thread; the caller's thread calls `result`, at any time.
    """

    settings: CounterSettings
    loads: Mapping[int, LoadSpan]
    source: CounterSource
    ended: threading.Event = field(default_factory=threading.Event)
    done: list[tuple[LoadAxis, float, list[CounterSeries]]] = field(default_factory=list)
    #: Queries with series; reasons of refused queries; numbers of series that were left out.
    found: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    #: Workloads for which all queries were sent.
    complete: set[int] = field(default_factory=set)
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

    def result(self, live: Mapping[int, WorkloadCounters]) -> CollectedCounters:
        """Return the counters read until now, by workload, and notes; `run` may still be going on.

        Workloads and series without values are left out. A workload that is not complete, or has no
        counters, gets its counters in `live` instead, if there are any.
        """
        finished, complete, done = self.finished, set(self.complete), list(self.done)
        read = workload_counters(self.loads, done)
        kept = {
            number: one
            for number, one in live.items()
            if number not in complete or number not in read
        }
        found = {**read, **kept}
        notes = self._notes(found, finished)
        if kept:
            some = f"of {count(len(kept), 'workload')} " if len(kept) < len(found) else ""
            notes.append(some + _LIVE_ONLY)
        return CollectedCounters(
            workloads=found, notes=tuple(f"counters: {note}" for note in notes)
        )

    def _read(self) -> None:
        self.source.measure()
        self._await_scrapes()
        axes = self.source.axes(self.loads)
        if not axes:
            return
        self.source.name_hosts()
        for axis in axes:
            for query in self.settings.queries:
                if self.ended.is_set():
                    return
                if query.name not in self.refused:
                    self._ask(axis, query)
            self.complete.update(axis.numbers)

    def _await_scrapes(self) -> None:
        """Wait until all loads have ended and a further interval of scrapes has passed.

        At most `late_s` seconds; ends early if `ended` is set.
        """
        last_at = max(load.t0_at + load.elapsed_s for load in self.loads.values())
        left_s = last_at + self.source.scrape_s - self.source.redis_now_s()
        self.ended.wait(min(max(left_s, 0.0), self.settings.late_s))

    def _ask(self, axis: LoadAxis, query: CounterQuery) -> None:
        step_s = max(self.source.scrape_s, axis.span_s / (POINTS - 1))
        try:
            found, left_out = greatest(self.source.read(query, axis, step_s))
        except QueryRefusedError as error:
            self.refused[query.name] = str(error)
            return
        if found:
            self.found.add(query.name)
        self.left_out[query.name] += left_out
        self.done.append((axis, step_s, self.source.counters(query, found)))

    def _notes(self, workloads: Mapping[int, WorkloadCounters], finished: bool) -> list[str]:
        settings, shown = self.settings, self.settings.server.shown
        if self.failure:
            some = " all" if workloads else ""
            return [
                f"could not{some} be read from {shown}: {self.failure}. Look at [metrics]"
                " prometheus, and whether it runs"
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
        if finished and without and self.source.axes(self.loads):
            told = ", ".join(without[:_NAMED]) + (", ..." if len(without) > _NAMED else "")
            where = "" if series else f" at {shown}"
            of = count(len(settings.queries), "query", "queries")
            notes.append(f"{count(len(without))} of {of} had no series{where}: {told}")
        if finished and not self.source.axes(self.loads):
            notes.append(
                f"no load was as long as {FEWEST_SCRAPES} scrapes of {shown}, which are"
                f" {spaced(self.source.scrape_s)} apart"
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
        if abs(self.source.ahead_s) > max(_NOTICEABLE_S, self.source.error_s):
            word = "ahead of" if self.source.ahead_s > 0 else "behind"
            notes.append(
                f"the clock of {shown} is {spaced(abs(self.source.ahead_s))} {word} the clock of"
                f" Redis (+-{spaced(self.source.error_s)}), corrected"
            )
        return notes
