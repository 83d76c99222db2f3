"""Queries the traces of a run from the backend to which services send spans, in limited time.

Spans arrive late: missing traces are queried again with growing pauses.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from osbench.coordinator.formatting import count
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.model.spans import Span
from osbench.edges.traces.sources.span_spool import SpanSpool
from osbench.edges.traces.sources.trace_backend import (
    BackendResponse,
    BackendState,
    TraceBackend,
)

LOG = logging.getLogger(__name__)

#: The file of spans in the folder of traces, while traces are read.
QUERIED = "queried"
#: Pauses before the rounds of queries, seconds.
_PAUSES_S = (0.0, 2.0, 4.0, 8.0, 16.0)
_POLL_S = 0.25
#: Failures of the backend, one after another, after which no more is queried.
_AWAY = 20
_FAILURES = frozenset(
    (
        BackendState.UNREACHABLE,
        BackendState.TIMED_OUT,
        BackendState.TOO_LARGE,
        BackendState.FAILED,
    )
)
#: States in which a later query may find more.
_AGAIN = frozenset(
    (BackendState.MISSING, BackendState.BUSY, BackendState.TIMED_OUT, BackendState.UNREACHABLE)
)
_ANSWERED = frozenset((BackendState.FOUND, BackendState.PARTIAL))

#: Words for traces that were not found, by state.
_WORDS = (
    (BackendState.MISSING, "are not there: not sampled, not stored yet, or past its retention"),
    (BackendState.PARTIAL, "are there in part only, and are not compared"),
    (BackendState.TOO_LARGE, "are too large"),
    (BackendState.BUSY, "were refused, since it was too busy"),
    (BackendState.TIMED_OUT, "had no response in time"),
    (BackendState.UNREACHABLE, "could not be queried"),
    (BackendState.REFUSED, "were refused: look at [traces] query_headers"),
    (BackendState.FAILED, "could not be read"),
)


@dataclass(frozen=True, kw_only=True)
class QuerySettings:
    """Settings for querying traces: backend, and limits on their number, time and bytes."""

    backend: TraceBackend
    #: Most traces, about, and most queries at once.
    most: int = 4000
    parallel: int = 8
    #: Longest time for all queries, and in which missing traces are queried again, seconds.
    limit_s: float = 120.0
    late_s: float = 30.0
    #: Bytes that spans may take, compressed, while they are read.
    limit_bytes: int = 512 << 20


@dataclass(kw_only=True)
class _Asked:
    """State of the queries of a run: last result by trace, a reason by kind of failure, and counts.

    `hopeless` says whether to stop.
    """

    states: dict[str, BackendState] = field(default_factory=dict)
    #: Ids of known spans of traces whose parents are missing.
    open: dict[str, set[str]] = field(default_factory=dict)
    #: The first reason for each state.
    reasons: dict[BackendState, str] = field(default_factory=dict)
    skipped: int = 0
    full: bool = False
    refused: bool = False
    #: Failures of the backend, one after another.
    away: int = 0

    @property
    def hopeless(self) -> bool:
        """Return whether to stop: spool full, access denied, or backend unreachable or broken."""
        return self.full or self.refused or self.away >= _AWAY


class QueriedTraces:
    """Queries the traces of one run from a backend, and writes them to a spool.

    `fetch` is called once, then the other methods.
    """

    def __init__(
        self, directory: RunDirectory, settings: QuerySettings, wanted: Callable[[], bool]
    ) -> None:
        """Prepare queries; nothing is sent yet.

        `directory`: the run, in whose folder of traces the spool is written. `wanted` returns False
        to end the queries early.
        """
        self._path = directory.path / "traces" / QUERIED
        self._settings = settings
        self._wanted = wanted
        self._asked = _Asked()
        self._ids: tuple[str, ...] = ()
        self._took_s = 0.0

    def fetch(self, ids: Sequence[str]) -> None:
        """Query these traces in this order, and write their spans to a spool in the run directory.

        Traces that are missing or have gaps, or whose query may succeed later, are queried again
        until `late_s`: twice, and up to four times while new spans come. All queries end at
        `limit_s`, if `wanted` returns False, if the spool is full, or if the backend denies access
        or fails again and again. Replaces an earlier spool. Raises OSError if it cannot be written.
        """
        # of a collection that was broken off
        self._path.unlink(missing_ok=True)
        self._ids = tuple(ids)
        begin = time.monotonic()
        spool = SpanSpool(self._path, self._settings.limit_bytes)
        try:
            self._rounds(spool, begin)
            spool.flush()
        finally:
            spool.close()
        self._took_s = time.monotonic() - begin

    @property
    def skipped(self) -> int:
        """Number of malformed spans in the responses."""
        return self._asked.skipped

    def found(self) -> frozenset[str]:
        """Return ids of traces in state FOUND: the backend did not report missing spans."""
        states = self._asked.states.items()
        return frozenset(one for one, state in states if state is BackendState.FOUND)

    def notes(self) -> Iterator[str]:
        """Yield messages for the report: how many traces were found, also in part, and how fast.

        Then the number of traces in each state but FOUND, with the reason, and of traces not
        queried.
        """
        asked, shown = self._asked, self._settings.backend.shown
        counts = Counter(asked.states.values())
        found = counts[BackendState.FOUND] + counts[BackendState.PARTIAL]
        yield (
            f"{count(found)} of {count(len(self._ids), 'trace')} found at {shown},"
            f" in {self._took_s:.1f} s"
        )
        for state, words in _WORDS:
            if counts[state]:
                why = asked.reasons.get(state)
                yield f"{count(counts[state])} {words}" + (f" ({why})" if why else "")
        left = len(self._ids) - len(asked.states)
        if left:
            why = "[traces] query_limit_s was over"
            if asked.full:
                why = "[traces] otlp_limit_mib is full"
            elif asked.hopeless:
                why = "no other query succeeded"
                if counts[BackendState.FAILED] + counts[BackendState.TOO_LARGE]:
                    why = f"{_AWAY} queries in a row had no usable response"
            elif not self._wanted():
                why = "the run was stopped"
            yield f"{count(left)} were not queried: {why}"

    def _rounds(self, spool: SpanSpool, begin: float) -> None:
        asked, settings = self._asked, self._settings
        left: Sequence[str] = self._ids
        for number, pause_s in enumerate(_PAUSES_S):
            if not left or (number and time.monotonic() - begin + pause_s > settings.late_s):
                return
            resume = time.monotonic() + pause_s
            while self._wanted() and time.monotonic() < resume:
                time.sleep(min(_POLL_S, max(resume - time.monotonic(), 0)))
            fresh = 0
            for response in self._answers(left, begin + settings.limit_s):
                fresh += self._take(response, spool)
            left = [one for one in left if asked.states.get(one) in _AGAIN or one in asked.open]
            # the first spans of services come within seconds
            if (number > 1 and not fresh) or asked.hopeless or not self._wanted():
                return

    def _answers(self, ids: Sequence[str], deadline: float) -> Iterator[BackendResponse]:
        """Query traces in up to `parallel` threads; yield the responses in the order of arrival.

        Ends when all have responded, at `deadline` (monotonic seconds), if `wanted` returns False,
        or if further queries are useless. An error of a query is a response, too.
        """
        settings, asked = self._settings, self._asked
        waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        for one in ids:
            waiting.put(one)
        # bounded, as responses may be large
        answers: queue.Queue[BackendResponse] = queue.Queue(settings.parallel)
        ended = threading.Event()

        def ask() -> None:
            while not ended.is_set():
                try:
                    one = waiting.get_nowait()
                except queue.Empty:
                    return
                response = _answer_of(settings.backend, one)
                while not ended.is_set():
                    with suppress(queue.Full):
                        answers.put(response, timeout=_POLL_S)
                        break

        # daemons, so that a response that drips does not keep the process
        for number in range(min(settings.parallel, len(ids))):
            threading.Thread(target=ask, name=f"trace-query-{number}", daemon=True).start()
        came = 0
        try:
            while came < len(ids) and self._wanted() and not asked.hopeless:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    return
                try:
                    response = answers.get(timeout=min(_POLL_S, left_s))
                except queue.Empty:
                    continue
                came += 1
                yield response
        finally:
            ended.set()

    def _take(self, response: BackendResponse, spool: SpanSpool) -> bool:
        """Note the state of a response, and write spans not seen before to the spool.

        Failures in a row are counted in any case. Otherwise a failed query of a trace that was
        found before changes nothing, and spans for a full spool only set `full`. Returns whether
        new spans were written. Raises OSError.
        """
        asked, trace_id = self._asked, response.trace_id
        before = asked.states.get(trace_id)
        asked.away = asked.away + 1 if response.state in _FAILURES else 0
        if before in _ANSWERED and response.state not in _ANSWERED:
            return False
        if response.spans and spool.is_full:
            asked.full = True
            return False
        asked.states[trace_id] = response.state
        asked.refused = asked.refused or response.state is BackendState.REFUSED
        if response.why:
            asked.reasons.setdefault(response.state, response.why)
        known = asked.open.pop(trace_id, set())
        if not known:
            asked.skipped += response.skipped
        fresh = [span for span in response.spans if span.span_id not in known]
        key = bytes.fromhex(trace_id)
        for span in fresh:
            spool.add(key, span)
        known.update(span.span_id for span in fresh)
        if response.state is BackendState.FOUND and _has_gap(response.spans, known):
            asked.open[trace_id] = known
        return bool(fresh)


def _answer_of(backend: TraceBackend, trace_id: str) -> BackendResponse:
    try:
        return backend.ask(trace_id)
    except Exception as error:
        # an error in a trace must not end the queries of others
        LOG.exception("a trace could not be queried")
        return BackendResponse(
            trace_id=trace_id, state=BackendState.FAILED, why=type(error).__name__
        )


def _has_gap(spans: Sequence[Span], known: set[str]) -> bool:
    """Return whether a span's parent is not among `known` span ids, though it should be.

    Spans of servers and of unknown kind do not count: their parent may be of a worker, whose spans
    are not in the response.
    """
    return any(
        span.parent_id and span.parent_id not in known and span.kind not in ("", "server")
        for span in spans
    )
