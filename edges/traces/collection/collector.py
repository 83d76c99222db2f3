"""Collects the traces of a run at its end: reads and digests them, keeps some, deletes the rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.errors import StoreError, UsageError
from osbench.common.plugin.sla import SpanFigures, SpanSelection
from osbench.coordinator.formatting import count, distinct, plain
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.analysis.comparison import Comparison, LoadParts, compare_parts, due_in
from osbench.edges.traces.analysis.digest import Digest, Survey
from osbench.edges.traces.analysis.explanation import explain
from osbench.edges.traces.analysis.features import NO_GROUP, Features
from osbench.edges.traces.analysis.notes import missing_parts
from osbench.edges.traces.collection.archive import Archive, Spool
from osbench.edges.traces.collection.collected import Collected
from osbench.edges.traces.collection.iteration_counters import iteration_counters
from osbench.edges.traces.collection.overhead import tracing_overhead
from osbench.edges.traces.collection.queried_traces import QueriedTraces, QuerySettings
from osbench.edges.traces.collection.received import ReceivedTraces
from osbench.edges.traces.collection.retention import Retention, even_sample, queried_rows
from osbench.edges.traces.collection.traced_iterations import (
    TracedIterations,
    traced_iterations,
)
from osbench.edges.traces.counters.counter_series import WorkloadCounters
from osbench.edges.traces.model.spans import Trace
from osbench.edges.traces.sources.files import merge, open_file
from osbench.edges.traces.sources.redis_store import RedisTraces

_POLL_S = 0.25
#: After this time without new events, traces without gaps are complete, seconds.
_QUIET_S = 0.5
#: Expiry of traces with gaps, seconds: if they were deleted, late events would start lists that
#: never expire.
_GAPS_S = 60


@dataclass(frozen=True, kw_only=True)
class CollectionSettings:
    """Settings for collecting traces: sources, limits, retention, spans to count."""

    retention: Retention
    #: Longest wait for late events, and expiry of kept traces in the store, seconds.
    late_s: float
    expiry_s: int
    #: Most traces that are read, sampled at random, in addition to traces to be kept.
    most: int = 100_000
    #: Keep arguments, parameters and queries.
    everything: bool = False
    #: Files with trace points of services.
    files: tuple[Path, ...] = ()
    #: Spans that criteria judge, by workload.
    selections: Mapping[int, Sequence[SpanSelection]] = field(default_factory=dict)
    #: The run received spans by OTLP, and how spans are queried.
    received: bool = False
    query: QuerySettings | None = None
    #: The wait for spans that services have not sent yet, seconds.
    otlp_late_s: float = 0.0

    #: Counters of the system under test, by workload.
    counters: Mapping[int, WorkloadCounters] = field(default_factory=dict)

    @property
    def by_otlp(self) -> bool:
        """Return whether services send spans by OTLP, to this run or to a queried backend."""
        return self.received or self.query is not None


@dataclass(kw_only=True)
class _Read:
    """State of reading the sources of traces: traces and events read so far, and gaps.

    Also unreadable entries, dropped events and notes. Made and changed by one `Collection`.
    """

    #: A trace that is read again counts twice here, which does not matter for a first pass.
    survey: Survey = field(default_factory=Survey)
    events: dict[str, int] = field(default_factory=dict)
    #: Traces with missing events.
    gaps: set[str] = field(default_factory=set)
    #: Number of readings of traces that were read more than once; the last one counts.
    again: dict[str, int] = field(default_factory=dict)
    #: The last reading of the files: parts of traces, number of unreadable entries, errors.
    parts: dict[str, Trace] = field(default_factory=dict)
    skipped: int = 0
    #: Parts of traces that were received by OTLP, and spans of workers in result blocks.
    received: ReceivedTraces | None = None
    #: Events that services dropped, by service.
    dropped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Collection:
    """Collects the traces of one run at its end: reads, digests, keeps and deletes them.

    `collect` is called once.
    """

    def __init__(
        self,
        directory: RunDirectory,
        names: Sequence[str],
        settings: CollectionSettings,
        *,
        warmup_ns: Mapping[int, int],
        compared: Mapping[int, LoadParts] | None = None,
        wanted: Callable[[], bool] = lambda: True,
        stop_storing: Callable[[], None] = lambda: None,
    ) -> None:
        """`names` are of all workloads; `warmup_ns` is by workload.

        `compared` has, by workload, two parts of its load whose traces are to be compared. `wanted`
        returns False to end queries and the wait for late spans. `stop_storing` returns when all
        spans received by OTLP are on disk.
        """
        self._directory = directory
        self._names = distinct(names)
        self._settings = settings
        self._warmup_ns = warmup_ns
        self._compared = compared or {}
        self._comparisons: dict[int, Comparison] = {}
        self._wanted = wanted
        self._stop_storing = stop_storing
        self._began = time.monotonic()
        self._archive = Archive(directory.path)
        self._notes: list[str] = []
        self._spans: Mapping[int, Sequence[SpanFigures]] = {}
        self._skipped = 0
        #: Messages on the queries that were made.
        self._queried: list[str] = []

    def collect(self, conn_str: str | None) -> Collected:
        """Collect the traces from all sources, and write them to the run directory.

        `conn_str` is the address of the trace store, None if there is no readable store. Errors of
        sources become notes. In the store, kept and unreadable traces get an expiry of `expiry_s`,
        other incomplete ones a short expiry; the rest of the run's traces is deleted. Without
        traced iterations or sources only the overhead of tracing is returned. Raises OSError,
        DamagedRun.
        """
        rows, latencies = traced_iterations(self._directory, len(self._names), self._warmup_ns)
        costs = tuple(tracing_overhead(one) for one in latencies)
        settings = self._settings
        if not len(rows) or not (conn_str or settings.files or settings.by_otlp):
            return Collected(costs=costs)
        spool = self._archive.spool()
        try:
            sentences, kept = self._collect(rows, conn_str, spool)
        finally:
            spool.close()
            self._archive.release()
        return Collected(
            costs=costs,
            comparisons=self._comparisons,
            sentences=sentences,
            spans=self._spans,
            kept=kept,
            notes=tuple(self._notes),
        )

    def _collect(
        self, rows: TracedIterations, conn_str: str | None, spool: Spool
    ) -> tuple[tuple[str, ...], tuple[int, ...]]:
        everything = rows.ids()
        reasons = self._settings.retention.choose(rows)
        settings = self._settings
        query = settings.query
        if query is None:
            drawn = rows.drawn(self._settings.most / len(rows))
        else:
            drawn, reasons = queried_rows(rows, reasons, query.most)
        ids = [everything[at] for at in np.flatnonzero(drawn | (reasons > 0)).tolist()]
        read = _Read()
        if self._settings.by_otlp:
            # received parts lie in the order of their ids
            ids.sort()
            self._await_received()
            if query is not None:
                alone = not (conn_str or settings.files or settings.received)
                drawn = self._query(query, rows, drawn, ids, alone=alone)
            read.received = ReceivedTraces(self._directory, everything=self._settings.everything)
        self._from_files(ids, read)
        store, unread = self._from_store(conn_str, ids, spool, read)
        self._skipped += read.skipped
        self._notes += read.notes
        for trace_id in self._elsewhere(ids, read):
            parts = [part for part in self._parts(trace_id, read) if part is not None]
            if parts:
                trace = merge(parts) if len(parts) > 1 else parts[0]
                spool.add(trace)
                read.survey.add(trace)
        if read.received is not None:
            self._notes += read.received.notes()
        digest, kept = self._digest(rows, reasons, drawn, spool, read)
        if store is not None:
            # unread traces stay in the store
            self._tidy(store, everything, kept | unread, read)
        self._notes += [
            f"traces: {plain(name)} dropped {count(number, 'event')} of its spans"
            for name, number in sorted(read.dropped.items())
            if number
        ]
        features = digest.table.close()
        self._spans = digest.calls.figures()
        beside = iteration_counters(self._directory, features, settings.counters)
        explained = explain(features, digest.clocks, counters=beside)
        sentences = {answer.name: answer.sentence for answer in explained.answers}
        self._compare_parts(rows, features)
        self._archive.close(features, self._described(digest, len(rows), kept))
        by_otlp = self._settings.by_otlp
        self._notes += [
            f"traces: {line}"
            for line in missing_parts(digest.coverage, by_otlp=by_otlp, queried=bool(self._queried))
        ]
        by_workload = [0] * len(self._names)
        for at, trace_id in enumerate(everything):
            by_workload[int(rows.workload[at])] += trace_id in kept
        return tuple(sentences.get(name, "") for name in self._names), tuple(by_workload)

    def _await_received(self) -> None:
        """Wait until services have sent their last spans, then stop storing received spans.

        Waits until `otlp_late_s` seconds after this object was made, or until `wanted` returns
        False.
        """
        deadline = self._began + self._settings.otlp_late_s
        while self._wanted() and time.monotonic() < deadline:
            time.sleep(min(_POLL_S, max(deadline - time.monotonic(), 0)))
        self._stop_storing()

    def _query(
        self,
        query: QuerySettings,
        rows: TracedIterations,
        drawn: NDArray[np.bool_],
        ids: Sequence[str],
        *,
        alone: bool,
    ) -> NDArray[np.bool_]:
        """Query the traces `ids` from the backend into a spool; return which iterations to compare.

        The result has a boolean per iteration. `drawn` is the random sample of iterations to
        compare. If `alone` (services have no other source of spans), only traces that were found
        are compared, thinned to an even sample; otherwise the result is `drawn`. Adds messages to
        the notes.
        """
        queries = QueriedTraces(self._directory, query, self._wanted)
        place = dict(zip(rows.ids(), drawn.tolist(), strict=True))
        # traces to be kept first; ids are random, so that any part of the sample is a sample
        queries.fetch(sorted(ids, key=lambda one: place[one]))
        self._skipped += queries.skipped
        in_sample = int(drawn.sum())
        self._queried = [
            f"queried: a random sample of {count(in_sample)} of {count(len(rows))} traced"
            f" iterations, which is compared, and {count(len(ids) - in_sample)} others to be kept",
            *queries.notes(),
        ]
        if alone:
            found = queries.found()
            even = even_sample(rows, drawn, np.array([one in found for one in rows.ids()], bool))
            drawn = even.chosen
            if even.uneven:
                low, high = (f"{100 * share:.0f} %" for share in even.uneven)
                self._queried.append(
                    f"how many are there depends on their service time ({low} to {high}): only"
                    f" {count(even.used)} of {count(even.found)} are compared, to have an even"
                    " sample. If the backend samples by duration, have it keep a share of all"
                )
        self._notes += [f"traces: {line}" for line in self._queried]
        return drawn

    @staticmethod
    def _elsewhere(ids: Sequence[str], read: _Read) -> Iterator[str]:
        """Yield ids of traces that were not found in the store and may have parts elsewhere.

        If spans were received or queried, all such `ids`; else such ids as the files have.
        """
        if read.received is None:
            yield from read.parts.keys() - read.events.keys()
        else:
            yield from (trace_id for trace_id in ids if trace_id not in read.events)

    @staticmethod
    def _parts(trace_id: str, read: _Read) -> tuple[Trace | None, ...]:
        """Return the parts of a trace outside the store: from files, and from received spans.

        Each is None if it is missing.
        """
        received = read.received.get(trace_id) if read.received is not None else None
        return read.parts.get(trace_id), received

    def _compare_parts(self, rows: TracedIterations, features: Features) -> None:
        for number, parts in self._compared.items():
            mine = rows.workload == number
            before, after = (due_in(rows.iteration[mine], rows.due[mine], one) for one in parts)
            name = self._names[number]
            self._comparisons[number] = compare_parts(features, name, before, after)

    def _from_files(self, ids: Sequence[str], read: _Read) -> None:
        found: dict[str, Trace] = {}
        read.parts, read.skipped, read.notes = found, 0, []
        for path in self._settings.files:
            try:
                source = open_file(path, everything=self._settings.everything)
                for trace in source.read(ids):
                    other = found.get(trace.trace_id)
                    found[trace.trace_id] = merge([other, trace]) if other else trace
                read.skipped += source.skipped
            except UsageError as error:
                read.notes.append(f"traces: {error}")

    def _from_store(
        self, conn_str: str | None, ids: Sequence[str], spool: Spool, read: _Read
    ) -> tuple[RedisTraces | None, set[str]]:
        """Read the traces `ids` from the store into `spool`, and their state into `read`.

        Returns the store, still open, and the ids that could not be read. The store is None without
        `conn_str`, or if it cannot be opened. Errors of the store become a note.
        """
        store = None
        try:
            if conn_str:
                store = RedisTraces(conn_str, everything=self._settings.everything)
                self._until_read(store, ids, spool, read)
        except StoreError as error:
            self._notes.append(f"traces could not all be collected: {error}")
            return store, set(ids) - read.events.keys()
        return store, set()

    def _until_read(
        self,
        store: RedisTraces,
        ids: Sequence[str],
        spool: Spool,
        read: _Read,
    ) -> None:
        """Read the traces `ids` from the store into `spool`, and growing ones again.

        Ends once no trace has gaps or grows, after `late_s` seconds, or if `wanted` returns False.
        Then reads the files again, and the numbers of events that services dropped. Raises
        StoreError.
        """
        try:
            self._until_quiet(store, ids, spool, read)
            self._files_again(store, ids, spool, read)
            read.dropped = store.dropped(ids)
        finally:
            self._skipped += store.skipped

    def _until_quiet(
        self,
        store: RedisTraces,
        ids: Sequence[str],
        spool: Spool,
        read: _Read,
    ) -> None:
        deadline = time.monotonic() + self._settings.late_s
        before = dict(zip(ids, store.lengths(ids), strict=True))
        self._read(store, ids, before, spool, read)
        quiet = time.monotonic()
        while self._wanted() and time.monotonic() < deadline:
            if not read.gaps and time.monotonic() - quiet >= _QUIET_S:
                break
            time.sleep(_POLL_S)
            lengths = dict(zip(ids, store.lengths(ids), strict=True))
            grown = [trace for trace in ids if lengths[trace] > read.events.get(trace, 0)]
            if grown:
                self._read(store, grown, lengths, spool, read)
                quiet = time.monotonic()

    def _files_again(
        self, store: RedisTraces, ids: Sequence[str], spool: Spool, read: _Read
    ) -> None:
        """Read the files again, since collectors write them at intervals; nothing without files.

        Traces of the store that have other parts in the files now are added to `spool` again.
        Raises StoreError.
        """
        if not self._settings.files:
            return
        before = read.parts
        self._from_files(ids, read)
        grown = [one for one in read.events if read.parts.get(one) != before.get(one)]
        lengths = dict(zip(grown, store.lengths(grown), strict=True))
        self._read(store, grown, lengths, spool, read)

    def _read(
        self,
        store: RedisTraces,
        ids: Sequence[str],
        lengths: Mapping[str, int],
        spool: Spool,
        read: _Read,
    ) -> None:
        for found in store.read(ids, lengths):
            trace_id = found.trace_id
            parts = [part for part in self._parts(trace_id, read) if part is not None]
            trace = merge([found, *parts]) if parts else found
            spool.add(trace)
            read.survey.add(trace)
            if trace_id in read.events:
                read.again[trace_id] = read.again.get(trace_id, 1) + 1
            read.events[trace_id] = lengths[trace_id]
            if trace.is_whole:
                read.gaps.discard(trace_id)
            else:
                read.gaps.add(trace_id)

    def _digest(
        self,
        rows: TracedIterations,
        reasons: NDArray[np.uint8],
        drawn: NDArray[np.bool_],
        spool: Spool,
        read: _Read,
    ) -> tuple[Digest, set[str]]:
        place = {trace_id: at for at, trace_id in enumerate(rows.ids())}
        digest = Digest(read.survey, self._names, self._settings.selections)
        kept: set[str] = set()
        for trace in _last(spool, read.again):
            at = place[trace.trace_id]
            reason = int(reasons[at])
            if reason and self._settings.retention.has_room(reason, self._archive.size):
                kept.add(trace.trace_id)
                self._archive.keep(trace)
            if not rows.warming[at]:
                digest.add_iteration(
                    trace,
                    # traces outside the random sample would overrepresent slow ones
                    group=int(rows.workload[at]) if drawn[at] else NO_GROUP,
                    iteration=int(rows.iteration[at]),
                    outcome=int(rows.outcome[at]),
                    kept=trace.trace_id in kept,
                )
        return digest, kept

    def _tidy(self, store: RedisTraces, ids: Sequence[str], kept: set[str], read: _Read) -> None:
        rest = [trace for trace in ids if trace not in kept]
        try:
            store.expire(kept, self._settings.expiry_s)
            store.forget([trace for trace in rest if trace in read.gaps], _GAPS_S)
            store.delete([trace for trace in rest if trace not in read.gaps])
        except StoreError as error:
            self._notes.append(f"traces to be deleted could not all be deleted: {error}")
        finally:
            store.close()

    def _described(self, digest: Digest, traced: int, kept: set[str]) -> dict[str, Any]:
        return {
            "traced": traced,
            "kept": len(kept),
            "skipped": self._skipped,
            "census": digest.coverage.to_dict(),
            "usual": [[*kinds, number] for kinds, number in digest.usual.items()],
            "clocks": [asdict(offset) for offset in digest.clocks.skews],
            "pauses": digest.ranking.pauses,
            "paused_s": digest.ranking.paused_ns / 1e9,
            "arguments": self._settings.everything,
            "calls": digest.calls.to_dict(self._names),
            "by_otlp": self._settings.by_otlp,
            "queried": self._queried,
            "ranking": [asdict(row) for row in digest.ranking.rows()],
            "notes": self._notes,
        }


def _last(spool: Spool, again: Mapping[str, int]) -> Iterator[Trace]:
    """Yield of each trace in a spool only the last reading; `again` has the number of readings.

    It has only traces that were read more than once.
    """
    left = dict(again)
    for trace in spool:
        readings = left.get(trace.trace_id, 1)
        if readings > 1:
            left[trace.trace_id] = readings - 1
        else:
            yield trace
