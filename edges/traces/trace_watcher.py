"""The watcher of traces: receives spans by OTLP or queries them, explains slow iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from osbench.common.errors import UsageError
from osbench.common.plugin.sla import SpanSelection
from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.load.run.plan import RunPlan
from osbench.coordinator.load.run.watcher import Findings, WatchedRun, Watcher
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.search.trials import GROWN

if TYPE_CHECKING:
    from osbench.edges.traces.collection.collected import Collected
    from osbench.edges.traces.receiving.otlp_receiver import OtlpReceiver
    from osbench.edges.traces.sources.trace_backend import TraceBackend


class TraceWatcher(Watcher):
    """Receives or queries spans if that is asked for; collects traces or times of requests."""

    AFTER = ("counters",)

    def __init__(self, receiver: OtlpReceiver | None, backend: TraceBackend | None) -> None:
        self._receiver = receiver
        self._backend = backend
        self._run: WatchedRun | None = None

    @classmethod
    def of(cls, plan: RunPlan, *, resumed: bool) -> TraceWatcher:
        """Return the watcher of a run; every run may have times of requests to explain.

        Binds the receiver's address. A new run checks the backend by a query. Raises UsageError.
        """
        receiver = _receiver(plan)
        try:
            backend = _backend(plan)
            if backend is not None and not resumed:
                backend.check()
        except UsageError:
            if receiver is not None:
                receiver.stop()
            raise
        return cls(receiver, backend)

    def begin(self, run: WatchedRun) -> str:
        """Start the receiver if there is one; return text on it and the backend, a line each."""
        self._run = run
        said = []
        if self._receiver is not None:
            self._receiver.start(run.plan.run_id, run.directory.path)
            said.append(f"spans are received by OTLP at {self._receiver.url}")
        if self._backend is not None:
            said.append(f"traces are queried at {mask_url(run.plan.query_url)} at the end")
        return "\n".join(said)

    def collect(
        self,
        outcomes: Sequence[WorkloadOutcome],
        selections: Mapping[int, Sequence[SpanSelection]],
    ) -> Findings:
        """Explain slow iterations by traces or times of HTTP requests, if any; end the receiver."""
        assert self._run is not None
        run, requests = self._run, [one.statistics.requests for one in outcomes]
        explained = any(one.tracing.traced for one in outcomes)
        explained = explained or any(one.actions for one in requests)
        if not explained and self._receiver is None and self._backend is None:
            return Findings(outcomes=outcomes)
        # a run without requests is over sooner without these
        from osbench.edges.traces.collection.trace_collection import (  # noqa: PLC0415
            SpanSources,
            collect_traces,
        )

        collected = collect_traces(
            run.directory,
            outcomes,
            run.plan.deployment,
            run.plan.conf,
            wanted=run.wanted,
            selections=selections,
            sources=SpanSources(receiver=self._receiver, backend=self._backend),
        )
        return Findings(
            outcomes=[_explain(number, one, collected) for number, one in enumerate(outcomes)],
            spans=collected.spans,
            notes=collected.notes,
        )

    def end(self, *, resumable: bool) -> None:
        """Stop the receiver."""
        if self._receiver is not None:
            self._receiver.stop()


def _receiver(plan: RunPlan) -> OtlpReceiver | None:
    if not plan.otlp_address:
        return None
    # few runs receive or query spans, and these take a while to import
    from osbench.edges.traces.receiving.otlp_receiver import (  # noqa: PLC0415 - as above
        OtlpReceiver,
    )

    return OtlpReceiver(plan.otlp_address, plan.conf)


def _backend(plan: RunPlan) -> TraceBackend | None:
    if not plan.query_url:
        return None
    from osbench.edges.traces.sources.trace_backend import (  # noqa: PLC0415 - seldom
        TraceBackend,
    )

    traces = plan.conf.traces
    return TraceBackend(
        plan.query_url, str(traces.query_headers), everything=bool(traces.keep_arguments)
    )


def _explain(number: int, outcome: WorkloadOutcome, collected: Collected) -> WorkloadOutcome:
    """Return an outcome with explanation, cost of tracing and, after a search, grown spans."""
    tracing = replace(
        outcome.tracing,
        cost=collected.costs[number] if collected.costs else None,
        kept=collected.kept[number] if collected.kept else 0,
        explanation=collected.sentences[number] if collected.sentences else "",
    )
    compared = collected.comparisons.get(number)
    if outcome.search is None or compared is None:
        return replace(outcome, tracing=tracing)
    # few runs search for a capacity
    from osbench.edges.traces.analysis.sentences import words  # noqa: PLC0415 - see above

    grown = [(words(change.key), change.before_s, change.after_s) for change in compared.grown]
    search = replace(outcome.search, grown_spans=tuple(grown[:GROWN]), traces=compared.sentence)
    return replace(outcome, tracing=tracing, search=search)
