"""Joins small result blocks: counting a block costs nearly the same for any number of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from osbench.common.errors import Untrusted
from osbench.common.protocol.columns import MALFORMED, join_columns
from osbench.common.protocol.messages import Block
from osbench.common.text.escaping import one_line

#: Most rows that blocks are joined to: of more the fixed cost of a block is a small part.
LIMIT = 10_000


def groups(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Yield groups of blocks of the same worker and workload, each of at most `LIMIT` rows in all.

    A larger block, or one with another shape, counts as `LIMIT` rows. The blocks of each worker and
    workload keep their order.
    """
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
    # of another shape: the decoder reports it
    return count if isinstance(count, int) and 0 <= count < LIMIT else LIMIT


def join(blocks: Sequence[Block]) -> Block:
    """Return one block with the results of all `blocks`, and number, log and so on of the last.

    `blocks` are one group of `groups`. Raises Untrusted if a block has another shape or the blocks
    do not fit together. A single block is returned unchecked: its decoder checks it.
    """
    last = blocks[-1]
    if len(blocks) == 1:
        return last
    try:
        return replace(
            last,
            columns=join_columns([block.columns for block in blocks if block.columns]),
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
    except MALFORMED as error:
        shown = one_line(str(error)[:200])
        raise Untrusted(f"result blocks that do not fit together: {shown}") from None
