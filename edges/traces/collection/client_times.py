"""Measurements of the client as features: for services that write no spans.

The response time of an iteration is divided into its late start, the phases of its HTTP requests by
action, the rest of each action, and time outside of actions. `explain` then treats iterations as
traces.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.protocol.columns import Columns, select
from osbench.common.protocol.exchanges import PHASES, action_lines
from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.block_contents import counted_contents
from osbench.coordinator.results.statistics.action_paths import name_paths
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.analysis.features import ITERATION, Features
from osbench.edges.traces.collection.awaited_actions import Floats, awaited_shares
from osbench.edges.traces.collection.traced_iterations import new_rows
from osbench.edges.traces.model.span_keys import LATE_START, SpanKey, Vocabulary

Ints = NDArray[np.int64]

#: Most iterations of a workload that are used; beyond that, whole blocks are left out.
MOST = 100_000

#: Names of the phases of a request, in the order of `PHASES`.
_PHASES = ("name lookup for", "connecting for", "TLS handshake for", "first byte of", "transfer of")
_LATE = SpanKey("", LATE_START, "(no virtual user was free, or the generator was late)")
_OUTSIDE = SpanKey("", "code outside of actions", "")
#: Name for requests that are made in no action.
_NO_ACTION = "requests in no action"


@dataclass(frozen=True, kw_only=True, eq=False)
class ClientTimes:
    """Feature table with a row per iteration, and the due time of each row.

    `due` has nanoseconds after t0, the start of the load.
    """

    features: Features
    due: Ints


def client_times(
    directory: RunDirectory,
    names: Sequence[str],
    warmup_ns: Mapping[int, int],
    only: Collection[int],
    wanted: Callable[[], bool] = lambda: True,
) -> ClientTimes:
    """Return feature table and due times of iterations of some workloads, from a run's blocks.

    `names` are of all workloads; `only` has numbers of workloads. Left out are iterations that did
    not run or started in the warm-up (`warmup_ns` by workload), and blocks if there are many.
    Reading ends early if `wanted` returns False. Raises DamagedRun.
    """
    vocabulary = Vocabulary()
    found = {number: _SampledBlocks() for number in only}
    seen = {number: Intervals() for number in only}
    for body in directory.blocks():
        number = body["workload"]
        if not wanted():
            break
        if not body["columns"] or number not in found:
            continue
        if not found[number].takes_next():
            continue
        block = counted_contents(body)
        if block is None or block.columns is None:
            continue
        rows = new_rows(block.columns, seen[number])
        counted = (rows.outcome <= Outcome.TIMED_OUT) & (rows.started >= warmup_ns.get(number, 0))
        rows = select(rows, counted)
        if len(rows):
            found[number].add(_DividedRows(rows, vocabulary))
    return _joined_times(names, {number: one.parts for number, one in found.items()}, vocabulary)


class _SampledBlocks:
    """A sample of the result blocks of one workload, so that it has about `MOST` rows at most.

    All blocks at first; each time there are too many rows, every second block of it is dropped.
    """

    def __init__(self) -> None:
        self.parts: list[_DividedRows] = []
        self._stride = 1
        self._block = -1
        self._rows = 0

    def takes_next(self) -> bool:
        """Count the next block of the workload; return whether it belongs to the sample."""
        self._block += 1
        return self._block % self._stride == 0

    def add(self, part: _DividedRows) -> None:
        """Add the rows of a sampled block; above `MOST` rows, drop every second block.

        Later blocks are then sampled half as often, too.
        """
        self.parts.append(part)
        self._rows += len(part.iteration)
        if self._rows > MOST and len(self.parts) > 1:
            self.parts = self.parts[::2]
            self._stride *= 2
            self._rows = sum(len(one.iteration) for one in self.parts)


class _DividedRows:
    """The iterations of a block: number, due time, outcome, response time, and its parts by key.

    Times are nanoseconds.
    """

    def __init__(self, rows: Columns, vocabulary: Vocabulary) -> None:
        self.iteration = rows.iteration
        self.due = rows.due
        self.outcome = rows.outcome.astype(np.int64)
        self.total = np.maximum(rows.response, 0)
        #: By part: row, number of the key, nanoseconds.
        self.row, self.key, self.time = _entries(rows, vocabulary)


def _entries(rows: Columns, vocabulary: Vocabulary) -> tuple[Ints, Ints, Ints]:
    """Return the parts of the response times of `rows` as arrays (row, number of key, nanoseconds).

    New keys are added to `vocabulary`. Parts of 0 are left out. Of actions that overlap the parts
    that the iteration waited for count; other overlaps, as of requests in one action, are scaled
    down, so that the parts do not exceed the response time.
    """
    actions = rows.actions
    number, paths = name_paths(actions, rows.names)
    late = np.maximum(rows.started - rows.due, 0)
    shares = awaited_shares(actions)
    parts, line = _requests(rows, number, paths, vocabulary)
    # without an action, index -1: the 1 that is added
    waited = np.append(shares, 1.0)[line]
    spent = (_request_times(rows) * waited).astype(np.int64)
    own, rest = _own_times(rows, line, shares, spent)
    # times of parallel requests, and pauses within an action, must not count twice
    left = rows.response - late - rest
    request_share, left = _fitting(left, _row_sums(rows, rows.exchanged, spent))
    share = request_share[rows.exchanged] * waited
    parts = [
        (rows.exchanged[at], key, (time * share[at]).astype(np.int64)) for at, key, time in parts
    ]
    own_share, _ = _fitting(left, _row_sums(rows, actions[:, 0], own))
    own = (own * own_share[actions[:, 0]]).astype(np.int64)
    keys = [vocabulary.number(SpanKey("", "time in action", path)) for path in paths]
    every = np.arange(len(rows))
    parts += [
        (every, np.full(len(rows), vocabulary.number(_LATE)), late),
        (actions[:, 0], np.array(keys, np.int64)[number], own),
        (every, np.full(len(rows), vocabulary.number(_OUTSIDE)), rest),
    ]
    row, key, time = (np.concatenate(column) for column in zip(*parts, strict=True))
    took = time > 0
    return row[took], key[took], time[took]


def _own_times(rows: Columns, line: Ints, shares: Floats, spent: Ints) -> tuple[Ints, Ints]:
    """Return (self time of each action, time of each row outside of actions and requests).

    Nanoseconds that were waited for. `line` has for each request the index of its action in
    `rows.actions`, or -1. `shares`: as of `awaited_shares`; `spent`: times of requests.
    """
    actions = rows.actions
    lasted = (np.maximum(actions[:, 4] - actions[:, 3], 0) * shares).astype(np.int64)
    parent = actions[:, 2]
    nested, inside = parent >= 0, line >= 0
    own = lasted.copy()
    outer = action_lines(actions[nested, 0], actions) + parent[nested]
    np.subtract.at(own, outer, lasted[nested])
    np.subtract.at(own, line[inside], spent[inside])
    top = _row_sums(rows, actions[~nested, 0], lasted[~nested])
    top += _row_sums(rows, rows.exchanged[~inside], spent[~inside])
    rest = rows.ended - rows.started - rows.idle - top
    return np.maximum(own, 0), np.maximum(rest, 0)


def _fitting(left: Ints, wanted: Ints) -> tuple[NDArray[np.float64], Ints]:
    """Return the fraction (0 to 1) of `wanted` that fits into `left`, and the rest of `left`.

    Arrays have an entry per row, `left` and `wanted` in nanoseconds. The fraction is 0 if nothing
    fits or is wanted.
    """
    taken = np.clip(left, 0, wanted)
    return taken / np.maximum(wanted, 1), left - taken


def _row_sums(rows: Columns, of: Ints, values: Ints) -> Ints:
    """Return for each row the sum of its `values`; `of` has the row of each value."""
    return np.bincount(of, values, minlength=len(rows)).astype(np.int64)


def _request_times(rows: Columns) -> Ints:
    """Return for each request the sum of its phases (name lookup to transfer), nanoseconds."""
    spent = np.zeros(len(rows.exchanges), np.int64)
    for phase in PHASES:
        spent += rows.exchanges[phase].astype(np.int64)
    return spent


def _requests(
    rows: Columns, number: Ints, paths: Sequence[str], vocabulary: Vocabulary
) -> tuple[list[tuple[Ints, Ints, Ints]], Ints]:
    """Return the phases of requests as parts, and for each request the index of its action.

    The index is in `rows.actions`, -1 without an action. `number` has for each action the index of
    its name in `paths`. A part has arrays of request, number of key in `vocabulary`, nanoseconds.
    """
    exchanges: NDArray[Any] = rows.exchanges
    place = exchanges["action"].astype(np.int64)
    inside = place >= 0
    line = np.full(len(exchanges), -1)
    line[inside] = action_lines(rows.exchanged[inside], rows.actions) + place[inside]
    path = np.full(len(exchanges), len(paths))
    path[inside] = number[line[inside]]
    parts = []
    for phase, name in zip(PHASES, _PHASES, strict=True):
        time = exchanges[phase].astype(np.int64)
        took = time > 0
        if took.any():
            keys = np.zeros(len(paths) + 1, np.int64)
            for at in np.unique(path[took]).tolist():
                about = paths[at] if at < len(paths) else _NO_ACTION
                keys[at] = vocabulary.number(SpanKey("", name, about))
            parts.append((np.flatnonzero(took), keys[path[took]], time[took]))
    return parts, line


def _joined_times(
    names: Sequence[str], found: Mapping[int, Sequence[_DividedRows]], vocabulary: Vocabulary
) -> ClientTimes:
    """Join the rows of all blocks (`found`, by workload) to one feature table.

    `names` are of all workloads. Rows are ordered by workload, then block.
    """
    blocks = [(number, rows) for number, parts in sorted(found.items()) for rows in parts]
    sizes = [len(rows.iteration) for _, rows in blocks]
    first = np.cumsum([0, *sizes])

    def joined(columns: list[Ints]) -> Ints:
        return np.concatenate([np.zeros(0, np.int64), *columns]).astype(np.int64)

    row = joined([rows.row + at for (_, rows), at in zip(blocks, first, strict=False)])
    order = np.argsort(row, kind="stable")
    count = int(first[-1])
    features = Features(
        keys=tuple(vocabulary.keys),
        places=tuple((key, "") for key in range(len(vocabulary.keys))),
        groups=tuple(names),
        shapes=(),
        traces=("",) * count,
        group=joined(
            [np.full(size, number) for (number, _), size in zip(blocks, sizes, strict=True)]
        ),
        iteration=joined([rows.iteration for _, rows in blocks]),
        outcome=joined([rows.outcome for _, rows in blocks]),
        total=joined([rows.total for _, rows in blocks]),
        shape=np.full(count, -1),
        whole=np.ones(count, bool),
        kept=np.zeros(count, bool),
        begin=np.searchsorted(row[order], np.arange(count + 1)).astype(np.int64),
        place=joined([rows.key for _, rows in blocks])[order],
        time=joined([rows.time for _, rows in blocks])[order],
        calls=np.ones(len(row), np.int64),
        unit=ITERATION,
    )
    return ClientTimes(features=features, due=joined([rows.due for _, rows in blocks]))
