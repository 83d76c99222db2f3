"""Reads the counters of a run from Prometheus while it runs, for the live page."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np

from osbench.common.errors import OsbenchError
from osbench.common.secrets.masking import error_text
from osbench.coordinator.counters.counter_collection import CounterSettings
from osbench.coordinator.counters.counter_file import write_counters
from osbench.coordinator.counters.counter_query import CounterQuery
from osbench.coordinator.counters.counter_series import CounterSeries, Floats, LoadSpan
from osbench.coordinator.counters.counter_source import (
    POINTS,
    CounterSource,
    Labels,
    LoadAxis,
    greatest,
    workload_counters,
)
from osbench.coordinator.counters.prometheus import PrometheusAwayError, QueryRefusedError
from osbench.coordinator.storage.run_directory import RunDirectory

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
        self._refused: set[str] = set()

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
                self.trouble = ""
                scrape_s = self._source.scrape_s if self._source else 0.0
                pause_s = max(LOOK_S, scrape_s, (time.thread_time() - began) / SHARE)

    def _tell(self, why: str) -> None:
        shown = self._settings.server.shown
        self.trouble = f"Counters of {shown} are not up to date: {why}. They are tried again."
        if not self._was_told and not self._ended.is_set():
            LOG.warning("no live counters of %s: %s; they are tried again", shown, why)
            self._was_told = True

    def look(self) -> None:
        """Read the newest values of all counters, and write all values; only if there is load.

        Raises PrometheusAwayError, and StorageError if the file cannot be written.
        """
        loads = self.loads
        if not loads:
            return
        if self._source is None:
            source = CounterSource(server=self._settings.server, redis_now_s=self._redis_now_s)
            source.measure()
            source.name_hosts()
            self._source = source
        read: list[tuple[LoadAxis, float, list[CounterSeries]]] = []
        has_news = False
        for axis in self._source.axes(loads):
            step_s = _step_s(self._source.scrape_s, axis.span_s)
            for query in self._settings.queries:
                if self._ended.is_set():
                    return
                held = self._held.get((axis.begin_at, query.name))
                if held is None or held.step_s != step_s:
                    held = self._held[axis.begin_at, query.name] = _KnownValues(step_s=step_s)
                if query.name not in self._refused and not held.is_over(axis):
                    has_news |= self._ask(self._source, axis, query, held)
                read.append((axis, step_s, self._source.counters(query, held.values)))
        with self._writing:
            if has_news and not self._ended.is_set():
                write_counters(self._directory, workload_counters(loads, read), sync=False)

    def _ask(
        self, source: CounterSource, axis: LoadAxis, query: CounterQuery, held: _KnownValues
    ) -> bool:
        """Add the new values of a query to `held`; return whether there are any."""
        now_s = self._redis_now_s()
        first = max(0, held.points - _AGAIN)
        try:
            found = source.read(query, axis, held.step_s, first)
        except QueryRefusedError:
            # the report says why
            self._refused.add(query.name)
            return False
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
