"""Computes the report of a run from its outcome; other modules of reports only format it."""

from __future__ import annotations

from itertools import zip_longest
from uuid import UUID

from osbench.common.plugin.plugin_names import NATIVE
from osbench.common.secrets.masking import mask
from osbench.coordinator.formatting import timestamp
from osbench.coordinator.plugins.contexts.history import ContextRecord, ContextStep
from osbench.coordinator.plugins.hooks.executor import HookReport, Result
from osbench.coordinator.report.exit_code import meaning
from osbench.coordinator.report.findings.own_lateness import own_lateness
from osbench.coordinator.report.model import json_codec
from osbench.coordinator.report.model.measured_times import measured_times, time_figures
from osbench.coordinator.report.model.model import Report, WorkloadReport
from osbench.coordinator.report.model.plan_figures import PlanComparison
from osbench.coordinator.report.model.time_figures import BriefTimes, Latency
from osbench.coordinator.report.model.workload_parts import (
    Blocked,
    CheckCounts,
    ContextReport,
    ContextStepReport,
    ErrorReport,
    GrownAction,
    GrownSpan,
    HookResult,
    HookRun,
    LoadProfileBins,
    Loops,
    Outputs,
    RequestsReport,
    RunnerChoice,
    SearchReport,
    SlaVerdict,
    SlowIteration,
    StallTimes,
    Threads,
    ThroughputFigures,
    TriggeredBy,
    UserFigures,
)
from osbench.coordinator.report.run_outcome import RunOutcome
from osbench.coordinator.report.staircase.stage_steps import staircase_of_load
from osbench.coordinator.results.accounting.error_groups import ErrorGroup
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.search.trials import SearchOutcome
from osbench.coordinator.results.accounting.workload_requests import requests_summary
from osbench.coordinator.results.accounting.workload_statistics import STALLS, WorkloadStatistics
from osbench.coordinator.results.statistics.action_paths import NESTED
from osbench.coordinator.results.statistics.percentiles import times_of

#: Bins at most of the load profile.
PROFILE_BINS = 120

#: Criterion, by Rally's name, of a workload that could not begin: it has failed, whatever the
#: task asks for.
WENT_WRONG = "something_went_wrong"

#: Errors at most that are described; the run directory has all.
ERRORS = 100


def measured_report(run: RunOutcome) -> Report:
    """Return the report of a run, computed from the outcomes of its workloads."""
    dropped = sum(workload.accounting.dropped for workload in run.workloads)
    return Report(
        run_id=run.run_id,
        task=run.title,
        description=run.description,
        tags=run.tags,
        started_at=timestamp(run.started_at),
        finished_at=timestamp(run.finished_at),
        exit_code=run.exit_code,
        exit_meaning=meaning(run.exit_code, dropped),
        notes=run.notes,
        workloads=tuple(
            measured_workload(outcome, plan)
            for outcome, plan in zip_longest(run.workloads, run.plans)
        ),
    )


def measured_workload(outcome: WorkloadOutcome, plan: PlanComparison | None) -> WorkloadReport:
    """Return the report of one workload; configurations in it are masked.

    `plan`: comparison with the prediction of `plan`, None without one.
    """
    statistics = outcome.statistics
    over_time = statistics.over_time
    errors = statistics.errors.groups()
    actions = sorted(statistics.actions.items(), key=lambda one: one[0].split(NESTED))
    lives = statistics.lives.to_dict()
    requests = requests_summary(statistics.requests)
    return WorkloadReport(
        name=outcome.name,
        scenario=outcome.scenario,
        source=outcome.source,
        subtask=outcome.title,
        subtask_description=outcome.subtask_description,
        subtask_tags=outcome.subtask_tags,
        position=outcome.position,
        description=outcome.description,
        error=outcome.error or None,
        not_begun=outcome.not_begun or None,
        runner=RunnerChoice(type=outcome.runner.name, config=mask(outcome.runner.config)),
        targets=outcome.targets,
        accounting=outcome.accounting,
        warmup=outcome.warmup,
        latency=Latency(
            service=measured_times(statistics.service, over_time.service),
            response=measured_times(statistics.response, over_time.response),
        ),
        actions={
            path: measured_times(times, over_time.actions.get(path)) for path, times in actions
        },
        stages=outcome.stages,
        search=_search(outcome.search),
        drill=statistics.drill,
        staircase=staircase_of_load(outcome),
        counters=outcome.counters.figures() if outcome.counters else (),
        breakdowns=tuple(one.figures(outcome.workers) for one in statistics.breakdowns),
        requests=json_codec.from_json(RequestsReport, requests) if requests else None,
        start_lag=time_figures(statistics.start_lag, over_time.start_lag),
        loops=_loops(statistics),
        threads=_threads(statistics),
        stalls=StallTimes(**{f"{cause}_s": statistics.stalls[cause] / 1e9 for cause in STALLS}),
        users=json_codec.from_json(UserFigures, lives) if lives else None,
        checks={
            name: CheckCounts(held=held, failed=failed)
            for name, (held, failed) in statistics.checks.items()
        },
        offered=outcome.offered,
        own_lateness=own_lateness(outcome),
        bounds=outcome.bounds,
        throughput=_throughput(statistics),
        tracing=outcome.tracing,
        exemplars=_exemplars(statistics),
        errors=tuple(_error(group, statistics) for group in errors[:ERRORS]),
        other_errors=sum(group.count for group in errors[ERRORS:]) + statistics.errors.other,
        sla=_sla(outcome),
        hooks=tuple(_hook(hook) for hook in outcome.hooks),
        contexts=tuple(_context(record) for record in outcome.contexts),
        outputs=_outputs(outcome),
        load_profile=_load_profile(statistics),
        workers=outcome.workers,
        plan=plan,
    )


def _search(search: SearchOutcome | None) -> SearchReport | None:
    if search is None:
        return None
    return SearchReport(
        **vars(search.capacity),
        limit=search.limit or None,
        grown=tuple(
            GrownAction(action=name, before_s=before, after_s=after)
            for name, before, after in search.grown
        ),
        grown_spans=tuple(
            GrownSpan(span=name, before_s=before, after_s=after)
            for name, before, after in search.grown_spans
        ),
        traces=search.traces or None,
        trials=search.trials,
    )


def _error(group: ErrorGroup, statistics: WorkloadStatistics) -> ErrorReport:
    example = statistics.example(group.etype)
    traced = example is not None and example.trace
    return ErrorReport(
        type=group.etype,
        message=group.message,
        resource=group.resource or None,
        traceback=group.traceback,
        count=group.count,
        first_iteration=group.iteration,
        # of the type, not of the message: a message may have the iteration's own data in it
        example_iteration=example.iteration if example else None,
        trace_id=str(UUID(bytes=example.trace)) if example and traced else None,
    )


def _sla(outcome: WorkloadOutcome) -> tuple[SlaVerdict, ...]:
    sources = outcome.sla_sources or (NATIVE,) * len(outcome.verdicts)
    found = [
        SlaVerdict(
            criterion=one.criterion,
            success=one.success,
            detail=one.detail,
            source=source,
            limits=one.limits,
        )
        for one, source in zip(outcome.verdicts, sources, strict=True)
    ]
    if outcome.error:
        found.append(SlaVerdict(criterion=WENT_WRONG, success=False, detail=outcome.error))
    return tuple(found)


def _hook(report: HookReport) -> HookRun:
    hook = report.hook
    return HookRun(
        action={hook.action.name: mask(hook.action.config)},
        trigger={hook.trigger.name: mask(hook.trigger.config)},
        description=hook.description,
        results=tuple(_hook_result(result) for result in report.results),
        summary=report.counts,
    )


def _hook_result(result: Result) -> HookResult:
    return HookResult(
        status=result.status,
        started_at=None if result.started_at is None else timestamp(result.started_at),
        finished_at=None if result.finished_at is None else timestamp(result.finished_at),
        triggered_by=TriggeredBy(event_type=result.event.unit, value=result.event.value),
        error=result.error,
        output=result.output,
    )


def _context(record: ContextRecord) -> ContextReport:
    return ContextReport(
        name=record.name,
        source=record.source,
        config=record.config,
        setup=_context_step(record.setup),
        cleanup=_context_step(record.cleanup),
    )


def _context_step(step: ContextStep | None) -> ContextStepReport | None:
    if step is None:
        return None
    return ContextStepReport(
        started_at=timestamp(step.started_at),
        finished_at=timestamp(step.finished_at),
        error=step.error,
    )


def _outputs(outcome: WorkloadOutcome) -> Outputs:
    found = outcome.charts.to_dict()
    return Outputs(
        additive=tuple(found["additive"]),
        complete=tuple(found["complete"]),
        cut={**found["cut"], "too_large": outcome.too_large},
    )


def _loops(statistics: WorkloadStatistics) -> Loops | None:
    """Return lateness of event loops and the places that blocked them, the longest first.

    None if virtual users are threads, or the lateness was never measured.
    """
    if not statistics.loop_lag.count:
        return None
    blocked = sorted(statistics.blocked.items(), key=lambda one: (-one[1], one[0]))
    return Loops(
        lag=BriefTimes(**times_of(statistics.loop_lag)),
        blocked_s=statistics.blocked.total() / 1e9,
        blocked=tuple(Blocked(place=place, seconds=lasted / 1e9) for place, lasted in blocked),
    )


def _threads(statistics: WorkloadStatistics) -> Threads | None:
    """Return the wake-up lateness of threads; None if virtual users are coroutines."""
    if not statistics.thread_lag.count:
        return None
    return Threads(lag=BriefTimes(**times_of(statistics.thread_lag)))


def _throughput(statistics: WorkloadStatistics) -> ThroughputFigures:
    span_s = statistics.span_s
    return ThroughputFigures(
        span_s=span_s or 0.0,
        ok_per_s=statistics.ok_per_s,
        ran_per_s=statistics.ran / span_s if span_s else None,
    )


def _load_profile(statistics: WorkloadStatistics) -> LoadProfileBins:
    series = statistics.profile.series(PROFILE_BINS)
    return LoadProfileBins(
        bin_s=series.bin_s,
        starts=tuple(series.starts),
        ends=tuple(series.ends),
        failures=tuple(series.failures),
        running=tuple(series.running),
    )


def _exemplars(statistics: WorkloadStatistics) -> tuple[SlowIteration, ...]:
    slow = [
        (exemplar, state)
        for state, exemplars in statistics.exemplars.items()
        for exemplar in exemplars.slowest()
    ]
    slow.sort(key=lambda pair: (-pair[0].value, pair[0].iteration))
    return tuple(
        SlowIteration(
            iteration=exemplar.iteration,
            trace_id=str(UUID(bytes=exemplar.trace)),
            service_s=exemplar.value / 1e9,
            outcome=state,
        )
        for exemplar, state in slow
    )
