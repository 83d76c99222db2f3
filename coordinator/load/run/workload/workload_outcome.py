"""The outcome of a workload: its results, verdicts, workers and end, for the report."""

from __future__ import annotations

from osbench.common.plugin.plugin_names import NATIVE
from osbench.common.plugin.sla import Verdict
from osbench.coordinator.load.fleet.worker import WorkerHandle, WorkerState
from osbench.coordinator.load.run.workload.targets import targets_of
from osbench.coordinator.load.run.workload.workload_marks import marks_of
from osbench.coordinator.load.run.workload.workload_run import WorkloadRun
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.totals import Tracing, Warmup
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures

_RUNNER_LOST = (
    "the worker that ran the runner's own code was lost or left; it is not begun again on another"
)


def verdicts_of(run: WorkloadRun) -> tuple[tuple[Verdict, ...], tuple[str, ...]]:
    """Return the verdicts on a workload as it is now, and the sources of the task's criteria.

    The criteria of the task come first, and osbench's own rules behind them have no source. A
    search has one verdict instead of criteria, and no source. Empty before an iteration has ended,
    unless the ledger is closed, and for a workload that the run did not reach.
    """
    plan, results, workload = run.plan, run.results, run.plan.workload
    running = run.search_due or not results.ledger.closed
    users = sum(worker.capacity for worker in run.workers.served)
    verdicts = () if run.not_begun else results.judge(running=running, users=users)
    if results.trials is not None or not verdicts:
        return verdicts, ()
    # verdicts on spans come once the traces are read
    later = results.sla.on_spans | (results.sla.at_end if running else frozenset())
    criteria = zip(workload.sla, plan.sla_sources, strict=True)
    return verdicts, tuple(source for one, source in criteria if one.name not in later)


def outcome_of(run: WorkloadRun) -> WorkloadOutcome:
    """Return the outcome of a workload as it is now; final when the run has ended.

    Late results may change it until then. Judges its SLA criteria except criteria on spans and,
    while the load goes on, criteria that are judged at its end.
    """
    plan, results, services = run.plan, run.results, run.services
    workload, subtask, statistics = plan.workload, plan.subtask, results.statistics
    served, ledger = run.workers.served, results.ledger
    refused = services.channel.refused + services.pool.refused
    refused += services.accounts.refused + results.refused
    offered = run.view.offered()
    verdicts, sources = verdicts_of(run)
    if offered.cut_short == "runner_lost":
        verdicts += (Verdict(criterion="runner", success=False, detail=_RUNNER_LOST),)
    elapsed_s = offered.duration_s if ledger.closed else max(0.0, run.elapsed())
    # results that come after the load belong to no stage
    until_s = (statistics.starts_until_s if ledger.closed else None) or elapsed_s
    return WorkloadOutcome(
        name=plan.workload.name,
        scenario=workload.scenario,
        source=plan.scenario.source,
        title=subtask.title,
        subtask_description=subtask.description,
        subtask_tags=subtask.tags,
        position=workload.position,
        description=workload.description,
        runner=workload.runner,
        targets=targets_of({"args": workload.args, "http": workload.http}),
        begun=run.begun,
        error=run.error,
        not_begun=run.not_begun,
        accounting=ledger.accounting(
            duplicates=results.duplicates,
            refused=refused + sum(worker.beat.refused for worker in served),
        ),
        warmup=Warmup(seconds=workload.warmup_s, left_out=results.warmup_rows),
        offered=offered,
        tracing=_tracing(run),
        statistics=statistics,
        verdicts=verdicts,
        # a rule to abort is the last verdict, and osbench's own
        sla_sources=(*sources, *[NATIVE] * (len(verdicts) - len(sources))),
        hooks=run.hooks.report(),
        contexts=services.contexts.history.of(plan.number),
        charts=results.charts,
        too_large=results.cut,
        workers=tuple(_worker(worker, run) for worker in served),
        cpu=run.cpu,
        asked=tuple(run.allocation.asked),
        coroutines=plan.coroutines,
        marks=marks_of(run),
        t0_at=results.t0_at,
        elapsed_s=elapsed_s,
        stages=tuple(results.stages.figures(until_s)),
        search=results.trials.outcome() if results.trials is not None else None,
        cut_short_by=_cut_short_by(run, offered.cut_short),
        timeout_s=run.specification.timeout_s,
        idle_workers=max(0, len(served) - 1) if plan.is_scripted and run.begun else 0,
        data_used_up=workload.args_from if run.view.data_used_up else "",
    )


def _cut_short_by(run: WorkloadRun, cause: str | None) -> str:
    """Return the reason in words of a `cause` that the workload has itself; "" for other causes."""
    results = run.results
    lives = results.statistics.lives
    reasons = {
        "abort": results.abort.reason if results.abort else "",
        "no_users": lives.first_error,
        "runner_failed": results.script_end or "",
        "runner_lost": _RUNNER_LOST,
    }
    return reasons.get(cause or "", "")


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


def _worker(worker: WorkerHandle, run: WorkloadRun) -> WorkerFigures:
    beat = worker.beat
    statistics = run.results.statistics
    part = statistics.part_of(worker.name)
    return WorkerFigures(
        incarnation=worker.name,
        host=beat.host,
        pid=beat.pid,
        label=beat.label,
        version=beat.version,
        python=beat.python,
        unoptimised=beat.unoptimised,
        lost=worker.state is WorkerState.LOST,
        offset_s=beat.offset_s,
        uncertainty_s=beat.uncertainty_s,
        stuck=beat.stuck,
        refused=beat.refused,
        iterations=part.iterations if part else 0,
        cpu_mean=run.cpu.mean(worker.name),
        cpu_max=run.cpu.greatest(worker.name),
        virtual_users=worker.capacity,
        waiting=run.core_use.waiting(worker.name),
        cores=beat.cores,
        cores_used=run.core_use.cores_used(worker.name),
        quota=beat.quota or None,
        throttled=run.core_use.throttled(worker.name) if beat.quota else None,
    )
