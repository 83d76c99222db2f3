"""Alarms of RabbitMQ on a connection: read with their reason, raised in place of a wait."""

from __future__ import annotations

import pytest
from amqp import spec
from amqp.exceptions import Blocked

from osbench.common.protocol import broker
from osbench.common.protocol.amqp_connection import ANSWER_S, AmqpConnection

REASON = b"low on memory"
#: As on the wire: class, method, and the reason as a short string.
BLOCKED = bytes([0, 10, 0, 60, len(REASON)]) + REASON
UNBLOCKED = bytes([0, 10, 0, 61])


class Wire(AmqpConnection):
    """A connection on which these methods come, and then nothing."""

    def __init__(self, *methods: bytes) -> None:
        super().__init__(host="127.0.0.1:1")
        self.methods = list(methods)
        self.waits: list[float] = []

    def blocking_read(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waits.append(timeout)
        if not self.methods:
            raise TimeoutError
        payload = self.methods.pop(0)
        self.dispatch_method((payload[1], payload[3]), payload, None)
        return True


def test_an_alarm_is_raised_with_its_reason_and_again_while_it_lasts() -> None:
    wire = Wire(BLOCKED)

    for _ in range(2):
        with pytest.raises(Blocked, match="alarm: low on memory"):
            wire.drain_events()

    assert wire.alarm == "low on memory"


def test_the_end_of_an_alarm_is_heard() -> None:
    wire = Wire(BLOCKED, UNBLOCKED)
    with pytest.raises(Blocked):
        wire.drain_events()

    wire.drain_events(timeout=0.1)

    assert wire.alarm == ""


def test_a_wait_without_a_bound_gets_one() -> None:
    wire = Wire()

    with pytest.raises(TimeoutError):
        wire.wait(spec.Channel.CloseOk)

    assert wire.waits == [ANSWER_S]


@pytest.mark.parametrize(("scheme", "port"), [("amqp", 5672), ("amqps", 5671)])
def test_both_schemes_have_such_connections_and_their_own_port(scheme: str, port: int) -> None:
    app = broker.application(f"{scheme}://guest:x@127.0.0.1//")

    connection = app.connection_for_write()

    assert connection.transport.Connection is AmqpConnection
    assert connection.transport.default_connection_params["port"] == port
    assert connection.as_uri().startswith(f"{scheme}://")
