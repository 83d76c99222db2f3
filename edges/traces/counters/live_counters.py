"""Reads the counters of a run from Prometheus while it runs, for the live page."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np

from osbench.common.errors import OsbenchError
from osbench.common.secrets.masking import error_text
from osbench.coordinator.results.accounting.load_span import LoadSpan
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.counters.counter_collection import CounterSettings
from osbench.edges.traces.counters.counter_file import write_counters
from osbench.edges.traces.counters.counter_query import CounterQuery
from osbench.edges.traces.counters.counter_series import Floats
from osbench.edges.traces.counters.counter_source import (
    POINTS,
    CounterSource,
    Labels,
    LoadAxis,
    greatest,
    workload_counters,
)
from osbench.edges.traces.counters.prometheus import PrometheusAwayError, QueryRefusedError

LOG = logging.getLogger(__name__)

#: Least time between two looks, and the longest after failures, which double it, seconds.
LOOK_S, LONGEST_S = 5.0, 60.0
#: The part of a core that looks may take.
SHARE = 0.01
#: Last values that are asked for again: their scrapes may have come late.
_AGAIN = 5


class LiveCounters:
    """Reads counters in a thread while a run runs, and writes them to the run directory.

    Errors do not reach the run: `trouble` states the present one, the log the first one. A context
    manager: nothing is written after its end, even if a query is unanswered then.
    """

    def __init__(
        self,
        directory: RunDirectory,
        settings: CounterSettings,
        redis_now_s: Callable[[], float],
    ) -> None:
        #: The loads so far by number of the workload; the run replaces it, and the thread reads it.
        self.loads: Mapping[int, LoadSpan] = {}
        #: Message while counters cannot be read or written; else "".
        self.trouble = ""
        self._directory = directory
        self._settings = settings
        self._redis_now_s = redis_now_s
        self._ended = threading.Event()
        #: Held while the file is written.
        self._writing = threading.Lock()
        self._was_told = False
        #: None until the server is known, and after it failed.
        self._source: CounterSource | None = None
        #: By begin of the axis and name of the query.
        self._held: dict[tuple[float, str], _KnownValues] = {}
        #: There are values that are not written yet.
        self._has_news = False
        #: By name of a failed query: the reason, and the Redis time from which it is sent again.
        self._skipped: dict[str, tuple[str, float]] = {}

    def __enter__(self) -> LiveCounters:
        # a daemon: the run does not wait for a response
        threading.Thread(target=self._run, name="live-counters", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._writing:
            self._ended.set()

    def _run(self) -> None:
        pause_s = LOOK_S
        while not self._ended.wait(pause_s):
            began = time.thread_time()
            try:
                self.look()
            except (PrometheusAwayError, OsbenchError) as error:
                pause_s = min(2 * pause_s, LONGEST_S)
                self._source = None
                self._tell(str(error))
            except Exception as error:
                LOG.exception("counters are not shown live")
                self.trouble = f"Counters are not up to date: {error_text(error)}."
                return
            else:
                self._tell_skipped()
                scrape_s = self._source.scrape_s if self._source else 0.0
                pause_s = max(LOOK_S, scrape_s, (time.thread_time() - began) / SHARE)

    def _tell_skipped(self) -> None:
        if not self._skipped:
            self.trouble = ""
            return
        name, (why, _) = next(iter(self._skipped.items()))
        more = f", and {len(self._skipped) - 1} more" if len(self._skipped) > 1 else ""
        self._tell(f"the query {name!r} failed{more}: {why}")

    def _tell(self, why: str) -> None:
        shown = self._settings.server.shown
        if not self._was_told and not self._ended.is_set():
            LOG.warning("live counters of %s lack values: %s; they are tried again", shown, why)
            self._was_told = True
        self.trouble = f"Counters of {shown} are not up to date: {why}. They are tried again."

    def look(self) -> None:
        """Read the newest values of all counters; write all if any are new. Only if there is load.

        Nothing is written before each query has had a response or failed. If a query fails while
        the server does respond, it is not sent again for `LONGEST_S` s. Raises PrometheusAwayError,
        StorageError.
        """
        loads = self.loads
        if not loads:
            return
        answers = self._source is None
        source = self._source = self._source or self._new_source()
        now_s = self._redis_now_s()
        axes = [(axis, _step_s(source.scrape_s, axis.span_s)) for axis in source.axes(loads)]
        # queries that have failed come last, since the look may end there
        wanted = sorted(
            itertools.product(axes, self._settings.queries),
            key=lambda one: one[1].name in self._skipped,
        )
        for (axis, step_s), query in wanted:
            if self._ended.is_set():
                return
            held = self._known(axis, step_s, query)
            if self._again_at(query) > now_s or held.is_over(axis):
                continue
            try:
                self._has_news |= self._ask(source, axis, query, held)
            except PrometheusAwayError as error:
                if not answers:
                    raise PrometheusAwayError(f"the query {query.name!r} failed: {error}") from None
                self._skip(query, error)
                # the server may be unreachable
                break
            answers = True
        read = []
        for (axis, step_s), query in wanted:
            held = self._known(axis, step_s, query)
            if not held.points and query.name not in self._skipped:
                # the next look has what the present file may have
                return
            read.append((axis, step_s, source.counters(query, held.padded(axis))))
        with self._writing:
            if self._has_news and not self._ended.is_set():
                write_counters(self._directory, workload_counters(loads, read), sync=False)
                self._has_news = False

    def _new_source(self) -> CounterSource:
        source = CounterSource(server=self._settings.server, redis_now_s=self._redis_now_s)
        source.measure()
        source.name_hosts()
        return source

    def _known(self, axis: LoadAxis, step_s: float, query: CounterQuery) -> _KnownValues:
        """Return the values of a query that are held; none yet if `step_s` is new."""
        held = self._held.get((axis.begin_at, query.name))
        if held is None or held.step_s != step_s:
            held = self._held[axis.begin_at, query.name] = _KnownValues(step_s=step_s)
            # nothing is shown of it now
            self._skipped.pop(query.name, None)
        return held

    def _again_at(self, query: CounterQuery) -> float:
        """Return the Redis time before which a query is not sent; 0 if it has not failed."""
        return self._skipped.get(query.name, ("", 0.0))[1]

    def _skip(self, query: CounterQuery, error: Exception) -> None:
        self._skipped[query.name] = str(error), self._redis_now_s() + LONGEST_S

    def _ask(
        self, source: CounterSource, axis: LoadAxis, query: CounterQuery, held: _KnownValues
    ) -> bool:
        """Add the new values of a query to `held`; return whether there are any."""
        now_s = self._redis_now_s()
        first = max(0, held.points - _AGAIN)
        try:
            found = source.read(query, axis, held.step_s, first)
        except QueryRefusedError as error:
            # some reasons pass, such as a query that takes too long
            self._skip(query, error)
            return False
        self._skipped.pop(query.name, None)
        held.add(first, axis.points(held.step_s), found)
        held.ended_at = axis.end_at if now_s > axis.end_at + _AGAIN * held.step_s else 0.0
        return bool(found)


@dataclass(kw_only=True)
class _KnownValues:
    """The values of a query on one axis that are known so far, one per `step_s` seconds."""

    step_s: float
    points: int = 0
    #: By labels; `points` values each.
    values: dict[Labels, Floats] = field(default_factory=dict)
    #: End of the axis if all of it is read; else 0.
    ended_at: float = 0.0

    def is_over(self, axis: LoadAxis) -> bool:
        """Return whether all values of the axis are read."""
        return self.ended_at == axis.end_at

    def padded(self, axis: LoadAxis) -> dict[Labels, Floats]:
        """Return the values up to the end of the axis at least; nan if they are not known."""
        missing = axis.points(self.step_s) - self.points
        if missing <= 0:
            return self.values
        gap = np.full(missing, np.nan)
        return {labels: np.append(values, gap) for labels, values in self.values.items()}

    def add(self, first: int, points: int, found: Mapping[Labels, Floats]) -> None:
        """Add values from the place `first` on; all series get `points` values.

        Only the greatest series are kept.
        """
        longer = {}
        for labels in self.values.keys() | found.keys():
            values = np.full(points, np.nan)
            before = self.values.get(labels, values[:0])[:points]
            values[: len(before)] = before
            fresh = found.get(labels, values[:0])
            known = np.flatnonzero(np.isfinite(fresh))
            values[first + known] = fresh[known]
            longer[labels] = values
        self.values, self.points = greatest(longer)[0], points


def _step_s(scrape_s: float, span_s: float) -> float:
    """Return the seconds between two values: the scrapes' interval, doubled while too many fit.

    All values are asked for again when it doubles: a rate is over all of the time between two.
    """
    step_s = scrape_s
    while span_s / step_s > POINTS - 1:
        step_s *= 2
    return step_s
