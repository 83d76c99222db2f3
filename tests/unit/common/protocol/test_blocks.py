"""Result blocks: rows become columns and rows again; what does not fit is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from osbench.common.errors import Untrusted
from osbench.common.outcomes import Outcome
from osbench.common.protocol.blocks import decode_rows, encode_rows
from osbench.common.protocol.exchanges import (
    EXCHANGE_BYTES,
    OWN,
    PHASES,
    pack_exchange,
    pack_other,
)

T0 = 10**12
PLAIN = (1, 1, T0 + 1, T0 + 2, T0 + 9, 0, 0, (), None)
#: An action within an action, and a failed one.
NESTED = [0, -1, T0 + 2, T0 + 8, 0, 1, 0, T0 + 3, T0 + 7, 1]
#: In the inner action, over a new connection without TLS; then one of another client.
REQUESTS = pack_exchange(1, OWN, 5, 7, 0, 2_500_000, 100, 120, 4096, 200) + pack_other(-1, 0)
FULL = (2, 2, T0, T0 + 2, T0 + 9, 4, 3, NESTED, (b"t" * 16, [b"out", b"put"], REQUESTS))


def encoded(**changes) -> dict:
    columns = encode_rows([PLAIN, FULL], ["outer", "inner"], T0)
    columns.update(changes)
    return columns


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
    rows = [(1, *PLAIN[1:8], (b"", [b"x"], b"")), (2, *PLAIN[1:8], (b"t" * 16, None, b""))]

    found = decode_rows(encode_rows(rows, (), T0))

    assert found.traced.tolist() == [2]
    assert found.outputs == ((1, (b"x",)),)


def test_an_iteration_may_have_very_many_actions():
    many = [0, -1, T0, T0, 0] * 70_000

    found = decode_rows(encode_rows([(*PLAIN[:7], many, None), PLAIN], ["a"], T0))

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
                (0, -3, *[1] * 5, 1, 1),
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
