"""Whatever comes in place of a message: one documented error, within bounds of memory."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.examples import examples
from helpers.hostile import ODD, bounded, changed, damaged, refuses
from helpers.result_rows import row_of
from osbench.common.errors import Untrusted
from osbench.common.protocol import data_rows
from osbench.common.protocol.columns import decode_rows, encode_rows
from osbench.common.protocol.envelope import SIZE, Signer, Vault, size_of
from osbench.common.protocol.exchanges import OWN, pack_exchange, pack_other
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.message_fields import checked_fields
from osbench.common.protocol.messages import (
    Batch,
    Block,
    Control,
    Heartbeat,
    Message,
    Offer,
    Will,
)
from osbench.common.protocol.unpacking import CONTAINERS, DEPTH, unpack
from osbench.common.values.intervals import Intervals
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.merging import groups, join
from osbench.coordinator.results.accounting.workload_results import WorkloadResults
from osbench.edges.rally.adapters.records import records

RING = Keyring.generate()
SIGNER = Signer(RING)
VAULT = Vault(RING)

OUTPUT = msgpack.packb(
    {"kind": "additive", "item": {"title": "t", "chart_plugin": "Pie", "data": [["a", 1]]}}
)
REQUEST = pack_exchange(1, OWN, 5, 6, 0, 7, 8, 100, 200, 404)
ROWS: list[Any] = [
    row_of(
        1,
        1,
        0,
        10,
        20,
        0,
        0,
        [0, -1, 11, 19, 0, 1, 0, 12, 13, 1],
        (bytes(range(16)), [OUTPUT], REQUEST),
    ),
    row_of(2, 2, 0, 11, 25, 3, 1, [], None),
    row_of(3, 3, 0, 11, 25, 0, 0, [0, -1, 11, 0, 0], (bytes(16), None, pack_other(0, 0))),
    row_of(4, 4, 0, 0, 0, 0, 0, [], None),
]
BLOCK = Block(
    run="r",
    incarnation="1-a",
    membership="m",
    number=1,
    workload=0,
    columns=encode_rows(ROWS, ["outer", "inner"], 5),
    returned=[(5, 7), (9, 10)],
    voids=[3],
    failures=[[1, "ValueError", "wrong", "Traceback"]],
)
MESSAGES: list[Message] = [
    BLOCK,
    Batch(run="r", incarnation="1-a", session="s", workload=0, seq=1, intervals=[(1, 4)]),
    Control(
        run="r",
        epoch=1,
        incarnation="1-a",
        session="s",
        membership="m",
        version=1,
        t0_at=1.5,
        have=[3],
        recall=[2],
    ),
    Heartbeat(
        incarnation="1-a",
        beat=1,
        host="h",
        pid=1,
        label="",
        version="1",
        capacity=4,
        coroutines=1000,
        state="idle",
        refusals={"session": 1},
    ),
    Offer(
        run="r",
        epoch=1,
        incarnation="1-a",
        challenge="c",
        session="s",
        membership="m",
    ),
    Will(run="r", incarnation="1-a", membership="m", workload=0, seq=1, number=2),
]
SIGNED = [(one, SIGNER.sign(one.KIND, one.body())) for one in MESSAGES]


def opened(kind: type[Message], data: bytes) -> Message:
    body = SIGNER.verify(kind.KIND, data)
    return kind.parse(checked_fields(kind, kind.KIND, body))


def counted(blocks: list[Block]) -> None:
    """What the coordinator, its criteria and its exports do with blocks."""
    book = WorkloadResults(idempotent=False, sla=SlaEvaluator((), None))
    book.ledger.cut(BLOCK.incarnation, 1, Intervals([(1, 20)]))
    for group in groups(blocks):
        book.add(join(group))
        columns = decode_rows(join(group).columns) if group[-1].columns else None
        if columns is not None:
            list(records(columns, {}, 0.0))
    book.charts.to_dict()


@pytest.mark.parametrize(("message", "signed"), SIGNED, ids=lambda one: getattr(one, "KIND", ""))
@given(st.data())
def test_a_damaged_message_is_refused(message, signed, data):
    found = data.draw(damaged(signed))

    if found != signed:
        assert refuses(partial(opened, type(message), found), Untrusted)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: one.KIND)
@given(st.data())
def test_what_is_signed_with_the_key_has_the_declared_types_or_is_refused(message, data):
    body = data.draw(changed(message.body()))
    refused = refuses(
        lambda: opened(type(message), SIGNER.sign(message.KIND, body)), Untrusted, OverflowError
    )

    if not refused:
        assert set(body) <= {field.name for field in dataclasses.fields(message)}


@settings(max_examples=examples(300))
@given(changed(BLOCK.body()))
def test_a_block_with_other_values_is_counted_or_refused(body):
    def add() -> None:
        one = opened(Block, SIGNER.sign("block", body))
        counted([one])
        counted([BLOCK, one, one])

    with bounded(64 << 20):
        refuses(add, Untrusted)


@settings(max_examples=examples(200))
@given(changed(encode_rows(ROWS, ["outer", "inner"], 5)))
def test_columns_with_other_values_are_decoded_or_refused(columns):
    with bounded():
        refuses(lambda: decode_rows(columns), Untrusted)


@settings(max_examples=examples(300))
@given(st.sampled_from(sorted(encode_rows(ROWS, ["outer", "inner"], 5))), st.data())
def test_damaged_columns_are_counted_or_refused(name, data):
    columns = encode_rows(ROWS, ["outer", "inner"], 5)
    if isinstance(columns[name], bytes):
        size = len(columns[name])
        columns[name] = data.draw(damaged(columns[name]).map(lambda one: one.ljust(size)[:size]))
    else:
        columns[name] = data.draw(st.sampled_from(ODD))

    with bounded(64 << 20):
        refuses(lambda: counted([dataclasses.replace(BLOCK, columns=columns)]), Untrusted)


@pytest.mark.parametrize(
    "columns",
    [
        {"rows": 2**40, "t0": 0, "iteration": b"", "outcome": b""},
        {"rows": -1, "t0": 0, "iteration": b""},
        {
            **encode_rows(ROWS, ["outer", "inner"], 5),
            "lengths": b"\xff\xff\xff\xff" * len(ROWS),
        },
        {
            **encode_rows(ROWS, ["outer", "inner"], 5),
            "lengths": b"\xff\xff\xff\x7f" + bytes(4 * len(ROWS) - 4),
        },
    ],
)
def test_a_column_that_is_left_out_takes_no_memory(columns):
    with bounded(1 << 20), pytest.raises(Untrusted):
        decode_rows(columns)


def test_actions_inside_each_other_without_end_take_bounded_memory():
    depth = 5_000
    steps = [x for at in range(depth) for x in (0, at - 1, 10 + at, 20_000, 0)]
    columns = encode_rows([row_of(1, 1, 0, 10, 20_000, 0, 0, steps, None)], ["n" * 400], 5)

    with bounded():
        counted([dataclasses.replace(BLOCK, columns=columns)])


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xdd\x00\xff\xff\xff" * 200_000, id="lists that announce millions"),
        pytest.param(b"\xdf\x7f\xff\xff\xff" * 200_000, id="maps that announce billions"),
        pytest.param(b"\x91" * 1_000_000, id="lists in lists"),
        pytest.param(b"\xc6\xff\xff\xff\xff", id="4 GiB of bytes"),
        pytest.param(b"\xc9\xff\xff\xff\xff\x01", id="4 GiB of an extension"),
        pytest.param(b"\xdd\x00\x3f\xff\xff" + b"\x80" * 0x3FFFFF, id="millions of maps"),
    ],
)
def test_bytes_that_announce_much_take_little_memory(data):
    with bounded(100 << 20):
        with pytest.raises(Untrusted):
            SIGNER.verify("block", data)
        with pytest.raises(ValueError, match=r".+"):
            unpack(data)


def test_depth_and_number_of_lists_are_bounded():
    with pytest.raises(ValueError, match="deep"):
        unpack(b"\x91" * (DEPTH + 1) + b"\x01")
    with pytest.raises(ValueError, match=r".+"):
        unpack(msgpack.packb([[]] * 11), containers=10)
    assert unpack(b"\x91" * DEPTH + b"\x01")
    assert CONTAINERS > 100_000


@pytest.mark.parametrize("kind", ["heartbeat", "control", "block"])
def test_a_message_that_is_too_large_is_refused_before_it_is_looked_at(kind):
    with pytest.raises(Untrusted, match="too large"):
        SIGNER.verify(kind, bytes(size_of(kind) + 1))


def test_what_would_be_refused_for_its_size_is_not_sent():
    with pytest.raises(Exception, match="at most 1,048,576 are sent"):
        SIGNER.sign("control", {"a": bytes(SIZE)})


def test_kinds_and_key_ids_are_escaped_in_errors():
    evil = "\x1b]0;x\x07"
    signed = msgpack.packb([1, evil, b"\x1b[3m", b"", b""])

    with pytest.raises(Untrusted) as other:
        SIGNER.verify("batch", signed)
    with pytest.raises(Untrusted) as unknown:
        SIGNER.verify(evil, signed)

    for found in (other, unknown):
        assert str(found.value).isprintable()
    assert r"\x1b]0;x\x07" in str(other.value)
    assert "1b5b336d" in str(unknown.value)


@given(damaged(VAULT.encrypt({"password": "x" * 30})))
def test_a_damaged_encrypted_record_is_refused(token):
    refuses(lambda: VAULT.decrypt(token), Untrusted)


KEY = b"a" * 43 + b"="


@given(damaged(data_rows.encrypt(b"1,2\n3,4\n", KEY)))
def test_damaged_rows_are_refused(token):
    refuses(lambda: data_rows.decrypt(token, KEY), Untrusted)
