"""A run as one JSON object: the only place where reports compute; docs/results.schema.json."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any
from uuid import UUID

from osbench.common.errors import OsbenchError, TaskError
from osbench.common.histogram import Histogram, rank
from osbench.common.outcomes import STATES
from osbench.common.plugin.plugin_names import NATIVE
from osbench.common.plugin.sla import Verdict
from osbench.common.secrets.masking import mask
from osbench.coordinator.contexts.history import ContextRecord, ContextStep
from osbench.coordinator.formatting import instant
from osbench.coordinator.hooks.executor import HookReport, Result
from osbench.coordinator.report.exit_code import meaning
from osbench.coordinator.report.findings.own_lateness import own_lateness
from osbench.coordinator.report.run_report import RunReport
from osbench.coordinator.report.staircase.stage_steps import staircase_json
from osbench.coordinator.results.error_groups import ErrorGroup
from osbench.coordinator.results.outcome import WorkloadOutcome
from osbench.coordinator.results.requests.requests_summary import requests_summary
from osbench.coordinator.results.search.trials import SearchOutcome
from osbench.coordinator.results.totals import Accounting
from osbench.coordinator.results.workload_statistics import (
    STALLS,
    TIMED,
    Timings,
    WorkloadStatistics,
)
from osbench.coordinator.statistics.action_paths import NESTED
from osbench.coordinator.statistics.block_intervals import BlockIntervals, block_intervals
from osbench.coordinator.statistics.histogram_times import times_of
from osbench.coordinator.statistics.latency_matrix import LatencyMatrix
from osbench.coordinator.statistics.percentiles import REPORTED
from osbench.coordinator.storage.summary_file import FORMAT

#: Bins at most of the load profile.
PROFILE_BINS = 120

#: Criterion, by Rally's name, of a workload that could not begin: it has failed, whatever the
#: task asks for.
WENT_WRONG = "something_went_wrong"

#: Errors at most that are described; the run directory has all.
ERRORS = 100


def to_json(report: RunReport) -> dict[str, Any]:
    """The JSON object of a run, as `--json` prints and the run directory keeps it."""
    return {
        "format": FORMAT,
        "run_id": report.run_id,
        "task": report.title,
        "description": report.description,
        "tags": list(report.tags),
        "started_at": instant(report.started_at),
        "finished_at": instant(report.finished_at),
        "exit_code": report.exit_code,
        "exit_meaning": meaning(report.exit_code, _dropped(report)),
        "notes": list(report.notes),
        "workloads": [
            {**_workload(workload), "plan": dataclasses.asdict(plan) if plan else None}
            for workload, plan in zip_longest(report.workloads, report.plans)
        ],
    }


def _dropped(report: RunReport) -> int:
    return sum(workload.accounting.dropped for workload in report.workloads)


def to_error_json(error: OsbenchError) -> dict[str, Any]:
    """The JSON object of a command that could not do its work."""
    problems = error.problems if isinstance(error, TaskError) else []
    # the message of a task error goes on with its problems, a line each
    message = str(error).partition("\n")[0] if problems else str(error)
    return {
        "error": {
            "message": message,
            "problems": [
                {"place": problem.place, "message": problem.message} for problem in problems
            ],
        },
        "exit_code": error.exit_code,
    }


def percentile_key(percent: float) -> str:
    """The name of a percentile in the object: p50, p999."""
    return f"p{percent:g}".replace(".", "")


_NAMES = tuple(percentile_key(percent) for percent in REPORTED)
#: Of durations that are not kept over time.
_NO_BLOCKS: Mapping[str, Any] = {"ci_note": None, "blocks": 0, "block_s": 0.0}


def _workload(outcome: WorkloadOutcome) -> dict[str, Any]:
    statistics = outcome.statistics
    over_time = statistics.over_time
    errors = statistics.errors.groups()
    beyond = sum(group.count for group in errors[ERRORS:]) + statistics.errors.other
    paths = sorted(statistics.actions, key=lambda path: path.split(NESTED))
    return {
        "name": outcome.name,
        "scenario": outcome.scenario,
        "source": outcome.source,
        "subtask": outcome.title,
        "subtask_description": outcome.subtask_description,
        "subtask_tags": list(outcome.subtask_tags),
        "position": outcome.position,
        "description": outcome.description,
        "error": outcome.error or None,
        "not_begun": outcome.not_begun or None,
        "runner": {"type": outcome.runner.name, "config": mask(outcome.runner.config)},
        "accounting": _accounting(outcome.accounting),
        "warmup": dataclasses.asdict(outcome.warmup),
        "latency": {
            "service": _timings(statistics.service, over_time.service),
            "response": _timings(statistics.response, over_time.response),
        },
        "actions": {
            path: _timings(statistics.actions[path], over_time.actions.get(path)) for path in paths
        },
        "stages": [dataclasses.asdict(stage) for stage in outcome.stages],
        "search": _search(outcome.search),
        "staircase": staircase_json(outcome),
        "requests": requests_summary(statistics.requests),
        "start_lag": _times(statistics.start_lag, over_time.start_lag),
        "loops": _loops(statistics),
        "threads": _threads(statistics),
        "stalls": {f"{cause}_s": statistics.stalls[cause] / 1e9 for cause in STALLS},
        "users": statistics.lives.to_dict(),
        "checks": {
            name: {"held": held, "failed": failed}
            for name, (held, failed) in statistics.checks.items()
        },
        "offered": dataclasses.asdict(outcome.offered),
        "own_lateness": own_lateness(outcome),
        "bounds": [dataclasses.asdict(bound) for bound in outcome.bounds],
        "throughput": _throughput(statistics),
        "tracing": dataclasses.asdict(outcome.tracing),
        "exemplars": _exemplars(statistics),
        "errors": [_error(group, statistics) for group in errors[:ERRORS]],
        "other_errors": beyond,
        "sla": _sla(outcome),
        "hooks": [_hook(hook) for hook in outcome.hooks],
        "contexts": [_context(record) for record in outcome.contexts],
        "outputs": _outputs(outcome),
        "load_profile": _load_profile(statistics),
        "workers": [dict(worker) for worker in outcome.workers],
    }


def _search(search: SearchOutcome | None) -> dict[str, Any] | None:
    """What a search has found; None for other loads."""
    if search is None:
        return None
    return {
        **dataclasses.asdict(search.capacity),
        "limit": search.limit or None,
        "grown": [
            {"action": name, "before_s": before, "after_s": after}
            for name, before, after in search.grown
        ],
        "grown_spans": [
            {"span": name, "before_s": before, "after_s": after}
            for name, before, after in search.grown_spans
        ],
        "traces": search.traces or None,
        "trials": [dataclasses.asdict(trial) for trial in search.trials],
    }


def _error(group: ErrorGroup, statistics: WorkloadStatistics) -> dict[str, Any]:
    example = statistics.example(group.etype)
    traced = example is not None and example.trace
    return {
        "type": group.etype,
        "message": group.message,
        "resource": group.resource or None,
        "traceback": group.traceback,
        "count": group.count,
        "first_iteration": group.iteration,
        # of the type, not of the message: a message may have the iteration's own data in it
        "example_iteration": example.iteration if example else None,
        "trace_id": str(UUID(bytes=example.trace)) if example and traced else None,
    }


def _sla(outcome: WorkloadOutcome) -> list[dict[str, Any]]:
    sources = outcome.sla_sources or (NATIVE,) * len(outcome.verdicts)
    found = [
        {**dataclasses.asdict(verdict), "source": source}
        for verdict, source in zip(outcome.verdicts, sources, strict=True)
    ]
    if outcome.error:
        wrong = Verdict(criterion=WENT_WRONG, success=False, detail=outcome.error)
        found.append({**dataclasses.asdict(wrong), "source": NATIVE})
    return found


def _hook(report: HookReport) -> dict[str, Any]:
    hook = report.hook
    return {
        "action": {hook.action.name: mask(hook.action.config)},
        "trigger": {hook.trigger.name: mask(hook.trigger.config)},
        "description": hook.description,
        "results": [_hook_result(result) for result in report.results],
        "summary": report.counts,
    }


def _hook_result(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = {
        "status": result.status,
        "started_at": None if result.started_at is None else instant(result.started_at),
        "finished_at": None if result.finished_at is None else instant(result.finished_at),
        "triggered_by": {"event_type": result.event.unit, "value": result.event.value},
    }
    if result.error is not None:
        found["error"] = dataclasses.asdict(result.error)
    if result.output is not None:
        found["output"] = result.output
    return found


def _context(record: ContextRecord) -> dict[str, Any]:
    return {
        "name": record.name,
        "source": record.source,
        "config": record.config,
        "setup": _context_step(record.setup),
        "cleanup": _context_step(record.cleanup),
    }


def _context_step(step: ContextStep | None) -> dict[str, Any] | None:
    if step is None:
        return None
    return {
        "started_at": instant(step.started_at),
        "finished_at": instant(step.finished_at),
        "error": None if step.error is None else dataclasses.asdict(step.error),
    }


def _outputs(outcome: WorkloadOutcome) -> dict[str, Any]:
    found = outcome.charts.to_dict()
    found["cut"]["too_large"] = outcome.too_large
    return found


def _accounting(accounting: Accounting) -> dict[str, Any]:
    states = {state: accounting.state(state) for state in STATES}
    in_addition = ("reruns", "late", "stale", "duplicates", "refused")
    return {
        "planned": accounting.planned,
        **states,
        "drops": dict(accounting.drops),
        **{name: getattr(accounting, name) for name in in_addition},
    }


def _timings(timings: Timings, ok: LatencyMatrix | None) -> dict[str, Any]:
    """`ok` is the state ok over time; there is no interval for what is not kept over time."""
    return {state: _times(timings.state(state), ok if state == "ok" else None) for state in TIMED}


def _times(histogram: Histogram, over_time: LatencyMatrix | None) -> dict[str, Any]:
    if not histogram.count:
        empty = dict.fromkeys(("min", "mean", "max", *_NAMES))
        return {"count": 0, **empty, "ci": dict.fromkeys(_NAMES), **_NO_BLOCKS}
    found = block_intervals(over_time) if over_time is not None else None
    bounds = [one.interval_ranks for one in found.estimates] if found else [None] * len(_NAMES)
    ranks = [rank(histogram.count, percent) for percent in REPORTED]
    # one pass over the counts for all of them
    wanted = [place for pair in bounds if pair for place in _whole(pair)]
    values = iter(histogram.at_ranks(ranks + wanted))
    at = [next(values) / 1e9 for _ in ranks]
    intervals = [_interval([next(values) / 1e9 for _ in _whole(pair)]) for pair in bounds]
    return {
        "count": histogram.count,
        "min": histogram.min / 1e9,
        "mean": histogram.mean / 1e9,
        "max": histogram.max / 1e9,
        **dict(zip(_NAMES, at, strict=True)),
        "ci": dict(zip(_NAMES, intervals, strict=True)),
        **(_blocks(found) if found else _NO_BLOCKS),
    }


def _whole(ranks: tuple[float, float] | None) -> list[int]:
    """Ranks of samples that bound an interval; none above if it has no upper bound."""
    if ranks is None:
        return []
    low, high = ranks
    return [int(low)] if math.isinf(high) else [int(low), math.ceil(high)]


def _interval(bounds: list[float]) -> list[float | None] | None:
    return [bounds[0], bounds[1] if len(bounds) > 1 else None] if bounds else None


def _blocks(found: BlockIntervals) -> dict[str, Any]:
    return {
        "ci_note": found.doubt.note if found.doubt else None,
        "blocks": found.blocks,
        "block_s": found.block_s,
    }


def _loops(statistics: WorkloadStatistics) -> dict[str, Any] | None:
    """How late event loops were, and what blocked them; None where users were threads."""
    if not statistics.loop_lag.count:
        return None
    blocked = sorted(statistics.blocked.items(), key=lambda one: (-one[1], one[0]))
    return {
        "lag": times_of(statistics.loop_lag),
        "blocked_s": statistics.blocked.total() / 1e9,
        "blocked": [{"place": place, "seconds": lasted / 1e9} for place, lasted in blocked],
    }


def _threads(statistics: WorkloadStatistics) -> dict[str, Any] | None:
    """How late threads woke; None if virtual users are coroutines."""
    if not statistics.thread_lag.count:
        return None
    return {"lag": times_of(statistics.thread_lag)}


def _throughput(statistics: WorkloadStatistics) -> Mapping[str, float | None]:
    span_s = statistics.span_s
    return {
        "span_s": span_s or 0.0,
        "ok_per_s": statistics.ok_per_s,
        "ran_per_s": statistics.ran / span_s if span_s else None,
    }


def _load_profile(statistics: WorkloadStatistics) -> dict[str, Any]:
    series = statistics.profile.series(PROFILE_BINS)
    return {
        "bin_s": series.bin_s,
        "starts": list(series.starts),
        "ends": list(series.ends),
        "failures": list(series.failures),
        "running": list(series.running),
    }


def _exemplars(statistics: WorkloadStatistics) -> list[dict[str, Any]]:
    slow = [
        (exemplar, state)
        for state, exemplars in statistics.exemplars.items()
        for exemplar in exemplars.slowest()
    ]
    slow.sort(key=lambda pair: (-pair[0].value, pair[0].iteration))
    return [
        {
            "iteration": exemplar.iteration,
            "trace_id": str(UUID(bytes=exemplar.trace)),
            "service_s": exemplar.value / 1e9,
            "outcome": state,
        }
        for exemplar, state in slow
    ]
