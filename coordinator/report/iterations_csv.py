"""Raw iterations as CSV, one line each."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO
from uuid import UUID

import numpy as np

from osbench.common.intervals import Intervals
from osbench.common.outcomes import RAN, Outcome
from osbench.common.protocol.blocks import Columns, Failure
from osbench.coordinator.results.rows import select

#: `workload` counts from 0, as in the JSON object; instants are seconds after t0.
HEADER = (
    "workload",
    "iteration",
    "outcome",
    "due_s",
    "started_s",
    "service_s",
    "response_s",
    "start_lag_s",
    "error",
    "trace_id",
)

_WORDS = {int(outcome): outcome.name.lower() for outcome in Outcome}
_RAN = frozenset(int(outcome) for outcome in RAN)

Line = tuple[str | int, ...]


class CsvRows:
    """Writes result blocks in the order they were taken; each iteration once."""

    def __init__(self, file: TextIO) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._writer.writerow(HEADER)
        self._written: dict[int, Intervals] = {}
        self._errors: dict[tuple[int, str], dict[int, str]] = {}

    def write(
        self, workload: int, worker: str, columns: Columns, failures: Sequence[Failure] = ()
    ) -> None:
        """Write the rows of a block; `failures` are those the worker had not described before.

        A row of an iteration that was written already is left out: the first one settled it.
        """
        errors = self._errors.setdefault((workload, worker), {0: ""})
        errors.update({known.number: f"{known.etype}: {known.message}" for known in failures})
        written = self._written.setdefault(workload, Intervals())
        numbers = Intervals.of(columns.iteration)
        repeated = written.intersection(numbers).members()
        if len(repeated):
            columns = select(columns, ~np.isin(columns.iteration, repeated))
        written.update(numbers)
        self._writer.writerows(_lines(workload, columns, errors))


def _lines(workload: int, columns: Columns, errors: Mapping[int, str]) -> Iterable[Line]:
    traces = {
        number: str(UUID(bytes=trace.tobytes()))
        for number, trace in zip(columns.traced.tolist(), columns.traces, strict=True)
    }
    names = ("iteration", "outcome", "due", "started", "ended", "idle", "failure")
    rows = zip(*(getattr(columns, name).tolist() for name in names), strict=True)
    for iteration, outcome, due, started, ended, idle, failure in rows:
        times: tuple[str, ...] = ("",) * 4
        if outcome in _RAN:
            spans = (started, ended - started - idle, ended - due, started - due)
            times = tuple(map(_seconds, spans))
        yield (
            *(workload, iteration, _WORDS[outcome], _seconds(due), *times),
            *(errors.get(failure, ""), traces.get(iteration, "")),
        )


def _seconds(nanoseconds: int) -> str:
    # exact: a float would lose nanoseconds of late instants
    sign = "-" if nanoseconds < 0 else ""
    whole, part = divmod(abs(nanoseconds), 10**9)
    return f"{sign}{whole}.{part:09d}"
