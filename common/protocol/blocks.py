"""Result blocks: the rows of many iterations as little-endian typed arrays.

The same format is used on the wire and in the run directory. A row is the tuple

    (iteration, outcome, due_ns, started_ns, ended_ns, idle_ns, failure, actions, extra)

with instants on the worker's monotonic clock. `failure` is a number of the worker's failure
table (0: none), `actions` the flat integers of `Recorder.actions` (common/plugin/atomic.py), as
they are or packed by `pack_actions`, and `extra` None or (16 bytes of trace id or b"", list of
packed outputs or None, packed HTTP requests of `osbench.common.protocol.exchanges` or b"").
"""

from __future__ import annotations

import functools
import struct
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.errors import Untrusted
from osbench.common.escaping import escaped
from osbench.common.outcomes import Outcome
from osbench.common.plugin.atomic import NAME_CHARS, NAMES_LIMIT, WIDTH
from osbench.common.protocol.exchanges import EXCHANGE, EXCHANGE_BYTES, read_exchanges

Row = tuple[int, int, int, int, int, int, int, Sequence[int], Any]
Ints = NDArray[np.int64]
_FIRST, _LAST = min(Outcome), max(Outcome)

#: Instants beyond it, on any clock, are not taken: differences of two stay within an int64.
LATEST_NS = 2**62

#: Rows transposed at once: `zip` creates one object per row, and ten thousand new objects would
#: trigger full garbage collections again and again.
_CHUNK = 512


#: Bytes of a packed action.
_ACTION_BYTES = 8 * WIDTH
_PACK_ONE = struct.Struct(f"<{WIDTH}q").pack


def pack_actions(actions: Sequence[int]) -> bytes:
    """Actions as bytes, which the garbage collector does not track."""
    # from a copy: a thread that the scenario started may still add to the list
    flat = tuple(actions)
    return _PACK_ONE(*flat) if len(flat) == WIDTH else _packer(len(flat))(*flat)


@functools.lru_cache(256)
def _packer(count: int) -> Callable[..., bytes]:
    return struct.Struct(f"<{count}q").pack


def _bytes(column: array[int]) -> bytes:
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def encode_rows(rows: Sequence[Row], names: Sequence[str], t0_ns: int) -> dict[str, Any]:
    """Pack rows into columns. `t0_ns` is the start of the load on the rows' own clock."""
    iteration, due, started, ended, idle = (array("q") for _ in range(5))
    outcome, failure, lengths, actions = bytearray(), array("I"), array("I"), bytearray()
    requests, exchanges = array("I"), bytearray()
    extra: list[tuple[int, Any]] = []
    for at in range(0, len(rows), _CHUNK):
        part = rows[at : at + _CHUNK]
        numbers, outcomes, dues, starts, ends, idles, fails, steps, extras = zip(*part, strict=True)
        iteration.extend(array("q", numbers))
        outcome.extend(outcomes)
        due.extend(array("q", dues))
        started.extend(array("q", starts))
        ended.extend(array("q", ends))
        idle.extend(array("q", idles))
        failure.extend(array("I", fails))
        if any(steps):
            packed = [flat if isinstance(flat, bytes) else pack_actions(flat) for flat in steps]
            lengths.extend([len(flat) // _ACTION_BYTES for flat in packed])
            actions += b"".join(packed)
        else:
            lengths.frombytes(bytes(lengths.itemsize * len(part)))
        if any(extras):
            sent = [one[2] if one is not None else b"" for one in extras]
            requests.extend([len(one) // EXCHANGE_BYTES for one in sent])
            exchanges += b"".join(sent)
            extra += [
                (number, one)
                for number, one in zip(numbers, extras, strict=True)
                if one is not None and (one[0] or one[1])
            ]
        else:
            requests.frombytes(bytes(requests.itemsize * len(part)))
    columns: dict[str, Any] = {
        "rows": len(rows),
        "t0": t0_ns,
        "iteration": _bytes(iteration),
        "outcome": bytes(outcome),
        "due": _bytes(due),
        "started": _bytes(started),
        "ended": _bytes(ended),
    }
    # all-zero columns, as most are in most workloads, are not sent
    if any(idle):
        columns["idle"] = _bytes(idle)
    if any(failure):
        columns["failure"] = _bytes(failure)
    if actions:
        columns["lengths"] = _bytes(lengths)
        columns["actions"] = bytes(actions)
    if exchanges:
        columns["requests"] = _bytes(requests)
        columns["exchanges"] = bytes(exchanges)
    if actions or exchanges:
        columns["names"] = list(names)
    if extra:
        columns |= _extras(extra)
    return columns


def _extras(extra: Sequence[tuple[int, Any]]) -> dict[str, Any]:
    traced = [(number, trace) for number, (trace, *_) in extra if trace]
    return {
        "traced": _bytes(array("q", (number for number, _ in traced))),
        "traces": b"".join(trace for _, trace in traced),
        "outputs": [[number, outputs] for number, (_, outputs, _) in extra if outputs],
    }


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A distinct error of a workload; rows name it by `number`."""

    #: Number within the worker's failure table, from 1.
    number: int
    #: Exception type.
    etype: str
    #: str(exception), cut to 1 kB.
    message: str
    #: Formatted traceback, cut to 8 kB.
    traceback: str
    #: Resource that the worker lacked, such as open files; "" for other errors.
    resource: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """Decoded rows. Instants are int64 nanoseconds after t0; all arrays have one entry per row
    unless stated otherwise."""

    iteration: Ints
    #: uint8, values of `osbench.common.outcomes.Outcome`.
    outcome: NDArray[np.uint8]
    due: Ints
    started: Ints
    ended: Ints
    #: Nanoseconds spent in `think` and `sleep_between`.
    idle: Ints
    #: uint32, number in the worker's failure table, 0 for none.
    failure: NDArray[np.uint32]
    #: Atomic actions of all rows, one line per action: row, name, parent, start, end, failed.
    #: `name` indexes `names`; `parent` is the position of the enclosing action within its
    #: iteration or -1.
    actions: Ints = field(default_factory=lambda: np.empty((0, 6), np.int64))
    names: tuple[str, ...] = ()
    #: HTTP requests of all rows (`osbench.common.protocol.exchanges`), and the row of each.
    exchanges: NDArray[Any] = field(default_factory=lambda: np.empty(0, EXCHANGE))
    exchanged: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    #: Iteration numbers that have a trace id, and the ids as 16 bytes each (shape (n, 16)).
    traced: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    traces: NDArray[np.uint8] = field(default_factory=lambda: np.empty((0, 16), np.uint8))
    #: (iteration, packed outputs) where there are outputs.
    outputs: tuple[tuple[int, tuple[bytes, ...]], ...] = ()
    #: Exception type, message and traceback by failure number. Only set in rows for SLA criteria.
    failures: Mapping[int, tuple[str, str, str]] = field(default_factory=dict)
    #: The instant t0, seconds since 1970-01-01 UTC; 0 where not known.
    t0_at: float = 0.0

    def __len__(self) -> int:
        return len(self.iteration)

    @property
    def response(self) -> Ints:
        """Response time: from the due instant to the end, without think time; nanoseconds."""
        return self.ended - self.due - self.idle


def decode_rows(columns: dict[str, Any]) -> Columns:
    """Unpack the result of `encode_rows`. Raises Untrusted where lengths do not agree.

    What is made takes memory in proportion to the columns, whatever numbers they hold.
    """
    try:
        return _decode(columns)
    except (
        AttributeError,
        BufferError,
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        RecursionError,
    ) as error:
        raise Untrusted(f"malformed result block: {escaped(str(error)[:200])}") from None


def _decode(columns: dict[str, Any]) -> Columns:
    count, t0 = columns["rows"], columns["t0"]
    if type(count) is not int or type(t0) is not int or not -LATEST_NS < t0 <= LATEST_NS:
        raise ValueError("its number of rows or its start is no such number")

    def ints(name: str, dtype: str, *, sparse: bool = False) -> NDArray[Any]:
        if sparse and columns.get(name) is None:
            return np.zeros(count, dtype)
        found: NDArray[Any] = np.frombuffer(raw_bytes(columns[name]), dtype)
        if len(found) != count:
            raise ValueError(f"column {name} has {len(found)} rows, not {count}")
        return found

    def instants(name: str) -> Ints:
        return _bounded(ints(name, "<i8")) - t0

    # first the one that is never left out: it bounds how many the others are
    iteration = ints("iteration", "<i8")
    actions: Ints = np.empty((0, 6), np.int64)
    names = tuple(map(_name, columns.get("names", ())))
    if len(names) > NAMES_LIMIT + 1:
        raise ValueError("too many names of actions")
    if "actions" in columns:
        actions = _actions(
            np.frombuffer(raw_bytes(columns["actions"]), "<i8").reshape(-1, WIDTH),
            ints("lengths", "<u4"),
            t0,
        )
        used = actions[:, 1]
        if len(used) and not 0 <= _least(used) <= _greatest(used) < len(names):
            raise ValueError("an action without a name")
    exchanges, exchanged = np.empty(0, EXCHANGE), np.empty(0, np.int64)
    if "exchanges" in columns:
        exchanges, exchanged = read_exchanges(
            raw_bytes(columns["exchanges"]), ints("requests", "<u4"), actions, len(names)
        )
    traced = np.frombuffer(raw_bytes(columns.get("traced", b"")), "<i8")
    traces = np.frombuffer(raw_bytes(columns.get("traces", b"")), np.uint8).reshape(-1, 16)
    if len(traced) != len(traces):
        raise ValueError("trace ids and their iterations differ in number")
    if len(traced) and not _all_among(traced, iteration):
        raise ValueError("the trace id of an iteration that is not there")
    outcome = ints("outcome", "u1")
    if count and not _FIRST <= _least(outcome) <= _greatest(outcome) <= _LAST:
        raise ValueError("unknown outcome")
    return Columns(
        iteration=iteration,
        outcome=outcome,
        due=instants("due"),
        started=instants("started"),
        ended=instants("ended"),
        idle=_bounded(ints("idle", "<i8", sparse=True)),
        failure=ints("failure", "<u4", sparse=True),
        actions=actions,
        names=names,
        exchanges=exchanges,
        exchanged=exchanged,
        traced=traced,
        traces=traces,
        outputs=tuple(_outputs(number, parts) for number, parts in columns.get("outputs", ())),
    )


def _bounded(times_ns: Ints) -> Ints:
    if len(times_ns) and not -LATEST_NS < _least(times_ns) <= _greatest(times_ns) <= LATEST_NS:
        raise ValueError("an instant or a time out of range")
    return times_ns


def _least(values: NDArray[Any]) -> int:
    # the methods of arrays go through Python code of numpy, which small blocks would feel
    return int(np.minimum.reduce(values, axis=None))


def _greatest(values: NDArray[Any]) -> int:
    return int(np.maximum.reduce(values, axis=None))


def _all_among(some: Ints, numbers: Ints) -> bool:
    """Whether each of some numbers is among others. `np.isin` takes longer for a few of them."""
    if len(some) == len(numbers) and np.array_equal(some, numbers):
        return True
    if not len(numbers):
        return False
    ordered = np.sort(numbers)
    at = np.minimum(np.searchsorted(ordered, some), len(ordered) - 1)
    return bool(np.logical_and.reduce(ordered[at] == some))


def _actions(flat: Ints, lengths: NDArray[np.uint32], t0: int) -> Ints:
    """The actions with the row of each; `lengths` has how many of them each row has."""
    if int(np.add.reduce(lengths, dtype=np.int64)) != len(flat):
        raise ValueError("rows and actions do not fit together")
    actions = np.empty((len(flat), 6), np.int64)
    actions[:, 0] = np.repeat(np.arange(len(lengths)), lengths)
    actions[:, 1:] = flat
    if len(flat):
        instants, failed = actions[:, 3:5], actions[:, 5]
        if not -LATEST_NS < _least(instants) <= _greatest(instants) <= LATEST_NS:
            raise ValueError("an action with an instant out of range")
        if not 0 <= _least(failed) <= _greatest(failed) <= 1:
            raise ValueError("an action neither failed nor not")
        instants -= t0
    return actions


def raw_bytes(value: Any) -> bytes:
    """A column as it was sent. Raises TypeError for anything else."""
    if not isinstance(value, bytes):
        raise TypeError("a column is not bytes")
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a name is not text")
    return value[:NAME_CHARS]


def _outputs(number: Any, parts: Any) -> tuple[int, tuple[bytes, ...]]:
    if type(number) is not int or not -LATEST_NS < number <= LATEST_NS:
        raise TypeError("outputs of what is no iteration")
    return number, tuple(map(raw_bytes, parts))
