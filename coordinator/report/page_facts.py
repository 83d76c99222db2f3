"""Input of a run's HTML page: everything is read here, before anything is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from osbench.common.protocol.columns import Columns, select
from osbench.common.protocol.exchanges import FALSE_BODY
from osbench.common.protocol.iteration_outputs import outputs
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.report.error_kinds import FailureTimes, Kind
from osbench.coordinator.report.iterations import Reported, counted_blocks
from osbench.coordinator.report.model.model import Report, WorkloadReport
from osbench.coordinator.report.page_part import PagePart, page_parts
from osbench.coordinator.report.run_facts import RunFacts
from osbench.coordinator.results.accounting.block_contents import counted_rows
from osbench.coordinator.results.accounting.charts import about_of
from osbench.coordinator.results.storage.run_directory import RunDirectory

Ints = NDArray[np.int64]

#: Iterations up to which all are in the page.
ROWS = 20_000
#: Status codes of errors begin here.
_ERROR_STATUS = 400
_NO_ERROR = ("", "", "")
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """An iteration that ran, for the page's table of iterations.

    Times are seconds; `due_s` is after t0, `trace_id` "" if it was not traced.
    """

    workload: int
    iteration: int
    outcome: str
    due_s: float
    latency_s: float
    trace_id: str
    #: Type and message of the error; "" if it ended well.
    error_type: str = ""
    error: str = ""
    #: Of a failed iteration: the innermost action that did not end well, and the status code of the
    #: last response if it is an error; "" and 0 without one.
    step: str = ""
    status: int = 0


@dataclass(frozen=True, kw_only=True)
class PageFacts:
    """All data of a run that its page shows; on a live page, report, timeline and parts."""

    live: bool
    run_id: str
    #: As in `RunFacts`.
    state: str
    reason: str
    #: run.json: the request for the run.
    manifest: Mapping[str, Any]
    report: Report
    #: See `report.timeline`; None if the run has none.
    timeline: Mapping[str, Any] | None
    #: All iterations that ran, or only the ones with useful traces.
    rows: tuple[TableRow, ...] = ()
    rows_are_all: bool = True
    #: Data of complete charts by number of the workload, title and plug-in, each of the iteration
    #: that the report names as its first.
    first_outputs: Mapping[int, Mapping[tuple[str, str], Any]] = field(default_factory=dict)
    #: When iterations failed, by number of the workload and kind of error; seconds after t0.
    failed_s: Mapping[tuple[int, Kind], NDArray[np.float64]] = field(default_factory=dict)
    #: Parts that optional packages add, by name.
    parts: Mapping[str, PagePart] = field(default_factory=dict)


def gather(facts: RunFacts, *, live: bool = False) -> PageFacts:
    """Return all data that the page of a run shows; no iterations for a live page.

    Reads result blocks and parts from the run directory. If more than `ROWS` iterations
    ran, only rows with useful traces are included. Raises DamagedRun.
    """
    report, directory = facts.report, facts.directory
    found = PageFacts(
        live=live,
        run_id=facts.run_id,
        state=facts.state,
        reason=facts.reason,
        manifest=facts.manifest,
        report=report,
        timeline=facts.timeline,
        parts=page_parts(facts, live=live),
    )
    if live:
        return found
    workloads = report.workloads
    are_all = sum(one.ran for one in workloads) <= ROWS
    failures = FailureTimes()
    blocks = _note_failures(counted_blocks(directory), failures)
    rows = (
        all_rows(blocks, workloads)
        if are_all
        else some_rows(blocks, workloads, traced_numbers(workloads, _useful(found)))
    )
    return replace(
        found,
        rows=tuple(rows),
        rows_are_all=are_all,
        first_outputs=_first_outputs(directory, workloads),
        # after the rows: all blocks have been read for them
        failed_s=failures.by_kind(),
    )


def _note_failures(blocks: Iterable[Reported], failures: FailureTimes) -> Iterator[Reported]:
    for block in blocks:
        failures.add(block)
        yield block


def _useful(page: PageFacts) -> dict[int, list[int]]:
    """Return by workload the iterations that parts of the page show, the most useful first."""
    parts = page.parts.values()
    return {
        number: [iteration for part in parts for iteration in part.iterations(number)]
        for number in range(len(page.report.workloads))
    }


def traced_numbers(
    workloads: Sequence[WorkloadReport], kept: Mapping[int, Iterable[int]]
) -> dict[int, Ints]:
    """Return numbers of iterations with useful traces, ascending, by number of the workload.

    At most `ROWS` in all: the slowest iterations of the report, then iterations in `kept`, in its
    order, workload by workload.
    """
    found, left = {}, ROWS
    for number, workload in enumerate(workloads):
        slow = [one.iteration for one in workload.exemplars]
        wanted = list(dict.fromkeys([*slow, *kept.get(number, ())]))[:left]
        left -= len(wanted)
        found[number] = np.array(sorted(wanted), np.int64)
    return found


def some_rows(
    blocks: Iterable[Reported], workloads: Sequence[WorkloadReport], numbers: Mapping[int, Ints]
) -> Iterator[TableRow]:
    """Yield a table row for each iteration in result blocks that is in its workload's `numbers`."""
    for one in blocks:
        wanted = np.isin(one.columns.iteration, numbers.get(one.workload, _NONE))
        if wanted.any() and one.workload < len(workloads):
            some = one._replace(columns=select(one.columns, wanted))
            yield from rows_of(some, is_open=workloads[one.workload].is_open)


def all_rows(blocks: Iterable[Reported], workloads: Sequence[WorkloadReport]) -> Iterator[TableRow]:
    """Yield a table row for every iteration in result blocks that ran; dropped ones have none."""
    for one in blocks:
        ran = one.columns.outcome <= Outcome.TIMED_OUT
        if ran.any() and one.workload < len(workloads):
            those = one._replace(columns=select(one.columns, ran))
            yield from rows_of(those, is_open=workloads[one.workload].is_open)


def rows_of(reported: Reported, *, is_open: bool) -> Iterator[TableRow]:
    """Yield the iterations of a result block, all of which ran, as rows of the page.

    The latency is the response time if the load `is_open`, else the service time.
    """
    columns = reported.columns
    begun = columns.due if is_open else columns.started
    taken = columns.ended - (begun + columns.idle)
    traces = dict(zip(columns.traced.tolist(), columns.traces, strict=True))
    steps, statuses = _failed_steps(columns), _error_statuses(columns)
    names = (columns.iteration, columns.outcome, columns.due, taken, columns.failure)
    for at, values in enumerate(zip(*(name.tolist() for name in names), strict=True)):
        iteration, outcome, due_ns, taken_ns, failure = values
        trace = traces.get(iteration)
        error_type, error, _ = reported.errors.get(failure, _NO_ERROR)
        is_bad = outcome != Outcome.OK
        yield TableRow(
            workload=reported.workload,
            iteration=iteration,
            outcome=Outcome(outcome).name.lower(),
            due_s=max(due_ns, 0) / 1e9,
            latency_s=taken_ns / 1e9,
            trace_id="" if trace is None else str(UUID(bytes=trace.tobytes())),
            error_type=error_type,
            error=error,
            step=steps.get(at, "") if is_bad else "",
            status=statuses.get(at, 0) if is_bad else 0,
        )


def _failed_steps(columns: Columns) -> dict[int, str]:
    """Return, by index of the row, the last-started action that failed or did not end."""
    found = columns.actions
    bad = found[(found[:, 5] != 0) | (found[:, 4] < found[:, 3])]
    return {row: columns.names[name] for row, name in bad[:, :2].tolist()}


def _error_statuses(columns: Columns) -> dict[int, int]:
    """Return, by index of the row, the status code of its last response with an error status."""
    statuses = columns.exchanges["status"] & ~FALSE_BODY
    pairs = zip(columns.exchanged.tolist(), statuses.tolist(), strict=True)
    return {row: status for row, status in pairs if status >= _ERROR_STATUS}


def _first_outputs(
    directory: RunDirectory, workloads: Sequence[WorkloadReport]
) -> dict[int, dict[tuple[str, str], Any]]:
    """Return the data of complete charts by workload number, title and plug-in.

    Data are of the iteration that the report names as the first with the chart. Blocks are read
    only if there are such charts. Raises DamagedRun.
    """
    wanted = {
        (number, int(chart["first_iteration"]), *_kind(chart))
        for number, workload in enumerate(workloads)
        for chart in workload.outputs.complete
        if "first_iteration" in chart
    }
    found: dict[int, dict[tuple[str, str], Any]] = {}
    for number, _, columns in counted_rows(directory) if wanted else ():
        for iteration, packed in columns.outputs:
            if not any(one[:2] == (number, iteration) for one in wanted):
                continue
            for chart in outputs(packed)["complete"]:
                kind = _kind(about_of(chart))
                if (number, iteration, *kind) in wanted:
                    wanted.remove((number, iteration, *kind))
                    found.setdefault(number, {})[kind] = chart.get("data")
        if not wanted:
            break
    return found


def _kind(chart: Mapping[str, Any]) -> tuple[str, str]:
    return str(chart.get("title")), str(chart.get("chart_plugin"))
