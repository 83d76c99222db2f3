"""Result blocks: rows become columns and rows again; what does not fit is refused."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest

from helpers.result_rows import row_of, wire_text
from osbench.common.errors import Untrusted
from osbench.common.protocol.columns import (
    ACTIONS,
    COLUMNS,
    EXTRA,
    Column,
    Columns,
    Row,
    changed_row,
    decode_rows,
    encode_rows,
    join_columns,
    row,
    select,
)
from osbench.common.protocol.exchanges import (
    EXCHANGE_BYTES,
    OWN,
    PHASES,
    pack_exchange,
    pack_other,
)
from osbench.common.values.outcomes import Outcome

T0 = 10**12
PLAIN = row_of(1, 1, T0 + 1, T0 + 2, T0 + 9, 0, 0, (), None)
#: An action within an action, and a failed one.
NESTED = [0, -1, T0 + 2, T0 + 8, 0, 1, 0, T0 + 3, T0 + 7, 1]
#: In the inner action, over a new connection without TLS; then one of another client.
REQUESTS = pack_exchange(1, OWN, 5, 7, 0, 2_500_000, 100, 120, 4096, 200) + pack_other(-1, 0)
FULL = row_of(2, 2, T0, T0 + 2, T0 + 9, 4, 3, NESTED, (b"t" * 16, [b"out", b"put"], REQUESTS))


def encoded(**changes) -> dict:
    columns = encode_rows([PLAIN, FULL], ["outer", "inner"], T0)
    columns.update(changes)
    return columns


#: Rows by what a golden file says of them.
CASES = {
    "empty": [],
    "plain": [PLAIN],
    "plain of more rows than are turned at once": [
        changed_row(PLAIN, iteration=n) for n in range(1, 1_101)
    ],
    "idle and failed": [PLAIN, row_of(2, 2, T0, T0 + 2, T0 + 9, 4, 3, (), None)],
    "actions": [PLAIN, row_of(*FULL[:8], None)],
    "trace id": [PLAIN, row_of(*FULL[:7], (), (b"t" * 16, None, b""))],
    "outputs": [PLAIN, row_of(*FULL[:7], (), (b"", [b"out", b"put"], b""))],
    "requests": [PLAIN, row_of(*FULL[:7], (), (b"", None, REQUESTS))],
    "everything": [PLAIN, FULL],
}


def test_blocks_are_the_same_bytes(golden: Callable[[str, str], None]) -> None:
    text = "".join(
        f"{name}\n{wire_text(encode_rows(rows, ['outer', 'inner'], T0))}"
        for name, rows in CASES.items()
    )

    golden("blocks.txt", text)


def test_columns_have_the_fields_and_places_that_are_declared() -> None:
    fields = [
        one.name
        for one in dataclasses.fields(Columns)
        if one.default is one.default_factory is dataclasses.MISSING
    ]
    places = [*(one.place for one in COLUMNS), ACTIONS, EXTRA]

    assert fields == [one.name for one in COLUMNS]
    assert sorted(places) == list(range(len(get_args(Row))))
    # it bounds how many rows the others may be said to have
    assert not COLUMNS[0].sparse


def test_a_row_by_names_has_each_value_in_its_place() -> None:
    names = {one.name: one.place for one in COLUMNS} | {"actions": ACTIONS, "extra": EXTRA}

    found = row(**names)

    assert found == tuple(range(len(names)))
    assert changed_row(found, idle=70, outcome=30) == (0, 30, 2, 3, 4, 70, *found[6:])


@pytest.mark.parametrize("column", COLUMNS, ids=lambda one: one.name)
def test_a_column_is_encoded_joined_decoded_and_selected(column: Column) -> None:
    plain = row(iteration=1, outcome=1, due=0, started=0, ended=0)
    first, *others = [changed_row(plain, **{column.name: n}) for n in (1, 2, 3)]
    parts = [encode_rows([first], (), 0), encode_rows(others, (), 0)]
    # of rows that have 0 it may be left out
    parts.append(encode_rows([plain], (), 0))

    found = decode_rows(join_columns(parts))
    kept = select(found, np.array([False, True, False, True]))

    values = getattr(found, column.name)
    assert values.tolist() == [1, 2, 3, plain[column.place]]
    assert values.dtype == np.dtype(column.dtype)
    assert getattr(kept, column.name).tolist() == [2, plain[column.place]]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda one: one.name)
def test_a_number_that_does_not_fit_its_column_is_refused(column: Column) -> None:
    plain = row(iteration=1, outcome=1, due=0, started=0, ended=0)

    with pytest.raises(OverflowError, match="times of an iteration must fit 64 bits, in ns"):
        encode_rows([changed_row(plain, **{column.name: 2**64})], (), 0)


@pytest.mark.parametrize(
    "column", [one for one in COLUMNS if one.outside], ids=lambda one: one.name
)
def test_a_number_out_of_bounds_is_refused(column: Column) -> None:
    assert column.low is not None
    assert column.high is not None
    plain = row(iteration=1, outcome=1, due=0, started=0, ended=0)
    least, most, *beyond = [
        encode_rows([changed_row(plain, **{column.name: number})], (), 0)
        for number in (column.low, column.high, column.low - 1, column.high + 1)
    ]

    assert len(decode_rows(least)) == len(decode_rows(most)) == 1
    for columns in beyond:
        with pytest.raises(Untrusted, match=column.outside):
            decode_rows(columns)


def test_instants_are_offsets_from_the_start_of_the_load():
    found = decode_rows(encoded())

    assert len(found) == 2
    assert found.iteration.tolist() == [1, 2]
    assert found.outcome.tolist() == [1, 2]
    assert found.due.tolist() == [1, 0]
    assert found.started.tolist() == [2, 2]
    assert found.ended.tolist() == [9, 9]
    assert found.idle.tolist() == [0, 4]
    assert found.failure.tolist() == [0, 3]


def test_actions_keep_their_row_name_place_and_outcome():
    found = decode_rows(encoded())

    assert found.names == ("outer", "inner")
    assert found.actions.tolist() == [[1, 0, -1, 2, 8, 0], [1, 1, 0, 3, 7, 1]]


def test_traces_and_outputs_are_found_by_iteration():
    found = decode_rows(encoded())

    assert found.traced.tolist() == [2]
    assert found.traces.tobytes() == b"t" * 16
    assert found.outputs == ((2, (b"out", b"put")),)


def test_requests_keep_their_row_action_client_phases_and_bytes():
    found = decode_rows(encoded())

    own, other = found.exchanges
    assert found.exchanged.tolist() == [1, 1]
    assert [own[phase] for phase in PHASES] == [5, 7, 0, 2_500_000, 100]
    assert (own["action"], own["client"], own["sent"], own["received"]) == (1, -1, 120, 4096)
    assert (other["action"], found.names[other["client"]]) == (-1, "outer")


def test_blocks_of_workers_that_say_nothing_of_requests_are_read():
    columns = encoded()
    del columns["requests"], columns["exchanges"]

    found = decode_rows(columns)

    assert (len(found), len(found.exchanges), len(found.exchanged)) == (2, 0, 0)


def test_columns_of_zeros_are_not_sent():
    columns = encode_rows([PLAIN], ["unused"], T0)
    found = decode_rows(columns)

    assert set(columns) == {"rows", "t0", "iteration", "outcome", "due", "started", "ended"}
    assert found.idle.tolist() == found.failure.tolist() == [0]
    assert found.actions.shape == (0, 6)
    assert (found.names, found.outputs, found.traces.shape) == ((), (), (0, 16))


def test_rows_without_trace_may_have_outputs_and_the_other_way_round():
    rows = [
        row_of(1, *PLAIN[1:8], (b"", [b"x"], b"")),
        row_of(2, *PLAIN[1:8], (b"t" * 16, None, b"")),
    ]

    found = decode_rows(encode_rows(rows, (), T0))

    assert found.traced.tolist() == [2]
    assert found.outputs == ((1, (b"x",)),)


def test_an_iteration_may_have_very_many_actions():
    many = [0, -1, T0, T0, 0] * 70_000

    found = decode_rows(encode_rows([row_of(*PLAIN[:7], many, None), PLAIN], ["a"], T0))

    assert len(found.actions) == 70_000
    assert not found.actions[:, 0].any()


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": 3},
        {"rows": -1},
        {"rows": "many"},
        {"t0": 10**30},
        {"t0": None},
        {"iteration": b"\0" * 15},
        {"iteration": "text"},
        {"iteration": None},
        {"outcome": bytes([1, 0])},
        {"outcome": bytes([1, max(Outcome) + 1])},
        {"failure": b"\0" * 4},
        {"idle": b""},
        {"lengths": b"\0" * 8},
        {"actions": b"\0" * 40},
        {"actions": b"\0" * 8},
        {"exchanges": REQUESTS[:-1]},
        {"exchanges": REQUESTS[:EXCHANGE_BYTES]},
        {"exchanges": None},
        {"exchanges": pack_exchange(0, OWN, *[1] * 7, 1000) + pack_other(-1, 0)},
        {"exchanges": pack_exchange(0, OWN, *[1] * 7, -1) + pack_other(-1, 0)},
        {"requests": bytes([2, 0, 0, 0] + [0] * 4)},
        {"requests": bytes(4)},
        {"requests": b"\xff" * 8},
        *(
            {"exchanges": pack_exchange(*fields, 200) + pack_other(-1, 0)}
            for fields in (
                (2, OWN, *[1] * 5, 1, 1),
                (-2, OWN, *[1] * 5, 1, 1),
                (0, 2, *[1] * 5, 1, 1),
                (0, -7, *[1] * 5, 1, 1),
                (0, OWN, math.nan, *[1] * 4, 1, 1),
                (0, OWN, 1, math.inf, *[1] * 3, 1, 1),
                (0, OWN, 1, 1, -2, 1, 1, 1, 1),
                (0, OWN, 1, 1, 1, -0.5, 1, 1, 1),
                (0, OWN, 1, 1, 1, 1, 1e17, 1, 1),
                (0, OWN, *[1] * 5, -1, 1),
                (0, OWN, *[1] * 5, 1, 2**42),
            )
        ),
        {"names": ["outer"]},
        {"names": None},
        {"traces": b"t" * 15},
        {"traces": b"t" * 32},
        {"outputs": [[1]]},
        {"outputs": 7},
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(changes):
    with pytest.raises(Untrusted, match="malformed result block"):
        decode_rows(encoded(**changes))


@pytest.mark.parametrize("name", ["rows", "t0", "iteration", "outcome", "lengths", "names"])
def test_a_missing_column_is_refused(name):
    columns = encoded()
    del columns[name]

    with pytest.raises(Untrusted):
        decode_rows(columns)


def test_something_else_than_columns_is_refused():
    with pytest.raises(Untrusted):
        decode_rows([1, 2])


def test_no_rows_have_no_columns():
    empty = {"rows": 0, "t0": 0, **dict.fromkeys(["iteration", "due", "started", "ended"], b"")}

    found = decode_rows({**empty, "outcome": b""})

    assert len(found) == 0
    assert found.iteration.dtype == np.int64
