"""AMQP connections that limit every wait and notice alarms of the broker.

RabbitMQ stops reading from publishers while it is short of memory or disk: it announces
`connection.blocked` with the reason, and replies to no method until it is over
(https://www.rabbitmq.com/docs/connection-blocked). py-amqp would wait for those replies for ever.
"""

from __future__ import annotations

from typing import Any

from amqp import spec
from amqp.exceptions import Blocked
from kombu.transport import pyamqp

#: Longest wait for a reply of the broker, and for it to read data, seconds.
ANSWER_S = 5.0
#: The transports of this module by the schemes of URLs, as kombu names them.
TRANSPORTS = {"amqp": f"{__name__}:AmqpTransport", "amqps": f"{__name__}:AmqpsTransport"}

_BLOCKED = spec.Connection.Blocked


class AmqpConnection(pyamqp.Connection):  # type: ignore[misc]  # kombu has no types
    """A connection to RabbitMQ that raises `Blocked` during an alarm, instead of waiting.

    Alarm: the broker lacks memory or disk and reads nothing.
    """

    # py-amqp does not read the reason
    _METHODS = {**pyamqp.Connection._METHODS, _BLOCKED: spec.method(_BLOCKED, "s")}  # noqa: RUF012
    #: Why the broker reads nothing; "" while it does.
    alarm = ""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            **{"write_timeout": ANSWER_S, **options},
            on_unblocked=self._end_alarm,
        )

    def _on_blocked(self, reason: str) -> None:
        self.alarm = reason

    def _end_alarm(self) -> None:
        self.alarm = ""

    def drain_events(self, timeout: float | None = None) -> None:
        """Read and process methods of the broker, waiting at most `timeout` s (None: `ANSWER_S`).

        Raises TimeoutError if nothing came, amqp's Blocked if an alarm lasts, whether something
        came or not.
        """
        try:
            super().drain_events(ANSWER_S if timeout is None else timeout)
        except TimeoutError:
            if not self.alarm:
                raise
        if self.alarm:
            raise Blocked(f"alarm: {self.alarm}")


class AmqpTransport(pyamqp.Transport):  # type: ignore[misc]  # see above
    """kombu's transport for AMQP with connections of this module."""

    Connection = AmqpConnection


class AmqpsTransport(pyamqp.SSLTransport):  # type: ignore[misc]  # see above
    """kombu's transport for AMQP over TLS with connections of this module."""

    Connection = AmqpConnection
