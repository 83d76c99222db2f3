"""Reads result blocks as the run counts them; a block of another shape is refused."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from osbench.common.errors import Untrusted
from osbench.common.protocol.columns import MALFORMED, Columns, Failure, decode_rows
from osbench.common.text.escaping import escaped, one_line
from osbench.coordinator.results.accounting.workload_users import FAILURES_END, Event, read_events
from osbench.coordinator.results.storage.run_directory import RunDirectory

#: Characters of a failure that are kept; osbench's workers send no more.
TYPE_CHARS, MESSAGE_CHARS, TRACEBACK_CHARS = 200, 1000, 8000
#: Characters of a place in a scenario, or of a text on an error outside of iterations, that are
#: kept.
PLACE_CHARS = 300
#: Iteration numbers are below it.
_END = 2**62

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class BlockContents:
    """The decoded contents of a result block, as in `Block`."""

    #: None if it has no rows.
    columns: Columns | None
    failures: list[Failure]
    returned: list[tuple[int, int]]
    lags: Ints
    blocked: dict[str, int]
    thread_lags: Ints
    stalls: dict[str, int]
    life: list[Event]
    asides: dict[str, int]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        """Decode the fields of a block. Raises Untrusted or a `MALFORMED` error if one is wrong."""
        return cls(
            failures=_failures(body.get("failures", ())),
            returned=_intervals(body.get("returned", ())),
            columns=decode_rows(body["columns"]) if body["columns"] else None,
            lags=_lags(body.get("lags", b"")),
            blocked=_amounts(body.get("blocked", ())),
            thread_lags=_lags(body.get("thread_lags", b"")),
            stalls=_amounts(body.get("stalls", ())),
            life=read_events(body.get("life", ())),
            asides=_amounts(body.get("asides", ())),
        )


def counted_contents(body: Mapping[str, Any], workloads: float = math.inf) -> BlockContents | None:
    """Return the contents of a block of a run directory; None if the run refused the block.

    `workloads`: the number of workloads of the run, if known.
    """
    try:
        return BlockContents.of(body) if 0 <= body["workload"] < workloads else None
    except (Untrusted, *MALFORMED):
        return None


def planned_workloads(directory: RunDirectory) -> float:
    """Return the number of workloads of a run; infinity if its run.json does not say it.

    Blocks of other workloads were refused. Raises OsbenchError if run.json cannot be read.
    """
    asked = (directory.read("run.json") or {}).get("workloads")
    return len(asked) if asked else math.inf


def counted_rows(directory: RunDirectory) -> Iterator[tuple[int, str, Columns]]:
    """Yield (number of the workload, name of worker, rows) of each block with rows, as they came.

    Refused blocks are left out. Rows that the ledger did not count, such as stale ones, are there.
    Raises DamagedRun, or OsbenchError if a file cannot be read.
    """
    workloads = planned_workloads(directory)
    for body in directory.blocks():
        found = counted_contents(body, workloads)
        if found is not None and found.columns is not None:
            yield body["workload"], body["incarnation"], found.columns


def _failures(entries: Iterable[Iterable[object]]) -> list[Failure]:
    found = []
    try:
        for number, etype, message, traceback, *resource in entries:
            if type(number) is not int or not 0 <= number < FAILURES_END:
                raise TypeError("a number is none")
            found.append(
                Failure(
                    number=number,
                    etype=str(etype)[:TYPE_CHARS],
                    message=str(message)[:MESSAGE_CHARS],
                    traceback=str(traceback)[:TRACEBACK_CHARS],
                    resource=escaped("".join(map(str, resource[:1]))[:TYPE_CHARS]),
                )
            )
    except (TypeError, ValueError, RecursionError) as error:
        raise Untrusted(f"failures of another shape: {one_line(str(error)[:200])}") from None
    return found


def _lags(packed: bytes) -> NDArray[np.int64]:
    if len(packed) % 8:
        raise Untrusted("lags of another shape")
    return np.frombuffer(packed, "<i8").astype(np.int64)


def _amounts(pairs: Iterable[Iterable[object]]) -> dict[str, int]:
    """Add up amounts by text: nanoseconds by place in code, or counts by kind; return the sums.

    `pairs`: (text, amount) from a worker. Texts are cut to `PLACE_CHARS` and escaped; amounts of
    equal ones are summed. Raises Untrusted if an element of `pairs` is not a pair, or an amount
    is not an int from 0 to below `_END`.
    """
    found: dict[str, int] = {}
    try:
        for text, amount in pairs:
            if type(amount) is not int or not 0 <= amount < _END:
                raise TypeError("an amount is none")
            name = escaped(str(text)[:PLACE_CHARS])
            found[name] = found.get(name, 0) + amount
    except (TypeError, ValueError, RecursionError) as error:
        raise Untrusted(f"amounts of another shape: {one_line(str(error)[:200])}") from None
    return found


def _intervals(pairs: Iterable[Iterable[int]]) -> list[tuple[int, int]]:
    try:
        found = [(low, high) for low, high in pairs]
        if not all(type(low) is type(high) is int and 0 < low < high < _END for low, high in found):
            raise ValueError("an interval that is none")
    except (TypeError, ValueError) as error:
        raise Untrusted(f"numbers of another shape: {one_line(str(error)[:200])}") from None
    return found
