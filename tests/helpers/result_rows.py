"""Result rows for unit tests, in milliseconds."""

from __future__ import annotations

from typing import Any

from osbench.common.outcomes import Outcome
from osbench.common.protocol.blocks import Columns, decode_rows, encode_rows

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
    return (
        *(iteration, outcome, due * MS, started * MS, ended * MS, idle * MS),
        *(failure, flat, extra),
    )


def block(*rows: tuple[Any, ...], names: tuple[str, ...] = ()) -> Columns:
    """The rows as the coordinator gets them from a worker."""
    return decode_rows(encode_rows(rows, names, 0))
