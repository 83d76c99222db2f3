"""The iterations of a run as columns for the page's script: all, or those that traces tell of."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from osbench.common.outcomes import Outcome
from osbench.coordinator.report.html.workload_facts import WorkloadFacts
from osbench.coordinator.report.iterations import counted, iterations
from osbench.coordinator.report.run_facts import RunFacts
from osbench.coordinator.results.rows import select

Ints = NDArray[np.int64]

#: Iterations up to which all are in the page.
ROWS = 20_000
_OUTCOMES = {"ok": 0, "failed": 1, "timed_out": 2, "lost": 3}
_NOT_TRACED = bytes(16)
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """One iteration. `due_s` is negative where it is not known."""

    workload: int
    iteration: int
    outcome: str
    due_s: float
    latency_s: float
    trace_id: str


@dataclass(frozen=True, kw_only=True)
class IterationTable:
    """Some iterations, or all."""

    complete: bool
    #: How many are in it, and how many ran.
    rows: int
    of: int
    columns: dict[str, Any]


def is_complete(workloads: Sequence[WorkloadFacts]) -> bool:
    """All iterations are in the page."""
    return sum(one.ran for one in workloads) <= ROWS


def table_of(
    workloads: Sequence[WorkloadFacts],
    rows: Iterable[TableRow],
    shown: Mapping[str, str],
    *,
    complete: bool,
) -> IterationTable:
    """The table; `shown` has the anchors of waterfalls by trace id."""
    unique = {(row.workload, row.iteration): row for row in rows if row.outcome in _OUTCOMES}
    ordered = [unique[key] for key in sorted(unique)]
    traces = b"".join(UUID(row.trace_id).bytes if row.trace_id else _NOT_TRACED for row in ordered)
    return IterationTable(
        complete=complete,
        rows=len(ordered),
        of=sum(one.ran for one in workloads),
        columns={
            "complete": complete,
            "workload": [row.workload for row in ordered],
            "iteration": [row.iteration for row in ordered],
            "outcome": [_OUTCOMES[row.outcome] for row in ordered],
            # milliseconds, and tenths of them
            "due": [round(row.due_s * 1e3) if row.due_s >= 0 else -1 for row in ordered],
            "latency": [round(row.latency_s * 1e4) for row in ordered],
            "traces": base64.b64encode(traces).decode(),
            "shown": {UUID(trace).hex: anchor for trace, anchor in sorted(shown.items())},
        },
    )


def traced_numbers(
    workloads: Sequence[WorkloadFacts], kept: Mapping[int, Iterable[int]]
) -> dict[int, Ints]:
    """Iterations whose traces tell something, by workload, at most `ROWS` in all.

    The slowest ones that the summary names, then those whose traces are `kept`, in that order.
    """
    found, left = {}, ROWS
    for workload in workloads:
        slow = [int(one["iteration"]) for one in workload.summary.get("exemplars") or ()]
        wanted = list(dict.fromkeys([*slow, *kept.get(workload.number, ())]))[:left]
        left -= len(wanted)
        found[workload.number] = np.array(sorted(wanted), np.int64)
    return found


def some_rows(
    facts: RunFacts, workloads: Sequence[WorkloadFacts], numbers: Mapping[int, Ints]
) -> Iterable[TableRow]:
    """Some of the iterations, from the result blocks."""
    opens = {one.number: one.is_open for one in workloads}
    for workload, _, block, _ in counted(facts.directory):
        wanted = np.isin(block.iteration, numbers.get(workload, _NONE))
        if not wanted.any():
            continue
        columns = select(block, wanted)
        begun = (columns.due if opens.get(workload) else columns.started) + columns.idle
        traces = dict(zip(columns.traced.tolist(), columns.traces, strict=True))
        names = (columns.iteration, columns.outcome, columns.due, columns.ended - begun)
        for iteration, outcome, due_ns, taken_ns in zip(*(n.tolist() for n in names), strict=True):
            trace = traces.get(iteration)
            yield TableRow(
                workload=workload,
                iteration=iteration,
                outcome=Outcome(outcome).name.lower(),
                due_s=max(due_ns, 0) / 1e9,
                latency_s=taken_ns / 1e9,
                trace_id="" if trace is None else str(UUID(bytes=trace.tobytes())),
            )


def all_rows(facts: RunFacts, workloads: Sequence[WorkloadFacts]) -> Iterable[TableRow]:
    """Every iteration that ran, from the result blocks."""
    opens = {one.number: one.is_open for one in workloads}
    for row in iterations(facts.directory):
        taken_ns = row.response_ns if opens.get(row.workload) else row.service_ns
        if row.workload in opens and taken_ns is not None:
            yield TableRow(
                workload=row.workload,
                iteration=row.iteration,
                outcome=row.outcome,
                due_s=max(row.due_ns or 0, 0) / 1e9,
                latency_s=taken_ns / 1e9,
                trace_id=row.trace_id,
            )
