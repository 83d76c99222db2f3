"""The traced iterations of a run, and latencies with and without tracing, from result blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.common.protocol.columns import Columns, Failure, select
from osbench.common.values.histogram import Histogram
from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.block_contents import counted_contents
from osbench.coordinator.results.storage.run_directory import RunDirectory

Ints = NDArray[np.int64]


#: Columns of `TracedIterations` that are numbers.
_COLUMNS = ("workload", "iteration", "outcome", "due", "started", "service", "response", "error")
#: Name of the error of an iteration whose worker did not describe it.
UNKNOWN = "(unknown)"


@dataclass(frozen=True, kw_only=True, eq=False)
class TracedIterations:
    """Traced iterations of a run, from its result blocks: arrays with an entry per iteration."""

    workload: Ints
    iteration: Ints
    outcome: Ints
    #: Nanoseconds after the start of the load; of open loads, when the iteration should start.
    due: Ints
    started: Ints
    #: Nanoseconds.
    service: Ints
    response: Ints
    #: Position in `errors`; 0 for iterations that succeeded.
    error: Ints
    #: Whether they started during the warm-up.
    warming: NDArray[np.bool_]
    #: Trace ids, one row of 16 bytes per iteration.
    traces: NDArray[np.uint8]
    #: Types of errors; the first one is "".
    errors: tuple[str, ...] = ("",)

    def __len__(self) -> int:
        return len(self.iteration)

    def drawn(self, share: float) -> NDArray[np.bool_]:
        """Return by iteration whether it is in a random sample of about `share` (0 to 1).

        The same in every call, as it is decided by the trace ids; larger samples contain smaller
        ones.
        """
        # all bits of the ids are random
        weights = (1 << np.arange(24, -1, -8)).astype(np.uint64)
        number = self.traces[:, :4].astype(np.uint64) @ weights
        found: NDArray[np.bool_] = number < share * 2**32
        return found

    def ids(self) -> list[str]:
        """Return the trace ids as 32 hexadecimal digits, in the order of the rows."""
        return [trace.tobytes().hex() for trace in self.traces]


@dataclass(frozen=True, kw_only=True, eq=False)
class Latencies:
    """Service times of the successful iterations of one workload after the warm-up.

    Histograms in nanoseconds, with and without tracing.
    """

    traced: Histogram
    untraced: Histogram


def traced_iterations(
    directory: RunDirectory,
    workloads: int,
    warmup_ns: Mapping[int, int],
    only: Collection[str] | None = None,
) -> tuple[TracedIterations, list[Latencies]]:
    """Read the traced iterations of a run, and the service times of each workload, from its blocks.

    An iteration that was reported again counts once; a dropped iteration is left out. `workloads`
    is their number. Iterations of the warm-up (`warmup_ns` by workload) are marked, and are not in
    the service times. `only` has the ids of the wanted traces, None for all; it does not limit the
    service times. Raises DamagedRun.
    """
    chosen = None if only is None else _Beginnings(only)
    found = _FoundRows()
    latencies = [Latencies(traced=Histogram(), untraced=Histogram()) for _ in range(workloads)]
    seen = [Intervals() for _ in range(workloads)]
    errors = _ErrorTypes()
    for body in directory.blocks():
        number = body["workload"]
        block = counted_contents(body)
        if block is None or number >= workloads:
            continue
        who = (number, body.get("incarnation", ""))
        errors.learn(who, block.failures)
        if block.columns is None:
            continue
        rows = new_rows(block.columns, seen[number])
        traced = np.isin(rows.iteration, rows.traced)
        warming = rows.started < warmup_ns.get(number, 0)
        service = rows.ended - rows.started - rows.idle
        ok = (rows.outcome == Outcome.OK) & ~warming
        latencies[number].traced.add(service[ok & traced])
        latencies[number].untraced.add(service[ok & ~traced])
        at = np.flatnonzero(traced & (rows.outcome <= Outcome.TIMED_OUT))
        traces = _traces_of(rows, at)
        if chosen is not None:
            wanted = chosen.among(traces)
            at, traces = at[wanted], traces[wanted]
        if len(at):
            found.add(number, rows, at, traces, errors.of(who, rows, at), warming[at])
    return found.joined(tuple(errors.names)), latencies


def _traces_of(rows: Columns, at: Ints) -> NDArray[np.uint8]:
    """Return the trace ids (16 bytes each) of the rows at positions `at`, which must be traced."""
    order = np.argsort(rows.traced, kind="stable")
    place = np.searchsorted(rows.traced[order], rows.iteration[at])
    found: NDArray[np.uint8] = rows.traces[order[place]]
    return found


class _FoundRows:
    """Collects rows of traced iterations, block after block, into one `TracedIterations`."""

    def __init__(self) -> None:
        self._columns: list[tuple[Ints, ...]] = []
        self._ids: list[NDArray[np.uint8]] = []

    def add(
        self,
        workload: int,
        rows: Columns,
        at: Ints,
        traces: NDArray[np.uint8],
        errors: Ints,
        warming: NDArray[np.bool_],
    ) -> None:
        """Add the rows of a block at positions `at`.

        `traces`, `errors` and `warming` have an entry for each of these positions.
        """
        self._ids.append(traces)
        self._columns.append(
            (
                np.full(len(at), workload),
                rows.iteration[at],
                rows.outcome[at].astype(np.int64),
                rows.due[at],
                rows.started[at],
                rows.ended[at] - rows.started[at] - rows.idle[at],
                rows.response[at],
                errors,
                warming.astype(np.int64),
            )
        )

    def joined(self, errors: tuple[str, ...]) -> TracedIterations:
        """Return all rows in the order added; `errors` has the types of errors, by their number."""
        found, ids = self._columns, self._ids
        parts = zip(*found, strict=True) if found else [[np.zeros(0, np.int64)]] * 9
        columns = [np.concatenate(part) for part in parts]
        return TracedIterations(
            **dict(zip(_COLUMNS, columns, strict=False)),
            warming=columns[-1].astype(bool),
            traces=np.concatenate(ids) if ids else np.zeros((0, 16), np.uint8),
            errors=errors,
        )


class _Beginnings:
    """Set of trace ids, to find members among many traces quickly.

    The first half of an id is looked up; if it matches, the complete id decides.
    """

    def __init__(self, ids: Collection[str]) -> None:
        self._ids = frozenset(ids)
        halves = [int(one[:16], 16) for one in ids] or [0]
        self._sorted = np.sort(np.array(halves, np.uint64))

    def among(self, traces: NDArray[np.uint8]) -> Ints:
        """Return the positions in `traces` (16 bytes per row) of traces whose id is in the set."""
        halves = np.ascontiguousarray(traces[:, :8]).view(">u8").ravel().astype(np.uint64)
        place = np.minimum(np.searchsorted(self._sorted, halves), len(self._sorted) - 1)
        likely = np.flatnonzero(self._sorted[place] == halves).tolist()
        return np.array([at for at in likely if bytes(traces[at]).hex() in self._ids], np.int64)


class _ErrorTypes:
    """Numbers the types of errors of a run in order of occurrence, from 1; 0 stands for success.

    Each worker numbers its failures separately, for each workload, and describes each once.
    """

    def __init__(self) -> None:
        self.names = {"": 0}
        self._meaning: dict[tuple[int, str], dict[int, int]] = {}

    def learn(self, who: tuple[int, str], failures: Iterable[Failure]) -> None:
        meaning = self._meaning.setdefault(who, {})
        for one in failures:
            meaning[one.number] = self._number(one.etype)

    def of(self, who: tuple[int, str], rows: Columns, at: Ints) -> Ints:
        """Return the number of the error type of each row at `at`; 0 for successful rows.

        `who`: number of the workload, and worker. An error that the worker did not describe counts
        as `UNKNOWN`.
        """
        failures = rows.failure[at]
        known = {
            number: self._meaning[who].get(number) or self._number(UNKNOWN)
            for number in np.unique(failures[rows.outcome[at] != Outcome.OK]).tolist()
        }
        found = np.zeros(len(at), np.int64)
        for number, meaning in known.items():
            found[(failures == number) & (rows.outcome[at] != Outcome.OK)] = meaning
        return found

    def _number(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))


def new_rows(columns: Columns, seen: Intervals) -> Columns:
    """Return the rows of iterations whose numbers are not in `seen`; add iterations that ran to it.

    A row of a dropped iteration does not end it: if it ran at another worker, that row comes later,
    and counts.
    """
    numbers = Intervals.of(columns.iteration)
    repeated = seen.intersection(numbers).members()
    seen.update(Intervals.of(columns.iteration[columns.outcome <= Outcome.TIMED_OUT]))
    return select(columns, ~np.isin(columns.iteration, repeated)) if len(repeated) else columns
