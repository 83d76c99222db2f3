"""Judges a run that was counted again: criteria, load generator and exit code, by osbench's rules.

The result is compared with `summary.json`, part by part.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from osbench.common.plugin.scripted_runner import ScriptedRunner
from osbench.common.plugin.sla import Verdict
from osbench.coordinator.formatting import plain
from osbench.coordinator.report.exit_code import AROUND, exit_code
from osbench.coordinator.report.findings.load_bounds import GENERATOR, load_bounds
from osbench.coordinator.report.model import json_codec
from osbench.coordinator.report.model.measure import measured_workload
from osbench.coordinator.report.model.model import Report, WorkloadReport
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.totals import Accounting, Bound, Warmup
from osbench.edges.certificate.recount import CountedWorkload, Recount
from osbench.edges.certificate.refusal import CertificateRefused

#: Parts of a workload's report that follow from journal and blocks alone.
RECOUNTED = (
    *("accounting", "warmup", "latency", "actions", "stages", "search", "drill", "requests"),
    *("start_lag", "loops", "threads", "stalls", "users", "checks", "offered", "own_lateness"),
    *("bounds", "throughput", "errors", "other_errors", "sla", "load_profile"),
)
#: Counts of messages, which neither file has; and parts of a search that traces add.
_MESSAGES, _TRACED = ("duplicates", "refused"), ("grown_spans", "traces")
#: Sums of floats depend on the order of their terms.
_NEAR = 1e-9
#: Criterion of osbench itself: the end of a runner's own code.
_RUNNER = "runner"
#: Differences that a message names.
_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class JudgedWorkload:
    """A workload of a run as it was counted and judged again."""

    #: Recounted parts; other parts are as reported.
    report: WorkloadReport
    #: Criteria that could not be judged again: they are on spans, or on the runner's own code.
    reported_criteria: frozenset[str]


def judged_again(counted: Recount, report: Report) -> tuple[JudgedWorkload, ...]:
    """Judge a recount, and compare it with the report of the run.

    Raises CertificateRefused that names each part in which the report differs from journal and
    blocks.
    """
    if len(counted.workloads) != len(report.workloads):
        raise CertificateRefused(
            f"run {report.run_id}: summary.json has {len(report.workloads)} workloads, run.json "
            f"{len(counted.workloads)}"
        )
    pairs = list(zip(counted.workloads, report.workloads, strict=True))
    verdicts = [_verdicts(one, reported) for one, reported in pairs]
    outcomes = [
        _outcome(one, reported, found, counted.lag_limit_s, interrupted=report.exit_code == 130)
        for (one, reported), found in zip(pairs, verdicts, strict=True)
    ]
    judged: list[JudgedWorkload] = []
    differences = [
        f"workload {number} {fault}"
        for number, pair in enumerate(pairs)
        for fault in _other_load(*pair, counted.changes)
    ]
    for number, (outcome, reported) in enumerate(zip(outcomes, report.workloads, strict=True)):
        found, left = _merged_report(measured_workload(outcome, None), reported)
        judged.append(JudgedWorkload(report=found, reported_criteria=left))
        differences += _differences(number, found, reported)
        unknown = left - pairs[number][0].results.sla.on_spans - {_RUNNER}
        differences += [
            f"workload {number} has a criterion {plain(name, 60)}, which the task has not"
            for name in sorted(unknown)
        ]
    expected = _exit_code(outcomes, report)
    if expected != report.exit_code:
        differences.append(f"exit_code is {report.exit_code}, and should be {expected}")
    if differences:
        more = len(differences) - _NAMED
        text = "; ".join(differences[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
        raise CertificateRefused(
            f"run {report.run_id}: summary.json does not follow from journal and blocks: {text}"
        )
    return tuple(judged)


def _other_load(one: CountedWorkload, reported: WorkloadReport, changes: int) -> Iterator[str]:
    """Yield a phrase for each part of the task in run.json that the load contradicts."""
    task, runner = one.workload, one.runner
    if reported.scenario != task.scenario:
        yield (
            f"is of the scenario {plain(reported.scenario, 60)}, and run.json of"
            f" {plain(task.scenario, 60)}"
        )
    is_whole = not (one.offered.cut_short or changes or task.args_from or reported.unbegun)
    if runner.OPEN or isinstance(runner, ScriptedRunner) or not is_whole:
        # the number depends on more than the task
        return
    planned, found = runner.planned, one.results.ledger.accounting().planned
    if planned is not None and planned != found:
        yield f"had {found:,} iterations, and run.json plans {planned:,}"


def _verdicts(one: CountedWorkload, reported: WorkloadReport) -> tuple[Verdict, ...]:
    """Return the verdicts of all criteria that can be judged without traces."""
    if reported.unbegun:
        return ()
    users = sum(worker.virtual_users for worker in reported.workers)
    return one.results.judge(running=False, users=users)


def _outcome(
    one: CountedWorkload,
    reported: WorkloadReport,
    verdicts: tuple[Verdict, ...],
    lag_limit_s: float,
    *,
    interrupted: bool,
) -> WorkloadOutcome:
    """Return the outcome of a recounted workload; its workers as reported."""
    results, statistics = one.results, one.results.statistics
    outcome = WorkloadOutcome(
        name=reported.name,
        scenario=one.workload.scenario,
        title=reported.subtask,
        position=reported.position,
        runner=one.workload.runner,
        # only event loops beat
        coroutines=bool(statistics.loop_lag.count),
        error=reported.error or "",
        not_begun=reported.not_begun or "",
        accounting=results.ledger.accounting(),
        warmup=Warmup(seconds=results.warmup_ns / 1e9, left_out=results.warmup_rows),
        offered=one.offered,
        tracing=reported.tracing,
        statistics=statistics,
        verdicts=verdicts,
        charts=results.charts,
        too_large=results.cut,
        workers=reported.workers,
        stages=tuple(results.stages.figures(statistics.starts_until_s or one.offered.duration_s)),
        search=results.trials.outcome() if results.trials is not None else None,
        t0_at=results.t0_at,
    )
    return replace(outcome, bounds=_bounds(outcome, lag_limit_s, interrupted=interrupted))


def _bounds(
    outcome: WorkloadOutcome, lag_limit_s: float, *, interrupted: bool
) -> tuple[Bound, ...]:
    if outcome.search is None:
        return load_bounds(outcome, lag_limit_s, interrupted=interrupted)
    limit = outcome.search.limit
    return (Bound(cause="search", fault=GENERATOR, sentence=limit),) if limit else ()


def _merged_report(
    found: WorkloadReport, reported: WorkloadReport
) -> tuple[WorkloadReport, frozenset[str]]:
    """Return the report with recounted parts, and the names of criteria that are only reported."""
    judged = {one.criterion for one in found.sla}
    left = [one for one in reported.sla if one.criterion not in judged]
    sources = {one.criterion: one.source for one in reported.sla}
    verdicts = [replace(one, source=sources.get(one.criterion, one.source)) for one in found.sla]
    accounting = replace(
        found.accounting, **{name: getattr(reported.accounting, name) for name in _MESSAGES}
    )
    search = found.search
    if search is not None and reported.search is not None:
        search = replace(search, **{name: getattr(reported.search, name) for name in _TRACED})
    parts = {name: getattr(found, name) for name in RECOUNTED}
    parts |= {"accounting": accounting, "search": search, "sla": (*verdicts, *left)}
    return replace(reported, **parts), frozenset(one.criterion for one in left)


def _differences(number: int, found: WorkloadReport, reported: WorkloadReport) -> Iterator[str]:
    mine, theirs = (_parts(one) for one in (found, reported))
    for path, ours, other in unequal_parts(theirs, mine):
        place = f"workload {number} ({plain(reported.name, 60)}){path}"
        yield f"{place} is {short_value(ours)}, and should be {short_value(other)}"


def _parts(report: WorkloadReport) -> dict[str, Any]:
    parts: dict[str, Any] = json.loads(
        json.dumps({name: json_codec.to_json(getattr(report, name)) for name in RECOUNTED})
    )
    # traces may move verdicts on spans between others
    parts["sla"] = sorted(parts["sla"], key=lambda one: str(one["criterion"]))
    return parts


def unequal_parts(first: Any, second: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, value, value) of each part in which two JSON values differ.

    Floats that differ by less than a billionth are equal.
    """
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted(first.keys() | second.keys()):
            yield from unequal_parts(first.get(key), second.get(key), f"{path}.{plain(key, 60)}")
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for place, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from unequal_parts(one, other, f"{path}[{place}]")
    elif not _equal(first, second):
        yield path, first, second


def _equal(first: Any, second: Any) -> bool:
    numbers = isinstance(first, float) and isinstance(second, float)
    return first == second or (numbers and math.isclose(first, second, rel_tol=_NEAR))


def short_value(value: Any) -> str:
    """Return a JSON value as text of at most 80 characters, for messages."""
    return plain(json.dumps(value), 80)


def _exit_code(outcomes: Sequence[WorkloadOutcome], report: Report) -> int:
    """Return the exit code that follows from the recount; faults around the load as reported."""
    left: list[Verdict] = []
    for outcome, reported in zip(outcomes, report.workloads, strict=True):
        judged = {one.criterion for one in outcome.verdicts}
        left += [
            Verdict(criterion=one.criterion, success=one.success, detail=one.detail)
            for one in reported.sla
            if one.criterion not in judged
        ]
    return exit_code(
        broken=False,
        interrupted=any(one.offered.cut_short == "interrupted" for one in outcomes),
        aborted=any(one.offered.cut_short == "sla" for one in outcomes),
        accountings=[_asked_for(one) for one in outcomes],
        limited=any(bound.fault == GENERATOR for one in outcomes for bound in one.bounds),
        verdicts=[*(verdict for one in outcomes for verdict in one.verdicts), *left],
        refused=any(one.error for one in outcomes),
        around=report.exit_code == AROUND,
    )


def _asked_for(outcome: WorkloadOutcome) -> Accounting:
    aborted = outcome.offered.cut_short == "abort"
    return replace(outcome.accounting, not_started=0) if aborted else outcome.accounting
