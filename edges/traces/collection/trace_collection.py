"""Traces at the end of a run: errors become notes, so that the run always gets its report."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from oslo_config import cfg

from osbench.common.deployment.record import Deployment
from osbench.common.plugin.sla import SpanSelection
from osbench.common.secrets.masking import error_text
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.collection.collected import Collected
from osbench.edges.traces.collection.collector import Collection, CollectionSettings
from osbench.edges.traces.collection.iteration_counters import counters_of
from osbench.edges.traces.collection.queried_traces import QuerySettings
from osbench.edges.traces.collection.retention import Retention
from osbench.edges.traces.collection.untraced_workloads import compared_parts, with_client_times
from osbench.edges.traces.receiving.otlp_receiver import OtlpReceiver
from osbench.edges.traces.sources.trace_backend import TraceBackend

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SpanSources:
    """The receiver of a run with OTLP, or the backend that is queried at its end.

    Both are None if the run does neither.
    """

    receiver: OtlpReceiver | None = None
    #: Queried at the end.
    backend: TraceBackend | None = None


def collect_traces(
    directory: RunDirectory,
    outcomes: Sequence[WorkloadOutcome],
    deployment: Deployment | None,
    conf: cfg.ConfigOpts,
    wanted: Callable[[], bool],
    sources: SpanSources,
    *,
    selections: Mapping[int, Sequence[SpanSelection]] | None = None,
) -> Collected:
    """Collect the traces of all workloads, stop the receiver, and return results and notes.

    If `wanted` returns False (there is no time left) nothing is collected, or collecting ends
    early. Without `[traces] collect` no trace is read. Workloads without traces get results from
    times that clients measured. `selections` are the spans that SLA criteria judge, by workload.
    Errors of the collection are logged and become notes.
    """
    receiver, backend = sources.receiver, sources.backend
    collected = Collected()
    if wanted():
        settings = replace(
            _settings(conf, sources), selections=selections or {}, counters=counters_of(outcomes)
        )
        conn_str = _store_of(outcomes, deployment) if conf.traces.collect else None
        collected = _traces(directory, outcomes, settings, conn_str, wanted, receiver)
        collected = with_client_times(
            directory, outcomes, collected, wanted, queried=backend is not None
        )
    notes = [f"traces: {note}" for note in receiver.stop().notes()] if receiver else []
    return replace(collected, notes=(*collected.notes, *notes))


def _store_of(outcomes: Sequence[WorkloadOutcome], deployment: Deployment | None) -> str | None:
    """Return the connection string of the readable trace store, if tracing was on in a workload.

    Else None.
    """
    if deployment is None or not any(one.tracing.state == "on" for one in outcomes):
        return None
    return deployment.readable_store


def _traces(
    directory: RunDirectory,
    outcomes: Sequence[WorkloadOutcome],
    settings: CollectionSettings,
    conn_str: str | None,
    wanted: Callable[[], bool],
    receiver: OtlpReceiver | None,
) -> Collected:
    if not any(one.tracing.traced for one in outcomes):
        return Collected()
    try:
        collection = Collection(
            directory,
            [one.name for one in outcomes],
            settings,
            warmup_ns={
                number: int(one.warmup.seconds * 1e9) for number, one in enumerate(outcomes)
            },
            compared=compared_parts(outcomes),
            wanted=wanted,
            stop_storing=receiver.stop_storing if receiver is not None else lambda: None,
        )
        return collection.collect(conn_str)
    except Exception as error:
        LOG.exception("traces could not be collected")
        return Collected(notes=(f"traces could not be collected: {error_text(error)}",))


def _settings(conf: cfg.ConfigOpts, sources: SpanSources) -> CollectionSettings:
    traces = conf.traces
    query = None
    if sources.backend is not None and traces.collect:
        query = QuerySettings(
            backend=sources.backend,
            most=traces.query_most,
            parallel=traces.query_parallel,
            limit_s=traces.query_limit_s,
            late_s=traces.query_late_s,
            limit_bytes=traces.otlp_limit_mib << 20,
        )
    return CollectionSettings(
        retention=Retention(
            slowest=traces.keep_slowest,
            failed=traces.keep_failed,
            share=traces.keep_share,
            limit=traces.keep_limit_mib << 20,
        ),
        late_s=traces.late_s,
        expiry_s=traces.expiry_s,
        most=traces.read_most,
        everything=traces.keep_arguments,
        files=tuple(map(Path, traces.files)) if traces.collect else (),
        received=sources.receiver is not None and traces.collect,
        query=query,
        otlp_late_s=traces.otlp_late_s,
    )
