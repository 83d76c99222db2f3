"""Any rows survive being packed, signed and unpacked."""

from __future__ import annotations

import msgpack
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from helpers.result_rows import row_of
from osbench.common.errors import Untrusted
from osbench.common.protocol.columns import decode_rows, encode_rows
from osbench.common.protocol.exchanges import PHASES, pack_exchange
from osbench.common.values.outcomes import Outcome

instants = st.integers(0, 2**62)
names = ["a", "b", "c"]
actions = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-1, 5), instants, instants, st.integers(0, 1)),
    max_size=4,
).map(lambda found: [part for action in found for part in action])
phases = st.integers(0, 2**24)
exchanges = st.lists(
    st.builds(
        pack_exchange,
        *(st.just(-1), st.integers(-1, 2)),
        *[phases] * len(PHASES),
        *[st.integers(0, 2**40)] * 2,
        st.integers(0, 999),
    ),
    max_size=3,
).map(b"".join)
extras = st.one_of(
    st.none(),
    st.tuples(
        st.one_of(st.just(b""), st.binary(min_size=16, max_size=16)),
        st.one_of(st.none(), st.lists(st.binary(max_size=30), max_size=3)),
        exchanges,
    ),
)
rows = st.lists(
    st.tuples(
        st.integers(1, 2**62),
        st.sampled_from([int(outcome) for outcome in Outcome]),
        instants,
        instants,
        instants,
        instants,
        st.integers(0, 2**32 - 1),
        actions,
        extras,
    ).map(lambda values: row_of(*values)),
    min_size=1,
    max_size=20,
    unique_by=lambda row: row[0],
)


@given(rows, instants)
def test_rows_come_back_as_they_were(given_rows: list, t0: int) -> None:
    wire = msgpack.packb(encode_rows(given_rows, names, t0))

    found = decode_rows(msgpack.unpackb(wire))

    plain = [found.iteration, found.outcome, found.due + t0, found.started + t0]
    plain += [found.ended + t0, found.idle, found.failure]
    assert list(zip(*(column.tolist() for column in plain), strict=True)) == [
        row[:7] for row in given_rows
    ]
    back: list[list[int]] = [[] for _ in given_rows]
    for row, name, parent, start, end, failed in found.actions.tolist():
        back[row] += [name, parent, start + t0, end + t0, failed]
    assert back == [row[7] for row in given_rows]
    requests = [b""] * len(given_rows)
    for row, one in zip(found.exchanged.tolist(), found.exchanges, strict=True):
        requests[row] += one.tobytes()
    assert requests == [row[8][2] if row[8] else b"" for row in given_rows]
    kept = {row[0]: row[8] for row in given_rows if row[8]}
    traces = {
        number: trace.tobytes()
        for number, trace in zip(found.traced.tolist(), found.traces, strict=True)
    }
    assert traces == {number: extra[0] for number, extra in kept.items() if extra[0]}
    assert dict(found.outputs) == {
        number: tuple(extra[1]) for number, extra in kept.items() if extra[1]
    }


@given(rows, st.data())
def test_a_damaged_block_is_refused_or_of_the_right_shape(
    given_rows: list, data: st.DataObject
) -> None:
    columns = encode_rows(given_rows, names, 0)
    name = data.draw(st.sampled_from(sorted(columns)))
    columns[name] = data.draw(
        st.one_of(st.none(), st.integers(), st.text(), st.binary(), st.lists(st.integers()))
    )

    try:
        found = decode_rows(columns)
    except Untrusted:
        return

    assert len(found.outcome) == len(found.ended) == len(found.idle) == len(found)
    assert len(found.traces) == len(found.traced)
    assert np.all(found.actions[:, 0] < max(1, len(found)))
    assert len(found.exchanges) == len(found.exchanged)
    assert np.all(found.exchanged < max(1, len(found)))
