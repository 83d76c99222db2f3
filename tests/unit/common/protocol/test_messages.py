"""Messages survive the wire, and foreign shapes are refused."""

from __future__ import annotations

import dataclasses

import pytest

from osbench.common.errors import Untrusted
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import (
    Batch,
    Block,
    Control,
    Heartbeat,
    Offer,
    Specification,
    Will,
)

MESSAGES = [
    Batch(
        run="r",
        incarnation="w",
        session="s",
        workload=0,
        seq=7,
        intervals=[(1, 5)],
        dues=b"\0" * 8,
    ),
    Offer(run="r", epoch=2, incarnation="w", challenge="c", session="s", membership="m"),
    Control(
        run="r",
        epoch=2,
        incarnation="w",
        session="s",
        membership="m",
        version=3,
        t0_at=1.5,
        user_limit=2,
        stop_s=None,
    ),
    Heartbeat(
        incarnation="w",
        beat=1,
        host="h",
        pid=1,
        label="",
        version="1",
        capacity=8,
        coroutines=1000,
        state="idle",
        refusals={"session": 2, "seal": 1},
    ),
    Block(run="r", incarnation="w", membership="m", number=1, workload=0, columns={"rows": 1}),
    Will(run="r", incarnation="w", membership="m", workload=0, seq=7, number=3),
    Specification(
        run="r",
        workload=0,
        scenario="Dummy.dummy",
        args={"sleep": 0.1},
        timeout_s=0.0,
        open=False,
        max_concurrency=0,
        users_each=4,
        max_lag_s=1.0,
        context={},
        deployment={},
        source_hash="",
        sample_rate=1.0,
        ship_interval_s=0.2,
    ),
]


@pytest.fixture(scope="module")
def signer():
    return Signer(Keyring.generate())


def lists(value):
    """msgpack knows lists where we have tuples."""
    if isinstance(value, (list, tuple)):
        return [lists(part) for part in value]
    return value


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.KIND)
def test_a_message_comes_back_as_it_was(signer, message):
    data = signer.sign(message.KIND, message.body())

    found = type(message).parse(signer.verify(message.KIND, data))

    assert {k: lists(v) for k, v in found.body().items()} == {
        k: lists(v) for k, v in message.body().items()
    }


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.KIND)
def test_missing_and_unknown_fields_are_refused(message):
    body = message.body()

    with pytest.raises(Untrusted, match=f"malformed {message.KIND} message"):
        type(message).parse({**body, "colour": "blue"})
    del body[next(iter(body))]
    with pytest.raises(Untrusted, match=f"malformed {message.KIND} message"):
        type(message).parse(body)


def test_kinds_differ():
    assert len({message.KIND for message in MESSAGES}) == len(MESSAGES)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.KIND)
def test_messages_do_not_change(message):
    field = dataclasses.fields(message)[0].name

    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(message, field, "other")


def test_a_batch_has_the_length_of_its_numbers():
    batch = dataclasses.replace(MESSAGES[0], intervals=[(1, 5), (9, 10)])

    assert len(batch) == 5


def test_a_heartbeat_sums_what_was_refused_for_any_reason():
    (beat,) = (one for one in MESSAGES if isinstance(one, Heartbeat))

    assert beat.refused == 3
