"""Celery's consumer in a worker process: batches from its queue, and log messages in one line.

Anyone who can write to the broker writes the headers of messages. Celery would obey them: start its
own tasks, wait for a time, send other messages when a task has ended. Here a message is its signed
batch, whatever else it holds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from celery.worker.consumer import Consumer
from kombu.exceptions import KombuError

from osbench.common.protocol.envelope import SIZES
from osbench.common.protocol.messages import Batch
from osbench.common.protocol.unpacking import unpack
from osbench.common.protocol.wire import wrong_type

LOG = logging.getLogger(__name__)

#: Most bytes of a message around its batch, and most lists and maps: arguments, keyword
#: arguments, and what Celery adds.
AROUND_BYTES = 4096
AROUND_CONTAINERS = 16
#: Between two tries to connect, seconds: at first, and at most. By default they come ever more
#: rarely, so that a worker would stand idle for up to 30 s after its broker is back.
RETRY_S = 1.0
RETRY_MOST_S = 3.0


def consumer_class(receive: Callable[[bytes], None]) -> type[Consumer]:
    """Return a consumer class for Celery that calls `receive` with each signed batch, not verified.

    For a message that cannot be decoded or has no batch it calls `receive` with b"". So it does if
    its queue holds something else than messages; then `start` also raises the error, and the
    consumer ends.
    """

    class BatchConsumer(Consumer):  # type: ignore[misc] # Celery has no types
        """Celery's consumer without its tasks: the thread that reads a message calls `receive`."""

        def start(self) -> None:
            """Consume until stopped; raise errors of the broker, and of the queue's content."""
            try:
                super().start()
            except Exception as error:
                of_broker = (*self.connection_errors, *self.channel_errors, KombuError)
                # who can write to the broker can put anything into the queue, or in its place
                if wrong_type(error) or not isinstance(error, of_broker):
                    LOG.warning("the queue of batches held something that is not a message")
                    receive(b"")
                raise

        def ensure_connected(self, conn: Any) -> Any:
            """Return the connection once the broker is reachable; tries every 1 to 3 seconds."""
            conn.ensure_connection = partial(
                conn.ensure_connection,
                interval_start=RETRY_S,
                interval_step=RETRY_S,
                interval_max=RETRY_MOST_S,
            )
            return super().ensure_connected(conn)

        def create_task_handler(self, *_: object) -> Callable[[Any], None]:
            """Return the function that handles a message: it calls `receive` with its batch."""
            return lambda message: receive(signed_batch(message))

        def on_decode_error(self, *_: object) -> None:
            """Call `receive` with b"" for a message that kombu cannot decode."""
            receive(b"")

    return BatchConsumer


def signed_batch(message: Any) -> bytes:
    """Return the signed batch of a message of `Channel.publish`; b"" if it holds none.

    The signature is not verified. A message that is too large or too nested holds none.
    """
    body = message.body
    if not isinstance(body, bytes) or len(body) > SIZES[Batch.KIND] + AROUND_BYTES:
        return b""
    try:
        match unpack(body, containers=AROUND_CONTAINERS):
            case [[bytes() as data], *_]:
                return data
    except ValueError:
        pass
    return b""


class CeleryInOneLine(logging.Filter):
    """Logging filter that shortens Celery's and kombu's records to one line, without traceback.

    A filter of handlers: filters of a logger do not see records of the loggers below it.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True for every record; remove the traceback of records of Celery and kombu."""
        if record.name.partition(".")[0] in ("celery", "kombu"):
            record.exc_info = record.exc_text = None
        return True
