"""Celery on both sides: one application, one queue per worker process, msgpack only."""

from __future__ import annotations

import ssl
import warnings
from typing import Any
from urllib.parse import parse_qs, urlsplit

from amqp.exceptions import AccessRefused, Blocked, NotAllowed
from celery import Celery
from celery.loaders.app import AppLoader
from kombu import Connection, Exchange, Producer, Queue, compression
from kombu.exceptions import OperationalError
from kombu.transport import TRANSPORT_ALIASES
from kombu.transport.redis import Channel as KombuChannel

from osbench.common.config.certificates import shown_url, taken_from
from osbench.common.errors import StoreError, StoreMissing
from osbench.common.ports import chance as secrets
from osbench.common.protocol import amqp_connection, redis_keys
from osbench.common.protocol.kept_addresses import KeptConnection, KeptSSLConnection
from osbench.common.protocol.redis_client import certificate_remedy

#: Name of the only task, which takes a signed batch.
TASK = "osbench.batch"

#: What is raised where the user of RabbitMQ lacks a right.
REFUSED = (AccessRefused, NotAllowed)
_RIGHTS_PAGE = "docs/operations.md#rabbitmq"

#: Seconds after which RabbitMQ drops an unread message, and a queue without consumer.
QUEUE_TTL_S = 60


class _Loader(AppLoader):  # type: ignore[misc]  # Celery has no hints
    """Reads no configuration: Celery's own one imports the module of CELERY_CONFIG_MODULE."""

    def read_configuration(self, env: str = "") -> dict[str, Any]:
        return {}


class _Application(Celery):  # type: ignore[misc]  # as above
    """An application whose broker is the given one, whatever CELERY_BROKER_URL and others name."""

    # one of CELERY_RESULT_BACKEND would come before a setting
    backend_cls = "disabled"

    def __init__(self, broker_url: str) -> None:
        self._broker_url = broker_url
        # given here, it comes before CELERY_LOADER
        super().__init__("osbench", loader=_Loader, set_as_current=False, fixups=[])

    def connection_for_read(self, url: str | None = None, **options: Any) -> Connection:
        return super().connection_for_read(url or self._broker_url, **options)

    def connection_for_write(self, url: str | None = None, **options: Any) -> Connection:
        return super().connection_for_write(url or self._broker_url, **options)


def application(broker_url: str) -> Celery:
    """Return the Celery application for `broker_url`: it only delivers, without results or events.

    Connects to nothing, and reads no environment variables of Celery. Changes kombu for the whole
    process: Redis connections cache addresses, AMQP connections limit waits, compressed messages
    are refused.
    """
    # kombu has no option for it
    KombuChannel.connection_class = KeptConnection
    KombuChannel.connection_class_ssl = KeptSSLConnection
    # a transport given by its path would be the scheme in messages
    TRANSPORT_ALIASES.update(amqp_connection.TRANSPORTS)
    # messages here are never compressed: a small message could become gigabytes
    for kind in ("application/x-gzip", "application/x-bz2", "application/x-lzma"):
        compression.register(_refuse_compressed, _refuse_compressed, kind)
    app = _Application(_for_celery(broker_url))
    app.conf.update(
        task_serializer="msgpack",
        accept_content=["msgpack"],
        task_ignore_result=True,
        task_create_missing_queues=False,
        task_queues=(),
        worker_send_task_events=False,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options=_transport_options(broker_url),
    )
    if broker_url.startswith("rediss://"):
        # kombu would take any certificate, unless the address says otherwise
        app.conf.broker_use_ssl = {"ssl_cert_reqs": ssl.CERT_REQUIRED}
    elif broker_url.startswith("amqps://"):
        # neither would py-amqp look at it
        _, files = taken_from(broker_url)
        app.conf.broker_use_ssl = {
            "cert_reqs": ssl.CERT_REQUIRED,
            "server_hostname": urlsplit(broker_url).hostname,
            **{name.removeprefix("ssl_"): value for name, value in files.items()},
        }
    return app


def _for_celery(url: str) -> str:
    """`unix://PATH?db=N` becomes `redis+socket://`; of `amqps://` TLS parameters are removed."""
    parts = urlsplit(url)
    if parts.scheme == "amqps":
        # these are not its names of them
        return taken_from(url)[0]
    if parts.scheme != "unix":
        return url
    (database,) = parse_qs(parts.query).get("db", ["0"])[-1:]
    return f"redis+socket://{parts.netloc}{parts.path}?virtual_host={database}"


def sending_application(broker_url: str) -> Celery:
    """Return the Celery application of a coordinator, with imports done that a first message needs.

    Celery would import them when it sends the first batch, in the time between the decision on t0
    and t0.
    """
    app = application(broker_url)
    # made when it is asked for
    assert app.amqp.send_task_message
    return app


def _refuse_compressed(_: object) -> Any:
    raise ValueError("a compressed message")


def _transport_options(broker_url: str) -> dict[str, Any]:
    if not broker_url.startswith(("redis", "rediss", "unix")):
        return {"confirm_publish": True}
    return {
        "global_keyprefix": redis_keys.PREFIX,
        # the default of four steps renews the expiry of, and waits on, four lists per queue
        "priority_steps": [0],
        # batches are sent again by the coordinator: a list of the batches in delivery is of no use,
        # and anyone who writes to Redis could stop every consumer with an entry of it
        "ack_emulation": False,
        "socket_timeout": 10.0,
        "socket_connect_timeout": 5.0,
        "health_check_interval": 5,
    }


def check(broker_url: str, timeout_s: float, receiver: str = "") -> None:
    """Raise StoreMissing if the broker is unreachable or blocked, StoreError if it refuses access.

    `timeout_s` limits each connection attempt. On RabbitMQ it also tries rights: with `receiver`, a
    worker process's incarnation, to declare and read its queue; with "" to send to a queue that is
    declared for it, and deleted. StoreError also for a certificate that fails.
    """
    connection = application(broker_url).connection_for_write(connect_timeout=timeout_s)
    try:
        open_connection(connection, timeout_s)
        if connection.transport.driver_type == "amqp":
            _try_rights(connection, timeout_s, receiver)
    except REFUSED as error:
        raise StoreError(refusal(error)) from None
    except Blocked as error:
        raise StoreMissing(
            f"the broker at {shown_url(broker_url)} takes no messages ({error}): give it more "
            "room, or have its queues read"
        ) from None
    except (
        OSError,
        OperationalError,
        *connection.connection_errors,
        *connection.channel_errors,
    ) as error:
        # a wrong password is known by its words alone
        refused = any(word in str(error) for word in ("ACCESS_REFUSED", "PRECONDITION"))
        remedy = certificate_remedy(str(error))
        kind = StoreError if refused or remedy else StoreMissing
        raise kind(
            f"cannot connect to the broker at {shown_url(broker_url)}: {error}; "
            + (remedy or "check [messaging] broker_url")
        ) from None
    finally:
        connection.collect()


def open_connection(connection: Connection, timeout_s: float) -> None:
    """Connect to the broker, with one retry, within about `timeout_s` seconds.

    Raises the errors of the transport if both attempts fail.
    """
    # without a limit Celery would retry for ever
    connection.ensure_connection(max_retries=1, interval_start=0, timeout=timeout_s)


def _try_rights(connection: Connection, timeout_s: float, receiver: str) -> None:
    channel = connection.channel()
    tried = queue(receiver or f"check.{secrets.token_hex(8)}")(channel)
    tried.declare()
    if receiver:
        tried.get()
        return
    Producer(channel).publish(
        b"", routing_key=tried.name, mandatory=True, confirm_timeout=timeout_s
    )
    tried.delete()


def refusal(error: Exception) -> str:
    """Return a message about a right that RabbitMQ refuses, naming the page of needed rights."""
    return f"the broker refuses a right ({error}): give its user the rights of {_RIGHTS_PAGE}"


def queue(incarnation: str) -> Queue:
    """Return the Celery queue of the worker process `incarnation`; nothing is sent to the broker.

    Messages expire after `QUEUE_TTL_S`, as does the queue without a consumer; none are
    acknowledged.
    """
    with warnings.catch_warnings():
        return Queue(
            redis_keys.queue(incarnation),
            Exchange(""),
            routing_key=redis_keys.queue(incarnation),
            durable=False,
            # a batch that no heartbeat confirms is sent again: the broker has no part in it
            no_ack=True,
            expires=QUEUE_TTL_S,
            message_ttl=QUEUE_TTL_S,
        )
