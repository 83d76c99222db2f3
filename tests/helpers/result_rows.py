"""Result rows for unit tests, in milliseconds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgpack

from osbench.common.protocol import columns
from osbench.common.protocol.columns import Columns, Row, decode_rows, encode_rows
from osbench.common.values.outcomes import Outcome

MS = 1_000_000

Action = tuple[str, int, int, int, int]


def row(  # noqa: PLR0913 - columns, by name
    iteration: int,
    *,
    outcome: Outcome = Outcome.OK,
    due: int = 0,
    started: int = 0,
    ended: int = 0,
    idle: int = 0,
    failure: int = 0,
    actions: tuple[Action, ...] = (),
    trace: bytes = b"",
    names: tuple[str, ...] = (),
    exchanges: bytes = b"",
) -> tuple[Any, ...]:
    """A row; `actions` are (name, parent, start, end, failed), their names in `names`."""
    flat: list[int] = []
    for name, parent, begun, finished, failed in actions:
        flat += [names.index(name), parent, begun * MS, finished * MS, failed]
    extra = (trace, None, exchanges) if trace or exchanges else None
    times = (due * MS, started * MS, ended * MS, idle * MS)
    return row_of(iteration, outcome, *times, failure, flat, extra)


def row_of(  # noqa: PLR0913 - a row in the order in which tests write it
    iteration: int,
    outcome: int,
    due: int,
    started: int,
    ended: int,
    idle: int,
    failure: int,
    actions: Sequence[int],
    extra: Any,
) -> Row:
    """A row with these values; whatever else rows have gets its default."""
    return columns.row(
        iteration=iteration,
        outcome=outcome,
        due=due,
        started=started,
        ended=ended,
        idle=idle,
        failure=failure,
        actions=actions,
        extra=extra,
    )


def block(*rows: tuple[Any, ...], names: tuple[str, ...] = ()) -> Columns:
    """The rows as the coordinator gets them from a worker."""
    return decode_rows(encode_rows(rows, names, 0))


def wire_text(block: Mapping[str, Any]) -> str:
    """The bytes of a block as lines: length and digest, then each column in its order."""
    wire = msgpack.packb(block)
    lines = [f"{len(wire)} bytes, sha256 {hashlib.sha256(wire).hexdigest()}"]
    lines += [f"{name}: {msgpack.packb(value).hex()[:400]}" for name, value in block.items()]
    return "".join(f"  {line}\n" for line in lines)
