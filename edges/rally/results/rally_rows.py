"""Reads the iterations of a run directory in the order in which they started."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np

from osbench.common.protocol.columns import Columns, select
from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.report.iterations import settling
from osbench.coordinator.results.accounting.block_contents import counted_contents, counted_rows
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.rally.adapters.records import records

#: A time after all others, nanoseconds.
_NEVER = 1 << 62

#: A record of `edges/rally/adapters/records.py` and the trace id of its iteration, if any.
Traced = tuple[dict[str, Any], str | None]


def iterations(directory: RunDirectory, workload: int, t0_at: float) -> Iterator[Traced]:
    """Yield each iteration of a workload that ran, in order of start, with its trace id or None.

    Iterations are records in Rally's form; each comes once, even if a row was sent twice. Only
    iterations that a row of a later block may precede are in memory. `t0_at`: seconds since 1970.
    """
    waiting: list[tuple[int, int, Traced]] = []
    for columns, earliest in zip(
        _blocks(directory, workload), _earliest_after(directory, workload), strict=True
    ):
        traces = {
            number: str(UUID(bytes=trace.tobytes()))
            for number, trace in zip(columns.traced.tolist(), columns.traces, strict=True)
        }
        started = dict(zip(columns.iteration.tolist(), columns.started.tolist(), strict=True))
        for number, record in records(columns, columns.failures, t0_at):
            heapq.heappush(waiting, (started[number], number, (record, traces.get(number))))
        while waiting and waiting[0][0] <= earliest:
            yield heapq.heappop(waiting)[2]


def _earliest_after(directory: RunDirectory, workload: int) -> list[int]:
    """Return for each block the earliest start, ns after t0, in all following ones, or `_NEVER`."""
    starts = []
    for number, _, columns in counted_rows(directory):
        if number != workload:
            continue
        ran = columns.started[columns.outcome <= Outcome.TIMED_OUT]
        starts.append(int(ran.min()) if len(ran) else _NEVER)
    later = itertools.accumulate(reversed(starts[1:]), min, initial=_NEVER)
    return list(later)[::-1] if starts else []


def _blocks(directory: RunDirectory, workload: int) -> Iterator[Columns]:
    """Yield the rows of a workload, block by block, without rows of iterations settled before.

    Settled: in a final state by an earlier block, or by a decision of the coordinator.
    """
    written = Intervals()
    texts: dict[str, dict[int, tuple[str, str, str]]] = {}
    for body in settling(directory):
        if body["workload"] != workload:
            continue
        if "do" in body:
            written.update(Intervals(map(tuple, body["numbers"])))
            continue
        found = counted_contents(body)
        if found is None:
            continue
        known = texts.setdefault(body["incarnation"], {})
        for one in found.failures:
            known[one.number] = (one.etype, one.message, one.traceback)
        if found.columns is None:
            continue
        columns = replace(found.columns, failures=known)
        numbers = Intervals.of(columns.iteration)
        repeated = written.intersection(numbers).members()
        if len(repeated):
            columns = select(columns, ~np.isin(columns.iteration, repeated))
        written.update(numbers)
        yield columns
