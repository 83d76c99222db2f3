"""Sends batches to the queues of workers by Celery, over one connection."""

from __future__ import annotations

from collections.abc import Iterable

import kombu.exceptions
from amqp.exceptions import AMQPError, Blocked
from celery import Celery
from kombu import Connection, Producer

from osbench.common.config.certificates import shown_url
from osbench.common.errors import BrokerAway, StoreError, StoreUnreachable
from osbench.common.protocol import broker
from osbench.common.protocol.amqp_connection import ANSWER_S
from osbench.common.protocol.redis_client import Client, server_name

#: Exceptions if the broker does not accept a message.
_AWAY = (kombu.exceptions.OperationalError, kombu.exceptions.BatchPublishError, AMQPError, OSError)


class _Sent:
    """Celery's result of a send, without the result backend that its own class would import."""

    def __init__(self, task_id: str) -> None: ...


class Publisher:
    """Sends signed batches to the queues of one broker; connects at the first send.

    A send raises after a few seconds if the broker does not respond.
    """

    def __init__(self, app: Celery, client: Client, other: str) -> None:
        """Prepare sending by `app`; nothing connects yet.

        `client`: the run's Redis. `other`: address of a separate broker, "" if Redis is the broker.
        """
        self._app = app
        self._kind = BrokerAway if other else StoreUnreachable
        self._server = f"the broker at {shown_url(other)}" if other else server_name(client)
        self._producer: Producer | None = None
        self._connection: Connection | None = None

    def send(self, messages: Iterable[tuple[str, bytes]]) -> None:
        """Send signed batches, each to the queue of an incarnation (the name of a worker process).

        Raises StoreUnreachable if some may not have been sent, BrokerAway for a separate broker.
        Raises StoreError if the broker denies permission. After an error the connection is closed,
        unless the broker only blocks senders.
        """
        try:
            producer = self._connected()
            with producer.batch():
                for incarnation, data in messages:
                    self._send(producer, incarnation, data)
        except broker.REFUSED as error:
            self.close()
            raise StoreError(broker.refusal(error)) from None
        except Blocked as error:
            # the connection stays: it will hear of the end of the alarm
            raise self._away(error) from None
        except _AWAY as error:
            self.close()
            raise self._away(error.__cause__ or error) from None

    def close(self) -> None:
        """Close the connection without notifying the broker, which may not respond."""
        if self._connection is not None:
            self._connection.collect()
        self._connection = self._producer = None

    def _away(self, error: BaseException) -> StoreUnreachable:
        why = str(error) or type(error).__name__
        return self._kind(f"{self._server} does not take messages: {why}", server=self._server)

    def _connected(self) -> Producer:
        if self._producer is None:
            self._connection = self._app.connection_for_write(connect_timeout=ANSWER_S)
            broker.open_connection(self._connection, ANSWER_S)
            self._producer = self._app.amqp.Producer(self._connection)
        return self._producer

    def _send(self, producer: Producer, incarnation: str, data: bytes) -> None:
        self._app.send_task(
            broker.TASK,
            args=(data,),
            queue=broker.queue(incarnation),
            producer=producer,
            retry=False,
            ignore_result=True,
            result_cls=_Sent,
            mandatory=True,
            confirm_timeout=ANSWER_S,
            # Celery would put the whole batch into a header, in clear, once more
            argsrepr="(batch)",
        )
