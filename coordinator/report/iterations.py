"""Reads the iterations of a run directory, each once, as the ledger counted them.

The first row of an iteration settled it, whichever worker sent it: later ones are stale. Arrivals
that the coordinator dropped have no row; the journal has them. If the workload is idempotent, a
worker may have started such an arrival before, and its row comes later: that row is stale, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from osbench.common.plugin.exporter import IterationRow
from osbench.common.protocol.columns import COLUMNS, Columns, select
from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.results.accounting.block_contents import (
    counted_contents,
    planned_workloads,
)
from osbench.coordinator.results.storage.run_directory import RunDirectory

_WORDS = {int(outcome): outcome.name.lower() for outcome in Outcome}
_NO_ERROR = ("", "", "")
#: No arrival is due before this, nanoseconds after t0: the due time was not known any more.
_LONG_PAST = -(1 << 59)
#: Error type, message and traceback by the number in a worker's failure table.
Errors = dict[int, tuple[str, str, str]]


class Reported(NamedTuple):
    """The rows of a result block that count, and the errors of its worker described so far.

    `worker` is an incarnation: the id of one start of a worker process. `errors` still grows while
    later blocks are read.
    """

    workload: int
    worker: str
    columns: Columns
    errors: Errors


class _Dropped(NamedTuple):
    """Arrivals that the coordinator dropped, for the reason in `outcome`.

    Due times are ns after t0; `_LONG_PAST` if not known.
    """

    workload: int
    iterations: NDArray[np.int64]
    dues: NDArray[np.int64]
    outcome: str


def iterations(directory: RunDirectory, report: Report | None = None) -> Iterator[IterationRow]:
    """Yield every iteration that ended or was dropped, in the order in which they were reported.

    Iterations of the warm-up are marked. `report` gives workers their names; for None, they are
    incarnations. Raises DamagedRun, or OsbenchError if run.json cannot be read.
    """
    names = worker_names(report)
    warmups = _warmups(directory)
    for one in _settled_blocks(directory):
        warmup_ns = warmups.get(one.workload, 0)
        if isinstance(one, Reported):
            name = names.get(one.worker, one.worker)
            yield from _rows(one.workload, name, one.columns, one.errors, warmup_ns)
        else:
            yield from _rows_of_dropped(one, warmup_ns)


def one_iteration(
    directory: RunDirectory, number: int
) -> Iterator[tuple[IterationRow, Reported | None]]:
    """Yield the iterations with `number`, at most one per workload, with the block of each.

    The block settled the iteration, and is cut to one row; None if the coordinator dropped it.
    Workers are named by incarnation. Raises OsbenchError if the run cannot be read.
    """
    warmups = _warmups(directory)
    found: list[Reported | _Dropped] = []
    for one in _settled_blocks(directory):
        numbers = one.columns.iteration if isinstance(one, Reported) else one.iterations
        here = numbers == number
        if not here.any():
            continue
        if isinstance(one, Reported):
            found.append(one._replace(columns=select(one.columns, here)))
        else:
            found.append(one._replace(iterations=one.iterations[here], dues=one.dues[here]))
    # an error may be described in a later block than its row
    for one in found:
        warmup_ns = warmups.get(one.workload, 0)
        if isinstance(one, Reported):
            yield next(_rows(one.workload, one.worker, one.columns, one.errors, warmup_ns)), one
        else:
            yield next(_rows_of_dropped(one, warmup_ns)), None


def counted_blocks(directory: RunDirectory) -> Iterator[Reported]:
    """Return an iterator of the rows that count, by block in stored order. Raises DamagedRun."""
    return (block for block in _settled_blocks(directory) if isinstance(block, Reported))


def settling(directory: RunDirectory) -> Iterator[dict[str, Any]]:
    """Yield result blocks and journal records of drops, in the order in which they count.

    Only records have the key `do`. Drops by older releases come last. Raises DamagedRun.
    """
    older = []
    for entry in directory.replay():
        yield from entry.bodies
        record = entry.record or {}
        if record.get("do") == "drop":
            if "blocks" in record:
                yield record
            else:
                # of an older release: its place among the blocks is not known
                older.append(record)
    yield from older


def _settled_blocks(directory: RunDirectory) -> Iterator[Reported | _Dropped]:
    errors: dict[tuple[int, str], Errors] = {}
    written: dict[int, Intervals] = {}
    workloads = planned_workloads(directory)
    for body in settling(directory):
        if "do" in body:
            yield _take_drops(body, written.setdefault(body["workload"], Intervals()))
            continue
        number, worker = body["workload"], body["incarnation"]
        found = counted_contents(body, workloads)
        if found is None:
            continue
        known = errors.setdefault((number, worker), {0: _NO_ERROR})
        known.update(
            (failure.number, (failure.etype, failure.message, failure.traceback))
            for failure in found.failures
        )
        if found.columns is None:
            continue
        before = written.setdefault(number, Intervals())
        columns = _first(found.columns, before)
        before.update(Intervals.of(columns.iteration))
        yield Reported(number, worker, columns, known)


def _first(columns: Columns, before: Intervals) -> Columns:
    """Return the rows of iterations that are not in `before`; of repeated ones, the first row."""
    numbers = Intervals.of(columns.iteration)
    repeated = before.intersection(numbers).members()
    if not len(repeated) and len(numbers) == len(columns):
        return columns
    fresh = np.zeros(len(columns), np.bool_)
    fresh[np.unique(columns.iteration, return_index=True)[1]] = True
    return select(columns, fresh & ~np.isin(columns.iteration, repeated))


def worker_names(report: Report | None) -> dict[str, str]:
    """Return a name for each worker incarnation: its label, else host:pid; {} without a report."""
    workers = [one for workload in report.workloads for one in workload.workers] if report else ()
    return {
        one.incarnation: one.label or f"{one.host or '?'}:{'?' if one.pid is None else one.pid}"
        for one in workers
    }


def _warmups(directory: RunDirectory) -> dict[int, int]:
    """Return the nanoseconds of warm-up by number of the workload.

    Raises OsbenchError if run.json cannot be read.
    """
    asked = (directory.read("run.json") or {}).get("workloads", ())
    return {number: int(one.get("warmup", 0) * 1e9) for number, one in enumerate(asked)}


def _take_drops(record: Mapping[str, Any], before: Intervals) -> _Dropped:
    """Return the drops of a journal record that are not in `before`, and add them to `before`."""
    numbers = Intervals(map(tuple, record["numbers"]))
    iterations = numbers.members()
    # runs of older releases do not say why, nor when they were due
    dues = np.frombuffer(record.get("dues", b""), "<i8")
    if not len(dues):
        dues = np.full(len(iterations), _LONG_PAST, np.int64)
    fresh = ~np.isin(iterations, before.intersection(numbers).members())
    before.update(numbers)
    outcome = f"dropped_{record.get('why', 'worker_lost')}"
    return _Dropped(record["workload"], iterations[fresh], dues[fresh], outcome)


def _rows_of_dropped(dropped: _Dropped, warmup_ns: int) -> Iterator[IterationRow]:
    for iteration, due_ns in zip(dropped.iterations.tolist(), dropped.dues.tolist(), strict=True):
        due = due_ns if due_ns > _LONG_PAST else None
        warm = due is not None and due < warmup_ns
        yield IterationRow(
            dropped.workload,
            iteration,
            dropped.outcome,
            due,
            None,
            None,
            0,
            *_NO_ERROR[:2],
            "",
            "",
            warm,
        )


def _rows(
    number: int, worker: str, columns: Columns, errors: Errors, warmup_ns: int
) -> Iterator[IterationRow]:
    """Yield the rows of a block as exporters get them.

    `errors`: texts by failure number; `warmup_ns`: iterations that began before it (ns after t0)
    are marked.
    """
    iterations, outcomes, dues, starts, ends, idles, failures, *others = (
        getattr(columns, one.name).tolist() for one in COLUMNS
    )
    begun = columns.started
    ran = columns.outcome <= Outcome.TIMED_OUT
    if not ran.all():
        begun = np.where(ran, columns.started, columns.due)
        # iterations that did not run have neither
        starts = [at if one else None for at, one in zip(starts, ran.tolist(), strict=True)]
        ends = [at if one else None for at, one in zip(ends, ran.tolist(), strict=True)]
    texts = [errors.get(failure, _NO_ERROR) for failure in failures]
    trace_of = _trace_ids(columns)
    return map(
        IterationRow._make,
        zip(
            repeat(number),
            iterations,
            map(_WORDS.__getitem__, outcomes),
            *(dues, starts, ends, idles),
            (etype for etype, _, _ in texts),
            (message for _, message, _ in texts),
            (trace_of(iteration, "") for iteration in iterations),
            repeat(worker),
            (begun < warmup_ns).tolist(),
            *others,
        ),
    )


def _trace_ids(columns: Columns) -> Callable[[int, str], str]:
    # as UUIDs; the class takes four times as long
    digits = columns.traces.tobytes().hex()
    found = {}
    for at, number in enumerate(columns.traced.tolist()):
        one = digits[32 * at : 32 * at + 32]
        found[number] = f"{one[:8]}-{one[8:12]}-{one[12:16]}-{one[16:20]}-{one[20:]}"
    return found.get


def starts(directory: RunDirectory, workloads: int) -> tuple[float, ...]:
    """Return t0 of each of `workloads` workloads, seconds since 1970-01-01 UTC; 0 if never begun.

    Raises DamagedRun.
    """
    found = {
        record["workload"]: float(record["t0_at"])
        for record in directory.decisions()
        if record.get("do") == "start"
    }
    return tuple(found.get(number, 0.0) for number in range(workloads))
