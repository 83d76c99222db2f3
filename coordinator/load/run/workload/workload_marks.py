"""Marks of a workload over time: warm-up, changes, hooks, contexts, events of the journal."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.common.ports import clock as time
from osbench.coordinator.formatting import duration
from osbench.coordinator.load.run.steering.steering import change_words
from osbench.coordinator.load.run.workload.workload_run import WorkloadRun
from osbench.coordinator.plugins.contexts.history import ContextRecord, ContextStep
from osbench.coordinator.plugins.hooks.executor import HookReport, Result
from osbench.coordinator.results.accounting.drill_statistics import FAULT
from osbench.coordinator.results.accounting.marks import CONTEXT, CONTROL, HOOK, PHASE, WARMUP, Mark


def marks_of(run: WorkloadRun) -> tuple[Mark, ...]:
    """Return all marks of a workload so far: events on the time axis of its charts, by time.

    They are lost and new workers, a stop, warm-up, changes, the fault of a drill, hooks and
    contexts. Empty before its load has begun.
    """
    if not run.begun:
        return ()
    # wall clock of this host at t0, which is sent in Redis' time
    t0_at = time.time() - run.elapsed()
    found = list(run.services.history.marks(run.number, run.view.started))
    found += _warmup(run)
    found += _changes(run)
    found += _fault(run)
    for report in run.hooks.report():
        found += _hook(report, t0_at)
    contexts = run.services.contexts
    for record in contexts.history.of(run.number):
        found += _context(record, t0_at)
    # marks of the same time in the order in which they came: two changes by `control` may share one
    return tuple(sorted(found, key=lambda mark: (mark.from_s, mark.to_s, mark.kind)))


def _warmup(run: WorkloadRun) -> Iterator[Mark]:
    workload, left_out = run.plan.workload, run.results.warmup_rows
    if workload.warmup_s:
        yield Mark(
            kind=WARMUP,
            from_s=0.0,
            to_s=float(workload.warmup_s),
            label="warm-up",
            text=f"Warm-up: {left_out} iterations count only in the sums.",
        )


def _changes(run: WorkloadRun) -> Iterator[Mark]:
    if run.runner.is_search:
        return  # the report has its trials
    for change in run.runner.changes:
        words = change_words(run, change)
        yield Mark(
            kind=CONTROL,
            from_s=change.at_s,
            to_s=change.at_s,
            label=words.partition(" from ")[0],
            text=f"The load was changed by `control`: {words}.",
        )


def _fault(run: WorkloadRun) -> Iterator[Mark]:
    """Yield a mark for the fault phase of a drill, if it has begun; its hooks have other marks."""
    statistics = run.results.statistics
    drill = statistics.drill
    if drill is None or drill.fault_s is None:
        return
    for phase in drill.phases:
        if phase.name == FAULT:
            yield Mark(
                kind=PHASE,
                from_s=phase.from_s,
                to_s=phase.to_s,
                label="",
                text="The fault of the drill.",
            )


def _hook(report: HookReport, t0_at: float) -> Iterator[Mark]:
    hook = report.hook
    action = hook.action.name
    label = hook.description or action
    for result in report.results:
        if result.started_at is not None:
            yield Mark(
                kind=HOOK,
                from_s=result.started_at - t0_at,
                to_s=(result.finished_at or result.started_at) - t0_at,
                label=label,
                text=_hook_sentence(label, action, result),
            )


def _hook_sentence(label: str, action: str, result: Result) -> str:
    name = f"“{label}” ({action})" if label != action else label
    text = f"Hook {name}: {result.status}"
    if result.started_at is not None and result.finished_at is not None:
        text += f" after {duration(result.finished_at - result.started_at)}"
    if result.error is not None:
        text += f"; {result.error.etype}: {result.error.msg}"
    return f"{text}."


def _context(record: ContextRecord, t0_at: float) -> Iterator[Mark]:
    for what, step in (("set up", record.setup), ("undone", record.cleanup)):
        if step is not None:
            yield Mark(
                kind=CONTEXT,
                from_s=step.started_at - t0_at,
                to_s=step.finished_at - t0_at,
                label=f"{record.name} {what}",
                text=_context_sentence(record.name, what, step),
            )


def _context_sentence(name: str, what: str, step: ContextStep) -> str:
    took = duration(step.finished_at - step.started_at)
    if step.error is not None:
        return f"Context {name}, not {what} after {took}: {step.error.etype}: {step.error.msg}."
    return f"Context {name} {what} in {took}."
