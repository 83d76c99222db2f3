"""The outcome of a workload, taken from everything that took part in it."""

from __future__ import annotations

from typing import Any

from osbench.coordinator.fleet.worker import WorkerHandle
from osbench.coordinator.results.outcome import WorkloadOutcome
from osbench.coordinator.results.totals import Tracing, Warmup
from osbench.coordinator.run.workload import WorkloadRun


def outcome_of(run: WorkloadRun) -> WorkloadOutcome:
    """What a workload came to; to be called when the run has ended: late results count too."""
    plan, results, services = run.plan, run.results, run.services
    workload, subtask, statistics = plan.workload, plan.subtask, results.statistics
    served = run.workers.served
    refused = services.channel.refused + services.pool.refused + results.refused
    remarks = []
    if run.data_used_up:
        remarks.append(f"the load ended with the last row of {workload.args_from}")
    return WorkloadOutcome(
        name=plan.name,
        source=plan.scenario.source,
        title=subtask.title,
        subtask_description=subtask.description,
        subtask_tags=subtask.tags,
        position=workload.position,
        description=workload.description,
        runner=workload.runner,
        begun=run.begun,
        accounting=results.ledger.accounting(
            duplicates=results.duplicates,
            refused=refused + sum(worker.beat.refused for worker in served),
        ),
        warmup=Warmup(seconds=workload.warmup_s, left_out=results.warmup_rows),
        offered=run.offered(),
        tracing=_tracing(run),
        statistics=statistics,
        verdicts=results.sla.judge(statistics),
        sla_sources=plan.sla_sources,
        hooks=run.hooks.report(),
        contexts=services.contexts.history.of(plan.number),
        charts=results.charts,
        too_large=results.cut,
        workers=tuple(map(_worker, served)),
        remarks=tuple(remarks),
    )


def _tracing(run: WorkloadRun) -> Tracing:
    sampling, statistics = run.plan.sampling, run.results.statistics
    written, dropped = run.workers.spans()
    return Tracing(
        state=sampling.state,
        traced=statistics.traced,
        sample_rate=sampling.rate,
        rate_reason=sampling.reason,
        spans_written=written,
        spans_dropped=dropped,
    )


def _worker(worker: WorkerHandle) -> dict[str, Any]:
    beat = worker.beat
    return {
        "incarnation": beat.incarnation,
        "host": beat.host,
        "pid": beat.pid,
        "label": beat.label,
        "version": beat.version,
        "lost": not worker.present,
        "offset_s": beat.offset_s,
        "uncertainty_s": beat.uncertainty_s,
        "stuck": beat.stuck,
        "refused": beat.refused,
    }
