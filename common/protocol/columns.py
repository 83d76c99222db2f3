"""Result blocks: the rows of many iterations as little-endian typed arrays.

The same format is used on the wire and in the run directory. A row is the tuple

    (iteration, outcome, due, started, ended, idle, failure, actions, extra)

Its numbers are declared once, in `COLUMNS`, from which encoding, decoding, joining and selecting
follow. `actions` are the flat integers of `Recorder.actions` (common/plugin/atomic.py), as they are
or packed by `pack_actions`. `extra` is None or (16 bytes of trace id or b"", list of packed outputs
or None, packed HTTP requests of `osbench.common.protocol.exchanges` or b"").
"""

from __future__ import annotations

import functools
import struct
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from osbench.common.errors import Untrusted
from osbench.common.plugin.atomic import NAME_CHARS, NAMES_LIMIT, WIDTH
from osbench.common.protocol.exchanges import EXCHANGE, EXCHANGE_BYTES, read_exchanges
from osbench.common.text.escaping import one_line
from osbench.common.values.outcomes import Outcome

Row = tuple[int, int, int, int, int, int, int, Sequence[int], Any]
#: Positions in a row of what is not a number.
ACTIONS: Final = 7
EXTRA: Final = 8

Ints = NDArray[np.int64]

#: Times beyond it, on any clock, are not taken: differences of two stay within an int64.
LATEST_NS = 2**62

#: Raised by decoding or joining for columns that no worker of ours sends.
MALFORMED = (
    AttributeError,
    BufferError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    RecursionError,
)

#: Rows transposed at once: `zip` creates one object per row, and ten thousand new objects would
#: trigger full garbage collections again and again.
_CHUNK = 512

_PACK_ONE = struct.Struct(f"<{WIDTH}q").pack


@dataclass(frozen=True, kw_only=True)
class Column:
    """Declaration of a numeric column of result blocks: its type on the wire and its range."""

    #: Key in a block, and field of `Columns`.
    name: str
    #: Position in a row.
    place: int
    #: Type code of `struct`, little-endian.
    code: Literal["q", "I", "B"]
    #: Left out of a block whose rows all have 0.
    sparse: bool = False
    #: Whether it is a time of the worker's monotonic clock, decoded to nanoseconds after t0.
    instant: bool = False
    #: Least and greatest number that is taken, and the error for others; None: any.
    low: int | None = None
    high: int | None = None
    outside: str = ""

    @property
    def dtype(self) -> str:
        """Return the numpy type of the column on the wire, such as "<i8"."""
        return {"q": "<i8", "I": "<u4", "B": "|u1"}[self.code]

    @property
    def size(self) -> int:
        """Return the bytes of one number of the column."""
        return np.dtype(self.dtype).itemsize


def _time(name: str, place: int, *, sparse: bool = False, instant: bool = False) -> Column:
    """Return the declaration of a column of nanoseconds, with the range of times.

    `instant`: its numbers are points in time, not durations. `sparse`: left out if all are 0.
    """
    return Column(
        name=name,
        place=place,
        code="q",
        sparse=sparse,
        instant=instant,
        low=1 - LATEST_NS,
        high=LATEST_NS,
        outside="a time out of range",
    )


#: In the order of a block. The first is never left out: it bounds how long others may be.
COLUMNS = (
    Column(name="iteration", place=0, code="q"),
    Column(
        name="outcome",
        place=1,
        code="B",
        low=min(Outcome),
        high=max(Outcome),
        outside="unknown outcome",
    ),
    _time("due", 2, instant=True),
    _time("started", 3, instant=True),
    _time("ended", 4, instant=True),
    _time("idle", 5, sparse=True),
    Column(name="failure", place=6, code="I", sparse=True),
)

#: Columns of packed entries, some for each row: the one that has how many, and bytes of an entry.
_NESTED = {"actions": ("lengths", 8 * WIDTH), "exchanges": ("requests", EXCHANGE_BYTES)}

# loops run over tuples: attributes of `Column` would make small blocks half as dear again
_NAMES = tuple(one.name for one in COLUMNS)
_PLACES = {one.name: one.place for one in COLUMNS}
_ENCODED = tuple((one.name, one.code, one.place, one.sparse) for one in COLUMNS)
_DECODED = tuple(
    (one.name, one.dtype, one.sparse, one.low, one.high, one.instant, one.outside)
    for one in COLUMNS
)
_JOINED = (
    *((one.name, one.sparse, one.size) for one in COLUMNS),
    *((counts, True, 4) for counts, _ in _NESTED.values()),
)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A distinct error of one worker in one workload; rows refer to it by `number`."""

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
    """Decoded rows of iterations as arrays, one entry per row unless a field says otherwise.

    Times are int64 nanoseconds after t0, durations int64 nanoseconds.
    """

    iteration: Ints
    #: uint8, values of `osbench.common.values.outcomes.Outcome`.
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
    #: (iteration, packed outputs) of the iterations that have outputs.
    outputs: tuple[tuple[int, tuple[bytes, ...]], ...] = ()
    #: Exception type, message and traceback by failure number. Only set in rows for SLA criteria.
    failures: Mapping[int, tuple[str, str, str]] = field(default_factory=dict)
    #: t0, seconds since 1970-01-01 UTC; 0 if not known.
    t0_at: float = 0.0

    def __len__(self) -> int:
        return len(self.iteration)

    @property
    def response(self) -> Ints:
        """Return response times in nanoseconds: from due time to end, without think time."""
        return self.ended - self.due - self.idle


def row(  # noqa: PLR0913 - a row, by name
    *,
    iteration: int,
    outcome: int,
    due: int,
    started: int,
    ended: int,
    idle: int = 0,
    failure: int = 0,
    actions: Sequence[int] = (),
    extra: Any = None,
) -> Row:
    """Return the tuple of one row; the hot path writes it itself, since a call costs time."""
    return iteration, outcome, due, started, ended, idle, failure, actions, extra


def changed_row(row: Row, **numbers: int) -> Row:
    """Return a copy of `row` with some numbers replaced: keywords are names of `COLUMNS`."""
    values: list[Any] = list(row)
    for name, number in numbers.items():
        values[_PLACES[name]] = number
    return cast(Row, tuple(values))


def pack_actions(actions: Sequence[int]) -> bytes:
    """Pack the integers of one row's actions as bytes, which the garbage collector does not track.

    Raises OverflowError for an integer beyond 64 bits.
    """
    # from a copy: a thread that the scenario started may still add to the list
    flat = tuple(actions)
    try:
        return _PACK_ONE(*flat) if len(flat) == WIDTH else _action_packer(len(flat))(*flat)
    except struct.error as error:
        raise OverflowError(f"times of an atomic action must fit 64 bits, in ns: {error}") from None


@functools.lru_cache(256)
def _action_packer(count: int) -> Callable[..., bytes]:
    return struct.Struct(f"<{count}q").pack


# as many as `_CHUNK` for each of three codes
@functools.cache
def _packer(code: str, count: int) -> Callable[..., bytes]:
    return struct.Struct(f"<{count}{code}").pack


def encode_rows(rows: Sequence[Row], names: Sequence[str], t0_ns: int) -> dict[str, Any]:
    """Return rows as a dict of columns for msgpack: bytes by column name, with "rows" and "t0".

    Sparse columns of zeros are left out, as are the columns of actions, of requests, and of traces
    and outputs, if no row has any. `names`: the names of actions, by index. `t0_ns`: start of the
    load on the clock of the rows. Raises OverflowError for a number that does not fit its column.
    """
    made: list[list[bytes]] = [[] for _ in _ENCODED]
    steps: list[Any] = []
    extras: list[Any] = []
    for at in range(0, len(rows), _CHUNK):
        part = rows[at : at + _CHUNK]
        turned = list(zip(*part, strict=True))
        try:
            for chunks, (_, code, place, _) in zip(made, _ENCODED, strict=True):
                chunks.append(_packer(code, len(part))(*turned[place]))
        except struct.error as error:
            raise OverflowError(f"times of an iteration must fit 64 bits, in ns: {error}") from None
        steps += turned[ACTIONS]
        extras += turned[EXTRA]
    columns: dict[str, Any] = {"rows": len(rows), "t0": t0_ns}
    for chunks, (name, _, _, sparse) in zip(made, _ENCODED, strict=True):
        column = b"".join(chunks)
        # all-zero columns, as most are in most workloads, are not sent
        if not sparse or column != bytes(len(column)):
            columns[name] = column
    if any(steps):
        packed = [flat if isinstance(flat, bytes) else pack_actions(flat) for flat in steps]
        columns |= _nested_columns("actions", packed)
    if any(extras):
        columns |= _nested_columns("exchanges", [one[2] if one else b"" for one in extras])
    if "actions" in columns or "exchanges" in columns:
        columns["names"] = list(names)
    return columns | _beside(rows) if any(extras) else columns


def _nested_columns(name: str, entries: Sequence[bytes]) -> dict[str, bytes]:
    """Return two columns: the joined bytes of all rows, and the number of entries per row.

    `name`: "actions" or "exchanges", the key of the first; `entries` has the bytes of each row. {}
    if all are empty.
    """
    flat = b"".join(entries)
    if not flat:
        return {}
    counts, size = _NESTED[name]
    return {counts: _bytes(array("I", [len(entry) // size for entry in entries])), name: flat}


def _beside(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the columns for trace ids and outputs of rows; {} if no row has either."""
    some = [(one[0], *one[EXTRA][:2]) for one in rows if one[EXTRA] and any(one[EXTRA][:2])]
    if not some:
        return {}
    traced = [(number, trace) for number, trace, _ in some if trace]
    return {
        "traced": _bytes(array("q", [number for number, _ in traced])),
        "traces": b"".join([trace for _, trace in traced]),
        "outputs": [[number, outputs] for number, _, outputs in some if outputs],
    }


def _bytes(column: array[int]) -> bytes:
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def decode_rows(columns: dict[str, Any]) -> Columns:
    """Decode the dict that `encode_rows` made; times of the result are relative to t0.

    It comes from a worker and is not trusted: raises Untrusted if columns are malformed, of
    different lengths or out of range. Memory is in proportion to the columns, whatever numbers they
    hold.
    """
    try:
        return _decode(columns)
    except MALFORMED as error:
        raise Untrusted(f"malformed result block: {one_line(str(error)[:200])}") from None


def _decode(columns: dict[str, Any]) -> Columns:
    count, t0 = columns["rows"], columns["t0"]
    if type(count) is not int or type(t0) is not int or not -LATEST_NS < t0 <= LATEST_NS:
        raise ValueError("its number of rows or its start is not a valid number")
    values: dict[str, Any] = {}
    for name, dtype, sparse, low, high, instant, outside in _DECODED:
        if sparse and columns.get(name) is None:
            values[name] = np.zeros(count, dtype)
            continue
        found = _column(columns, name, dtype)
        if low is not None and high is not None and count:
            _check_bounds(found, low, high, outside)
        values[name] = found - t0 if instant else found
    names = tuple(map(_name, columns.get("names", ())))
    if len(names) > NAMES_LIMIT + 1:
        raise ValueError("too many names of actions")
    actions: Ints = np.empty((0, 6), np.int64)
    if "actions" in columns:
        actions = _actions(columns, len(names))
    exchanges, exchanged = np.empty(0, EXCHANGE), np.empty(0, np.int64)
    if "exchanges" in columns:
        exchanges, exchanged = read_exchanges(
            raw_bytes(columns["exchanges"]),
            _column(columns, "requests", "<u4"),
            actions,
            len(names),
        )
    traced, traces = _traces(columns, values["iteration"])
    return Columns(
        **values,
        actions=actions,
        names=names,
        exchanges=exchanges,
        exchanged=exchanged,
        traced=traced,
        traces=traces,
        outputs=tuple(_outputs(number, parts) for number, parts in columns.get("outputs", ())),
    )


def _check_bounds(values: NDArray[Any], low: int, high: int, outside: str) -> None:
    if not low <= _least(values) <= _greatest(values) <= high:
        raise ValueError(outside)


def _column(columns: Mapping[str, Any], name: str, dtype: str) -> NDArray[Any]:
    found: NDArray[Any] = np.frombuffer(raw_bytes(columns[name]), dtype)
    if len(found) != columns["rows"]:
        raise ValueError(f"column {name}: expected {columns['rows']} rows, got {len(found)}")
    return found


def _least(values: NDArray[Any]) -> int:
    # the methods of arrays go through Python code of numpy, which small blocks would feel
    return int(np.minimum.reduce(values, axis=None))


def _greatest(values: NDArray[Any]) -> int:
    return int(np.maximum.reduce(values, axis=None))


def _actions(columns: Mapping[str, Any], names: int) -> Ints:
    """Return the actions of all rows, shape (n, 6): the row's index, then its 5 integers.

    Times become relative to t0. `names`: how many names there are. The column "lengths" has the
    number of actions per row. Raises a `MALFORMED` error for bad lengths or numbers out of range.
    """
    flat = np.frombuffer(raw_bytes(columns["actions"]), "<i8").reshape(-1, WIDTH)
    lengths = _column(columns, "lengths", "<u4")
    if int(np.add.reduce(lengths, dtype=np.int64)) != len(flat):
        raise ValueError("rows and actions do not fit together")
    actions = np.empty((len(flat), 6), np.int64)
    actions[:, 0] = np.repeat(np.arange(len(lengths)), lengths)
    actions[:, 1:] = flat
    if len(flat):
        used, instants, failed = actions[:, 1], actions[:, 3:5], actions[:, 5]
        if not -LATEST_NS < _least(instants) <= _greatest(instants) <= LATEST_NS:
            raise ValueError("an action with a time out of range")
        if not 0 <= _least(failed) <= _greatest(failed) <= 1:
            raise ValueError("an action is neither failed nor successful")
        if not 0 <= _least(used) <= _greatest(used) < names:
            raise ValueError("an action without a name")
        instants -= columns["t0"]
    return actions


def _traces(columns: Mapping[str, Any], iterations: Ints) -> tuple[Ints, NDArray[np.uint8]]:
    traced = np.frombuffer(raw_bytes(columns.get("traced", b"")), "<i8")
    traces = np.frombuffer(raw_bytes(columns.get("traces", b"")), np.uint8).reshape(-1, 16)
    if len(traced) != len(traces):
        raise ValueError("trace ids and their iterations differ in number")
    if len(traced) and not _all_among(traced, iterations):
        raise ValueError("the trace id of an iteration that is not there")
    return traced, traces


def _all_among(some: Ints, numbers: Ints) -> bool:
    """Return whether `numbers` has all of `some`; faster than `np.isin` for a few."""
    if len(some) == len(numbers) and np.array_equal(some, numbers):
        return True
    if not len(numbers):
        return False
    ordered = np.sort(numbers)
    at = np.minimum(np.searchsorted(ordered, some), len(ordered) - 1)
    return bool(np.logical_and.reduce(ordered[at] == some))


def raw_bytes(value: Any) -> bytes:
    """Return a column unchanged if it is bytes; raise TypeError if not."""
    if not isinstance(value, bytes):
        raise TypeError("a column is not bytes")
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a name is not text")
    return value[:NAME_CHARS]


def _outputs(number: Any, parts: Any) -> tuple[int, tuple[bytes, ...]]:
    if type(number) is not int or not -LATEST_NS < number <= LATEST_NS:
        raise TypeError("outputs without an iteration")
    return number, tuple(map(raw_bytes, parts))


def join_columns(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Join successive blocks' columns of one worker and workload into one dict; {} for no blocks.

    A single block is returned itself, unchecked; of more only the lengths are checked: decoding
    checks the rest. Raises a `MALFORMED` error if they do not fit together.
    """
    if len(parts) < 2:
        return parts[0] if parts else {}
    for part in parts:
        _check(part)
    if len({part["t0"] for part in parts}) > 1:
        raise ValueError("the load begins at different times")
    found = {"rows": sum(part["rows"] for part in parts), "t0": parts[0]["t0"]}
    for name, sparse, size in _JOINED:
        if not sparse:
            found[name] = b"".join([part[name] for part in parts])
        elif any(name in part for part in parts):
            found[name] = b"".join([part.get(name) or bytes(part["rows"] * size) for part in parts])
    for name in ("actions", "exchanges", "traced", "traces"):
        if any(name in part for part in parts):
            found[name] = b"".join([part.get(name, b"") for part in parts])
    if "actions" in found or "exchanges" in found:
        found["names"] = _last_names([part["names"] for part in parts if "names" in part])
    if any("outputs" in part for part in parts):
        found["outputs"] = [one for part in parts for one in part.get("outputs", ())]
    return found


def _last_names(lists: Sequence[list[str]]) -> list[str]:
    """Return the last of the blocks' lists of action names: a worker's list only grows.

    Raises ValueError if an earlier list is not the beginning of the last.
    """
    last = lists[-1]
    if any(last[: len(names)] != names for names in lists):
        raise ValueError("the names of actions differ")
    return last


def _check(part: Mapping[str, Any]) -> None:
    """Raise a `MALFORMED` error for wrong lengths of a block; in a sum they could cancel out."""
    rows = part["rows"]
    if type(rows) is not int or rows < 0:
        raise ValueError("its number of rows is not a valid number")
    for name, sparse, size in _JOINED:
        if (not sparse or name in part) and len(raw_bytes(part[name])) != rows * size:
            raise ValueError(f"column {name}: expected {rows} rows of {size} bytes")
    for name, (counts, size) in _NESTED.items():
        if name in part:
            count = int(np.add.reduce(np.frombuffer(part[counts], "<u4"), dtype=np.int64))
            if len(raw_bytes(part[name])) != count * size or "names" not in part:
                raise ValueError(f"expected {count} {name} and their names")
    if len(part.get("traces", b"")) != 2 * len(part.get("traced", b"")):
        raise ValueError("trace ids and their iterations differ in number")


def select(columns: Columns, keep: NDArray[np.bool_]) -> Columns:
    """Return the rows for which `keep` is true, with their actions, requests, traces and outputs.

    `keep`: one bool per row. The result is a copy; `columns` itself if all rows are kept.
    """
    kept = np.flatnonzero(keep)
    if len(kept) == len(columns):
        return columns
    place = np.cumsum(keep) - 1
    actions = columns.actions[keep[columns.actions[:, 0]]]
    actions[:, 0] = place[actions[:, 0]]
    exchanged = keep[columns.exchanged]
    values: dict[str, Any] = {name: getattr(columns, name)[kept] for name in _NAMES}
    if len(columns.traced):
        traced = np.isin(columns.traced, values["iteration"])
        values |= {"traced": columns.traced[traced], "traces": columns.traces[traced]}
    if columns.outputs:
        left = set(values["iteration"].tolist())
        values["outputs"] = tuple(item for item in columns.outputs if item[0] in left)
    return replace(
        columns,
        **values,
        actions=actions,
        exchanges=columns.exchanges[exchanged],
        exchanged=place[columns.exchanged[exchanged]],
    )
