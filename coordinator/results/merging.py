"""Joins small result blocks: what a block costs to count hardly depends on its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from osbench.common.errors import Untrusted
from osbench.common.escaping import escaped
from osbench.common.plugin.atomic import WIDTH
from osbench.common.protocol.blocks import raw_bytes
from osbench.common.protocol.exchanges import EXCHANGE_BYTES
from osbench.common.protocol.messages import Block

#: Most rows that blocks are joined to: of more the fixed cost of a block is a small part.
LIMIT = 10_000

#: Bytes of a row in each column, those first that are never left out.
_REQUIRED = {"iteration": 8, "outcome": 1, "due": 8, "started": 8, "ended": 8}
_SPARSE = {"idle": 8, "failure": 4, "lengths": 4, "requests": 4}
_PLAIN = ("actions", "exchanges", "traced", "traces")
#: Columns with some entries for each row, where it stands how many, and bytes of an entry.
_COUNTED = (("actions", "lengths", 8 * WIDTH), ("exchanges", "requests", EXCHANGE_BYTES))


def groups(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Blocks of the same worker and workload together, each worker's in their order."""
    open_: dict[tuple[str, int], list[Block]] = {}
    rows: dict[tuple[str, int], int] = {}
    for block in blocks:
        key = (block.incarnation, block.workload)
        count = _rows(block.columns)
        if key in open_ and rows[key] + count > LIMIT:
            yield open_.pop(key)
            rows[key] = 0
        open_.setdefault(key, []).append(block)
        rows[key] = rows.get(key, 0) + count
    yield from open_.values()


def _rows(columns: Mapping[str, Any]) -> int:
    count = columns.get("rows", 0)
    # of another shape: whoever decodes it says so
    return count if isinstance(count, int) and 0 <= count < LIMIT else LIMIT


def join(blocks: Sequence[Block]) -> Block:
    """One block that holds what a `groups` group does, with the number of its last one.

    Raises Untrusted where one is of another shape or they do not fit together; that a single
    one is as it must be is left to whoever decodes it.
    """
    last = blocks[-1]
    if len(blocks) == 1:
        return last
    try:
        return replace(
            last,
            columns=_columns([block.columns for block in blocks if block.columns]),
            returned=[pair for block in blocks for pair in block.returned],
            failures=[failure for block in blocks for failure in block.failures],
            want_ns=sum(block.want_ns for block in blocks),
            cut=sum(block.cut for block in blocks),
            started_late=sum(block.started_late for block in blocks),
            lags=b"".join([block.lags for block in blocks]),
            blocked=[place for block in blocks for place in block.blocked],
            thread_lags=b"".join([block.thread_lags for block in blocks]),
            stalls=[stall for block in blocks for stall in block.stalls],
            life=[event for block in blocks for event in block.life],
            asides=[aside for block in blocks for aside in block.asides],
        )
    except (
        AttributeError,
        BufferError,
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        RecursionError,
    ) as error:
        shown = escaped(str(error)[:200])
        raise Untrusted(f"result blocks that do not fit together: {shown}") from None


def _columns(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    if len(parts) < 2:
        return parts[0] if parts else {}
    for part in parts:
        _check(part)
    if len({part["t0"] for part in parts}) > 1:
        raise ValueError("the load begins at different instants")
    found = {"rows": sum(part["rows"] for part in parts), "t0": parts[0]["t0"]}
    for name in _REQUIRED:
        found[name] = b"".join([part[name] for part in parts])
    for name, size in _SPARSE.items():
        if any(name in part for part in parts):
            found[name] = b"".join([part.get(name) or bytes(part["rows"] * size) for part in parts])
    for name in _PLAIN:
        if any(name in part for part in parts):
            found[name] = b"".join([part.get(name, b"") for part in parts])
    if "actions" in found or "exchanges" in found:
        found["names"] = _names([part["names"] for part in parts if "names" in part])
    if any("outputs" in part for part in parts):
        found["outputs"] = [one for part in parts for one in part.get("outputs", ())]
    return found


def _names(lists: Sequence[list[str]]) -> list[str]:
    """The names of the last block: a worker's list of names only grows."""
    last = lists[-1]
    if any(last[: len(names)] != names for names in lists):
        raise ValueError("the names of actions differ")
    return last


def _check(part: Mapping[str, Any]) -> None:
    """What one block has too much must not make up for what another lacks."""
    rows = part["rows"]
    if type(rows) is not int or rows < 0:
        raise ValueError("its number of rows is no such number")
    for name, size in _REQUIRED.items():
        if len(raw_bytes(part[name])) != rows * size:
            raise ValueError(f"column {name} is not of {rows} rows")
    for name, size in _SPARSE.items():
        if name in part and len(raw_bytes(part[name])) != rows * size:
            raise ValueError(f"column {name} is not of {rows} rows")
    for name, counts, size in _COUNTED:
        if name in part:
            count = int(np.add.reduce(np.frombuffer(part[counts], "<u4"), dtype=np.int64))
            if len(raw_bytes(part[name])) != count * size or "names" not in part:
                raise ValueError(f"there are not {count} {name}, with their names")
    if len(part.get("traces", b"")) != 2 * len(part.get("traced", b"")):
        raise ValueError("trace ids and their iterations differ in number")
