"""The watcher of counters of the system under test: live, and complete at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from osbench.common.plugin.sla import SpanSelection
from osbench.coordinator.load.run.plan import RunPlan
from osbench.coordinator.load.run.watcher import Findings, WatchedRun, Watcher
from osbench.coordinator.results.accounting.load_span import LoadSpan, load_spans
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome

if TYPE_CHECKING:
    from osbench.edges.traces.counters.counter_collection import CounterSettings
    from osbench.edges.traces.counters.live_counters import LiveCounters


class CounterWatcher(Watcher):
    """Reads counters from the Prometheus of `[metrics] prometheus`."""

    def __init__(self, settings: CounterSettings) -> None:
        self._settings = settings
        self._run: WatchedRun | None = None
        self._live: LiveCounters | None = None
        self._reading = ExitStack()

    @classmethod
    def of(cls, plan: RunPlan, *, resumed: bool) -> CounterWatcher | None:
        """Return the watcher of a run; None if it names no Prometheus. Raises UsageError."""
        if not plan.conf.metrics.prometheus:
            return None
        # few runs read counters, and these take a while to import
        from osbench.edges.traces.counters.counter_collection import (  # noqa: PLC0415 - as above
            counter_settings,
        )

        settings = counter_settings(plan.conf)
        return None if settings is None else cls(settings)

    def begin(self, run: WatchedRun) -> str:
        """Begin to read counters in a thread; return a message that says so."""
        from osbench.edges.traces.counters.live_counters import (  # noqa: PLC0415 - seldom
            LiveCounters,
        )

        self._run = run
        live = LiveCounters(run.directory, self._settings, run.now_s)
        self._live = self._reading.enter_context(live)
        return f"counters are read from {self._settings.server.shown}, live and at the end"

    def look(self, loads: Mapping[int, LoadSpan]) -> str:
        """Read counters of these loads from now on; return why some are not up to date, or ""."""
        if self._live is None:
            return ""
        self._live.loads = loads
        return self._live.trouble

    def load_over(self) -> None:
        """End the thread's reading."""
        self._reading.close()

    def collect(
        self,
        outcomes: Sequence[WorkloadOutcome],
        selections: Mapping[int, Sequence[SpanSelection]],
    ) -> Findings:
        """Read all counters, write them to the run directory, and return outcomes with counters."""
        from osbench.edges.traces.counters.counter_collection import (  # noqa: PLC0415 - seldom
            collect_counters,
        )

        assert self._run is not None
        run = self._run
        found = collect_counters(
            run.directory, self._settings, load_spans(outcomes), run.now_s, run.wanted
        )
        counted = [
            replace(one, counters=found.workloads.get(number))
            for number, one in enumerate(outcomes)
        ]
        return Findings(outcomes=counted, notes=found.notes)

    def end(self, *, resumable: bool) -> None:
        """End the thread's reading, if the load has not ended in order."""
        self.load_over()
