"""Blocks that are counted together come to the same as blocks counted one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.result_rows import row_of, wire_text
from helpers.sample_reports import shown
from osbench.common.errors import Untrusted
from osbench.common.protocol.columns import encode_rows
from osbench.common.protocol.exchanges import PHASES, pack_exchange, pack_other
from osbench.common.protocol.messages import Block
from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.merging import LIMIT, groups, join
from osbench.coordinator.results.accounting.workload_results import WorkloadResults

WORKERS = ("w1", "w2")
NAMES = ["outer", "inner"]

instants = st.integers(0, 10**10)
actions = st.one_of(
    st.just([]),
    st.builds(lambda begin: [0, -1, begin, begin + 9, 0, 1, 0, begin + 1, 0, 0], instants),
)
phases = st.integers(0, 10**9)
requests = st.builds(
    pack_exchange,
    *(st.just(-1), st.integers(-1, 1)),
    *[phases] * len(PHASES),
    *[st.integers(0, 2**40)] * 2,
    st.integers(0, 999),
)
extras = st.one_of(
    st.none(),
    st.builds(lambda trace: (trace, None, b""), st.binary(min_size=16, max_size=16)),
    st.builds(lambda made: (b"", None, b"".join(made)), st.lists(requests, max_size=3)),
)
cells = st.tuples(
    st.sampled_from([int(outcome) for outcome in Outcome]),
    instants,
    st.sampled_from([0, 0, 7]),
    actions,
    extras,
)
#: Rows of each block, and whose it is.
streams = st.lists(
    st.tuples(st.sampled_from(WORKERS), st.lists(cells, max_size=5)), min_size=1, max_size=12
)


def blocks(stream: list[tuple[str, list[Any]]]) -> list[Block]:
    found, number = [], 0
    for at, (worker, rows) in enumerate(stream):
        packed = []
        for outcome, started, idle, *rest in rows:
            number += 1
            # what was dropped has neither
            steps, extra = rest if outcome <= Outcome.TIMED_OUT else ([], None)
            failure = 1 if outcome == Outcome.FAILED else 0
            ended = started + 1000
            packed.append(
                row_of(number, outcome, started - 5, started, ended, idle, failure, steps, extra)
            )
        found.append(
            Block(
                run="r",
                membership="m",
                incarnation=worker,
                number=at + 1,
                workload=0,
                columns=encode_rows(packed, NAMES, 3) if packed else {},
                returned=[(1000 + at, 1001 + at)],
                failures=[[1, "ValueError", "wrong", "Traceback"]] if at < 2 else [],
                want_ns=at,
                cut=1,
            )
        )
    return found


def empty_book(stream: list[Block]) -> WorkloadResults:
    book = WorkloadResults(idempotent=False, sla=SlaEvaluator((), None))
    for worker in WORKERS:
        numbers = [
            int(number)
            for block in stream
            if block.incarnation == worker and block.columns
            for number in np.frombuffer(block.columns["iteration"], "<i8")
        ]
        spare = [
            low for block in stream if block.incarnation == worker for low, _ in block.returned
        ]
        book.ledger.cut(worker, 1, Intervals.of(np.array([*numbers, *spare])))
    return book


@given(streams)
def test_the_order_and_the_size_of_blocks_change_nothing(stream) -> None:
    sent = blocks(stream)
    alone, together = empty_book(sent), empty_book(sent)

    ran = [alone.add(block) for block in sent]
    ran_together = [together.add(join(group)) for group in groups(sent)]

    assert shown(together.statistics) == shown(alone.statistics)
    assert together.ledger.accounting() == alone.ledger.accounting()
    assert list(together.ledger.pool) == list(alone.ledger.pool)
    assert (together.want_ns, together.cut) == (alone.want_ns, alone.cut)
    assert sum(n for n, _ in ran) == sum(n for n, _ in ran_together)


def test_large_blocks_stay_alone_and_small_ones_become_a_large_one() -> None:
    rows = [row_of(n, 1, 0, 0, 1, 0, 0, b"", None) for n in range(1, 4_001)]
    columns = encode_rows(rows, (), 0)
    many = [
        Block(run="r", membership="m", incarnation="w1", number=n, workload=0, columns=columns)
        for n in range(1, 6)
    ]

    found = list(groups(many))

    assert [[block.number for block in group] for group in found] == [[1, 2], [3, 4], [5]]
    assert all(join(group).columns["rows"] <= LIMIT for group in found)


def test_joined_blocks_are_the_same_bytes(golden: Callable[[str, str], None]) -> None:
    made = (bytes(range(16)), [b"out"], pack_other(0, 1))
    plain, whole = (1, 0, 0, [], None), (2, 5, 7, [0, -1, 5, 9, 0], made)
    stream = blocks([("w1", rows) for rows in ([plain], [plain, whole], [], [whole, plain])])

    text = "".join(
        f"{name}\n{wire_text(join(some).columns)}"
        for name, some in (("plain", [stream[0], stream[0]]), ("everything", stream))
    )

    golden("blocks-joined.txt", text)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda columns: columns.update(rows=2),
        lambda columns: columns.update(due=columns["due"] + bytes(8)),
        lambda columns: columns.update(actions=columns["actions"][40:]),
        lambda columns: columns.update(names=["other"]),
        lambda columns: columns.update(t0=4),
        lambda columns: columns.pop("ended"),
        lambda columns: columns.update(traces=b"x"),
        lambda columns: columns.update(exchanges=columns["exchanges"][44:]),
        lambda columns: columns.pop("requests"),
        lambda columns: columns.pop("names"),
    ],
)
def test_what_one_block_lacks_is_not_made_up_for_by_another(spoil) -> None:
    made = (b"", None, pack_other(-1, 0))
    steps = [0, -1, 5, 9, 0]
    one, two = blocks([("w1", [(1, 5, 0, steps, made)]), ("w1", [(1, 6, 0, steps, made)])])
    spoil(two.columns)

    with pytest.raises(Untrusted, match="do not fit together"):
        join([one, two])
