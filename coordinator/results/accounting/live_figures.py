"""Figures for live displays of a workload: rates, percentiles, criteria, failures, workers."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from osbench.common.protocol.messages import Heartbeat
from osbench.common.secrets.masking import mask_text
from osbench.common.secrets.url_masking import mask_url
from osbench.common.values.histogram import rank
from osbench.coordinator.formatting import plain
from osbench.coordinator.load.fleet.worker import WorkerHandle
from osbench.coordinator.results.accounting.error_groups import ErrorGroup, shown_kind
from osbench.coordinator.results.accounting.workload_results import WorkloadResults
from osbench.coordinator.results.statistics.recent_times import RecentTimes, Sums
from osbench.coordinator.results.storage.progress import (
    CriterionState,
    FailureProgress,
    RecentProgress,
    WorkerProgress,
)

#: Seconds that rates cover at least, and seconds from one computation to the next.
RATE_S = 5.0
FRESH_S = 1.0
#: A worker is called silent after this many seconds without a heartbeat.
SILENT_S = 2.0

#: Kinds of failure that are shown; letters of a message, and of the name of a class or an action.
FAILURES = 10
_LETTERS = 400
_NAME = 120

_PERCENTS = (50.0, 95.0, 99.0)


class RecentRates:
    """Rates per second of counters over at least `RATE_S` seconds, or since the first sample."""

    def __init__(self) -> None:
        #: Samples: monotonic seconds, and all counters.
        self._samples: deque[tuple[float, Mapping[str, int]]] = deque()

    def add(self, now_s: float, counters: Mapping[str, int]) -> None:
        """Add a sample: cumulative counters by name, at `now_s` (monotonic seconds).

        Forgets samples that are too old for the rates.
        """
        self._samples.append((now_s, counters))
        # the last one that is old enough stays: the rates are over at least that time
        while len(self._samples) > 2 and now_s - self._samples[1][0] >= RATE_S:
            self._samples.popleft()

    def rate(self, name: str) -> float:
        """Return a counter's increase per second; 0 before two samples, and if it fell."""
        if len(self._samples) < 2:
            return 0.0
        (begin_s, before), (end_s, after) = self._samples[0], self._samples[-1]
        if end_s <= begin_s:
            return 0.0
        return max(0, after.get(name, 0) - before.get(name, 0)) / (end_s - begin_s)


class LiveFigures:
    """Computes the live fields of a workload's `Snapshot`, at most once per `FRESH_S` seconds."""

    def __init__(self, results: WorkloadResults, *, is_open: bool) -> None:
        self._results = results
        self._is_open = is_open
        self._rates = RecentRates()
        self._recent = RecentTimes()
        self._computed_s = -math.inf
        self._fields: dict[str, Any] = {}

    def fields(self, now_s: float, workers: Sequence[WorkerHandle]) -> dict[str, Any]:
        """Return fields of a `Snapshot` at `now_s` (monotonic); up to `FRESH_S` seconds old.

        `workers`: all workers that took part, present or not; `rows` has an entry for each.
        """
        if now_s - self._computed_s >= FRESH_S:
            self._computed_s = now_s
            self._fields = self._computed(now_s, workers)
        return self._fields

    def _computed(self, now_s: float, workers: Sequence[WorkerHandle]) -> dict[str, Any]:
        statistics = self._results.statistics
        parts = statistics.over_time.workers
        counters = {name: part.iterations for name, part in parts.items()}
        if self._results.t0_at:
            # before, there is no load that could have a rate
            self._rates.add(now_s, {**counters, "": self._results.ledger.settled})
            self._recent.add(self._sums(now_s))
        sla = self._criteria()
        times = statistics.response if self._is_open else statistics.service
        histogram, lag = times.ok, statistics.start_lag
        found: list[float | None] = [None] * len(_PERCENTS)
        if histogram.count:
            ranks = [rank(histogram.count, percent) for percent in _PERCENTS]
            found = [value / 1e9 for value in histogram.at_ranks(ranks)]
        return {
            "latency": "response" if self._is_open else "service",
            "rate": self._rates.rate(""),
            **dict(zip(("p50_s", "p95_s", "p99_s"), found, strict=True)),
            "lag_p99_s": lag.percentile(99.0) / 1e9 if lag.count else None,
            "start_failures": statistics.lives.start_failures,
            "search": trials.progress if (trials := self._results.trials) is not None else "",
            "recent": self._recent_progress(),
            "sla": sla,
            "failing": tuple(criterion.name for criterion in sla if not criterion.met),
            **self._failures(),
            "rows": tuple(self._row(worker) for worker in workers),
        }

    def _failures(self) -> dict[str, Any]:
        kinds: dict[tuple[str, str], list[ErrorGroup]] = defaultdict(list)
        for group in self._results.statistics.errors.groups():
            kinds[group.etype, shown_kind(group.message)].append(group)
        found = sorted(kinds.items(), key=lambda one: -sum(group.count for group in one[1]))
        return {
            "failures": tuple(_failure(kind, several) for (_, kind), several in found[:FAILURES]),
            "failure_kinds": len(found),
        }

    def _sums(self, now_s: float) -> Sums:
        statistics = self._results.statistics
        times = statistics.response if self._is_open else statistics.service
        return Sums(
            at_s=now_s,
            ran=statistics.ran,
            failed=statistics.count("failed") + statistics.count("timed_out"),
            times=times.ok.copy(),
            errors=statistics.errors.counts(),
        )

    def _recent_progress(self) -> RecentProgress | None:
        recent = self._recent
        if not recent.span_s:
            return None
        p50_s, p95_s = recent.percentiles_s(50.0, 95.0)
        error = recent.most_frequent_error()
        return RecentProgress(
            span_s=recent.span_s,
            rate=recent.ran / recent.span_s,
            p50_s=p50_s,
            p95_s=p95_s,
            failed=recent.failed,
            failed_share=recent.failed / recent.ran if recent.ran else 0.0,
            error="" if error is None else f"{error[0]}: {plain(error[1])}",
        )

    def _criteria(self) -> tuple[CriterionState, ...]:
        # a search breaks its criteria on purpose
        if self._results.trials is not None:
            return ()
        return tuple(
            CriterionState(
                name=verdict.criterion,
                met=verdict.success,
                # an exception of a plug-in may contain an address with a password
                detail=plain(mask_url(verdict.detail)),
            )
            for verdict in self._results.judge(running=True)
        )

    def _row(self, worker: WorkerHandle) -> WorkerProgress:
        beat = worker.beat
        over_time = self._results.statistics.over_time
        part = over_time.workers.get(worker.name)
        lag_ns = part.lag.percentile(99.0) if part is not None else math.nan
        state = beat.state
        if not worker.present:
            state = worker.state.name.lower()
        elif worker.silence_s >= SILENT_S:
            state = "silent"
        return WorkerProgress(
            name=f"{beat.host}:{beat.pid}",
            label=beat.label,
            state=state,
            users=worker.user_limit,
            busy=beat.busy if worker.present else 0,
            rate=self._rates.rate(worker.name),
            cpu=beat.cpu if worker.present else 0.0,
            lag_p99_s=None if math.isnan(lag_ns) else lag_ns / 1e9,
            coroutines=worker.uses_coroutines,
            host_cpu=_host_cpu(beat) if worker.present else None,
            silent_s=worker.silence_s if state in ("silent", "lost") else 0.0,
        )


def _host_cpu(beat: Heartbeat) -> float | None:
    """Return the used fraction (0 to 1) of the cores of a worker's host; None if not known."""
    if not beat.cores or beat.cores_used < 0:
        return None
    return beat.cores_used / beat.cores


def _failure(kind: str, groups: Sequence[ErrorGroup]) -> FailureProgress:
    """Return groups of similar failures as one entry; its example is the lowest iteration's.

    `kind`: their message with `*` instead of numbers and ids; it is shown if the messages differ.
    Secrets are masked, long texts cut.
    """
    first = min(groups, key=lambda group: group.iteration)
    differ = len({group.message for group in groups}) > 1
    return FailureProgress(
        type=plain(first.etype, _NAME),
        message=plain(mask_text(kind if differ else first.message), _LETTERS),
        count=sum(group.count for group in groups),
        step=plain(mask_text(first.place.step), _NAME),
        status=first.place.status,
    )
