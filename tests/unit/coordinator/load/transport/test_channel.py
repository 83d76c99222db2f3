"""Messages of the channel name the server that was asked, with its address and no password."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from helpers.engines import batch
from helpers.local_redis import LocalStore
from osbench.common.errors import BrokerAway, StoreUnreachable
from osbench.common.protocol import broker
from osbench.common.protocol.envelope import Signer, Vault
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.redis_client import connect, translating_errors
from osbench.coordinator.load.transport.channel import Channel
from osbench.coordinator.load.transport.publisher import Publisher
from servers import free_port


def channel(redis_url: str, broker_url: str = "") -> Channel:
    keyring = Keyring.generate()
    store: Any = LocalStore()
    client = connect(redis_url, 1.0)
    return Channel(
        store=store,
        client=client,
        signer=Signer(keyring),
        vault=Vault(keyring),
        publisher=lambda: Publisher(
            broker.application(broker_url or redis_url), client, broker_url
        ),
        run_id="r",
    )


def test_a_dead_broker_is_not_called_redis() -> None:
    address = f"127.0.0.1:{free_port()}"
    made = channel("redis://127.0.0.1:6379/0", f"amqp://osb:hunter2@{address}//")

    with pytest.raises(BrokerAway) as raised:
        made.publish([batch((1, 2))])

    assert f"@{address}" in raised.value.server
    assert raised.value.server.startswith("the broker at amqp://")
    assert str(raised.value).startswith(f"{raised.value.server} does not take messages: ")
    assert "Redis" not in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert made.broker_away_s > 0


def test_a_redis_that_is_the_broker_is_named_as_the_redis_that_it_is() -> None:
    url = f"redis://:hunter2@127.0.0.1:{free_port()}/3"
    made = channel(url)

    with pytest.raises(StoreUnreachable) as sent:
        made.publish([batch((1, 2))])
    with pytest.raises(StoreUnreachable) as asked, translating_errors(connect(url, 1.0)):
        connect(url, 1.0).ping()

    assert not isinstance(sent.value, BrokerAway)
    place = url.replace(":hunter2@", "")
    for error in (sent.value, asked.value):
        assert error.server == f"Redis at {place}"
        assert "hunter2" not in str(error)


def test_data_is_lost_if_a_counter_in_redis_does_not_grow() -> None:
    made = channel("redis://127.0.0.1:6379/0")
    turns = iter([1, 2, 2, 1, 2])
    made._store = SimpleNamespace(tend=lambda: next(turns))

    lost = []
    for _ in range(5):
        made.tend()
        lost.append(made.rollbacks)

    assert lost == [0, 0, 1, 2, 2]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        ("rediss://u:pw@h:1/2", "rediss://h:1/2"),
        ("redis://[::1]:7/0", "redis://[::1]:7/0"),
    ],
)
def test_addresses_of_clients(url: str, shown: str) -> None:
    client = connect(url, 1.0)

    with (
        pytest.raises(StoreUnreachable, match="does not respond") as raised,
        translating_errors(client),
    ):
        raise ConnectionError("no")

    assert raised.value.server == f"Redis at {shown}"
