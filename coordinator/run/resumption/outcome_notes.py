"""What a report says and journal and blocks do not tell: noted while the run goes on.

Of a workload: workers and their CPU, marks, hooks, spans, duplicates, and how long users were
missing. Of the run: lost workers, refused messages, rollbacks of Redis. The notes are written with
every checkpoint, so that a coordinator that is killed leaves those of a second or some ago.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import msgpack

from osbench.common.plugin.hook import Event
from osbench.common.protocol.unpacking import unpack
from osbench.common.regular_files import read_regular
from osbench.coordinator.hooks.executor import (
    FAILED,
    KEPT,
    Error,
    HookReport,
    Result,
)
from osbench.coordinator.results.marks import HOOK, JOIN, LOSS, STOP, Mark
from osbench.coordinator.results.outcome import WorkloadOutcome
from osbench.coordinator.results.workload_results import WorkloadResults
from osbench.coordinator.results.workload_statistics import WorkloadStatistics
from osbench.coordinator.storage.run_directory import RunDirectory

#: File of the run directory.
NOTES = "notes"
#: Largest one that is read, bytes.
NOTES_BYTES = 64 << 20
#: What a report lacks if the notes cannot be read.
UNREAD = "marks, hooks and earlier workers of the run before it was resumed are not in this report"
#: Marks of what nobody can find out again; the others follow from the plan and the contexts.
_NOTED_MARKS = (LOSS, JOIN, HOOK)


@dataclass(frozen=True, kw_only=True)
class OutcomeNotes:
    """Of one workload."""

    workers: Sequence[Mapping[str, Any]] = ()
    cpu: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)
    marks: Sequence[Mark] = ()
    #: One by hook.
    hooks: Sequence[Sequence[Result]] = ()
    hook_counts: Sequence[Mapping[str, int]] = ()
    spans_written: int = 0
    spans_dropped: int = 0
    rate_planned: float | None = None
    cut_short: str | None = None
    #: Why the workload could not begin.
    error: str = ""
    #: User-seconds for which nobody had the users that were asked for.
    missing_s: float = 0.0
    #: Blocks that arrived more than once.
    duplicates: int = 0


@dataclass(frozen=True, kw_only=True)
class RunNotes:
    """Of a run."""

    #: By number.
    workloads: Mapping[int, OutcomeNotes] = field(default_factory=dict)
    #: Sentences on lost workers.
    losses: Sequence[str] = ()
    #: Messages that were refused, by reason.
    refusals: Mapping[str, int] = field(default_factory=dict)
    #: How often Redis had lost what was written to it.
    rollbacks: int = 0


def notes_of(
    outcomes: Mapping[int, WorkloadOutcome], results: Mapping[int, WorkloadResults]
) -> dict[int, OutcomeNotes]:
    """The notes of all workloads, by number."""
    return {number: _notes_of(outcome, results[number]) for number, outcome in outcomes.items()}


def note(directory: RunDirectory, notes: RunNotes) -> None:
    """Write the notes of a run. Raises OsbenchError."""
    directory.replace(NOTES, msgpack.packb(asdict(notes)), sync=False)


def noted(directory: RunDirectory) -> RunNotes:
    """The notes of a run; if they cannot be read, a sentence that says so."""
    path = directory.path / NOTES
    if not path.exists():
        return RunNotes()
    try:
        document = unpack(read_regular(path, NOTES_BYTES))
        return RunNotes(
            workloads={int(key): _unpacked(one) for key, one in document["workloads"].items()},
            losses=[str(loss) for loss in document["losses"]],
            refusals={str(why): int(count) for why, count in document["refusals"].items()},
            rollbacks=int(document["rollbacks"]),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return RunNotes(losses=[f"{path} cannot be read: {UNREAD}"])


def carried_on(
    outcome: WorkloadOutcome,
    notes: OutcomeNotes,
    firings: Sequence[Sequence[Event]],
    *,
    was_over: bool,
) -> WorkloadOutcome:
    """An outcome with what an earlier coordinator has noted of the workload, but for its CPU.

    `firings` are those of each hook that the journal knows; `was_over`: the earlier coordinator
    had ended the load, so that the reason to stop is its own.
    """
    here = {one["incarnation"] for one in outcome.workers}
    gone = [
        _as_it_left(one, outcome.statistics)
        for one in notes.workers
        if one["incarnation"] not in here
    ]
    accounting = replace(
        outcome.accounting,
        duplicates=outcome.accounting.duplicates + notes.duplicates,
        refused=outcome.accounting.refused + sum(one["refused"] for one in gone),
    )
    tracing, offered = outcome.tracing, outcome.offered
    if offered.concurrency:
        offered = _with_missing(offered, notes.missing_s)
    kept = (*_NOTED_MARKS, STOP) if was_over else _NOTED_MARKS
    marks = {*(mark for mark in notes.marks if mark.kind in kept), *outcome.marks}
    return replace(
        outcome,
        error=outcome.error or notes.error,
        accounting=accounting,
        workers=tuple(sorted((*gone, *outcome.workers), key=lambda one: str(one["incarnation"]))),
        marks=tuple(sorted(marks, key=lambda mark: mark.from_s)),
        hooks=tuple(
            _joined(report, notes, place, firings[place] if place < len(firings) else ())
            for place, report in enumerate(outcome.hooks)
        ),
        tracing=replace(
            tracing,
            spans_written=tracing.spans_written + notes.spans_written,
            spans_dropped=tracing.spans_dropped + notes.spans_dropped,
        ),
        offered=replace(
            offered,
            rate_planned=offered.rate_planned or notes.rate_planned,
            cut_short=offered.cut_short or (notes.cut_short if was_over else None),
        ),
    )


def _as_it_left(worker: Mapping[str, Any], statistics: WorkloadStatistics) -> dict[str, Any]:
    """A worker that is not here any more: it may have delivered more than was noted."""
    part = statistics.part_of(worker["incarnation"])
    return {**worker, "iterations": part.iterations if part else worker["iterations"]}


def _with_missing(offered: Any, missing_s: float) -> Any:
    """How a closed load was offered, with user-seconds that were missing in addition."""
    users = offered.concurrency
    waited_s = (offered.waited_s or 0.0) * users
    held = offered.concurrency_held
    busy_s = waited_s * held / (1 - held) if held is not None and held < 1 else None
    if missing_s <= 0 or held is None:
        return offered
    waited_s += missing_s
    if busy_s is None:
        return replace(offered, waited_s=waited_s / users)
    return replace(
        offered, waited_s=waited_s / users, concurrency_held=busy_s / (busy_s + waited_s)
    )


def _joined(
    report: HookReport, notes: OutcomeNotes, place: int, firings: Sequence[Event]
) -> HookReport:
    earlier = list(notes.hooks[place]) if place < len(notes.hooks) else []
    counts = Counter(report.counts)
    if place < len(notes.hook_counts):
        counts.update(notes.hook_counts[place])
    known = {(one.event.unit, one.event.value) for one in (*earlier, *report.results)}
    for event in firings:
        if (event.unit, event.value) not in known:
            error = Error(etype="CoordinatorGone", msg="the coordinator was killed meanwhile")
            earlier.append(Result(status=FAILED, event=event, error=error))
            counts[FAILED] += 1
    results = sorted((*earlier, *report.results), key=lambda one: one.event.value)
    return replace(report, results=tuple(results[:KEPT]), counts=dict(sorted(counts.items())))


def _notes_of(outcome: WorkloadOutcome, results: WorkloadResults) -> OutcomeNotes:
    offered, tracing = outcome.offered, outcome.tracing
    waited_s = (offered.waited_s or 0.0) * (offered.concurrency or 0)
    return OutcomeNotes(
        workers=outcome.workers,
        cpu=outcome.cpu.points(),
        marks=outcome.marks,
        # those that still run have no result yet, and are told as such if there is never one
        hooks=[[one for one in report.results if one.finished_at] for report in outcome.hooks],
        hook_counts=[
            # `asdict` would make another thing of a Counter
            dict(Counter(one.status for one in report.results if one.finished_at))
            for report in outcome.hooks
        ],
        spans_written=tracing.spans_written,
        spans_dropped=tracing.spans_dropped,
        rate_planned=offered.rate_planned,
        cut_short=offered.cut_short,
        error=outcome.error,
        missing_s=max(0.0, waited_s - results.want_ns / 1e9),
        duplicates=outcome.accounting.duplicates,
    )


def _unpacked(saved: Mapping[str, Any]) -> OutcomeNotes:
    parts = {
        "marks": [Mark(**one) for one in saved["marks"]],
        "hooks": [[_result(one) for one in hook] for hook in saved["hooks"]],
    }
    return OutcomeNotes(**{**saved, **parts})


def _result(saved: Mapping[str, Any]) -> Result:
    error = Error(**saved["error"]) if saved["error"] else None
    return Result(**{**saved, "event": Event(**saved["event"]), "error": error})
