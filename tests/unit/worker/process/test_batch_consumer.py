"""A message of the broker is its signed batch, or nothing; what Celery logs has no traceback."""

from __future__ import annotations

import io
import logging
import zlib
from types import SimpleNamespace

import msgpack
import pytest
from celery.worker.consumer import Consumer
from kombu.exceptions import OperationalError
from kombu.message import Message
from redis import ResponseError

from helpers.hostile import bounded
from osbench.common.protocol import broker
from osbench.worker.process.batch_consumer import CeleryInOneLine, consumer_class, signed_batch

SIGNED = b"signed"


def body(*values):
    return msgpack.packb(values)


def test_a_message_is_its_first_argument():
    ours = body([SIGNED], {}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None})

    assert signed_batch(SimpleNamespace(body=ours)) == SIGNED


@pytest.mark.parametrize(
    "data",
    [
        b"",
        None,
        "text",
        body(),
        body([]),
        body(["text"]),
        body([[SIGNED]]),
        body({"args": [SIGNED]}),
        msgpack.packb({"task": "celery.map", "args": [SIGNED]}),
        body([SIGNED])[:-1],
        body([SIGNED]) + b"\x00",
        body([SIGNED], [[]] * 100),
    ],
)
def test_what_is_no_message_of_ours_holds_nothing(data):
    assert signed_batch(SimpleNamespace(body=data)) == b""


def test_headers_have_no_effect_and_every_message_is_passed_on():
    taken = []
    cls = consumer_class(taken.append)
    take = cls.create_task_handler(SimpleNamespace())
    headers = {"task": "celery.group", "eta": "2099-01-01T00:00:00", "timelimit": [1, 1]}

    take(SimpleNamespace(body=body([SIGNED], {}, {"callbacks": ["x"]}), headers=headers))
    take(SimpleNamespace(body=b"\xc1", headers={}))
    cls.on_decode_error(SimpleNamespace(), object(), ValueError())

    assert taken == [SIGNED, b"", b""]


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (ValueError("no JSON"), [b""]),
        (ResponseError("WRONGTYPE Operation against a key"), [b""]),
        (ResponseError("OOM command not allowed"), []),
        (ConnectionRefusedError(), []),
        (OperationalError("away"), []),
    ],
)
def test_only_the_content_of_the_queue_counts_as_a_bad_message(monkeypatch, error, refused):
    taken = []
    cls = consumer_class(taken.append)
    consumer = cls.__new__(cls)
    consumer.connection_errors, consumer.channel_errors = (OSError,), (ResponseError,)

    def fail(_):
        raise error

    monkeypatch.setattr(Consumer, "start", fail)
    with pytest.raises(type(error)):
        consumer.start()

    assert taken == refused


@pytest.mark.parametrize("kind", ["application/x-gzip", "gzip", "zlib"])
def test_a_compressed_message_is_refused_and_not_unpacked(kind):
    broker.application("redis://127.0.0.1:1/0")
    small = zlib.compress(bytes(64 << 20), 9)

    with bounded(8 << 20):
        message = Message(body=small, headers={"compression": kind})

    assert message.errors
    assert message.body == small


def test_a_body_that_announces_more_than_it_holds_takes_little_memory():
    # every level announces room for a million values
    nested = (b"\xdd" + (1_000_000).to_bytes(4, "big")) * 100 + b"\xc0" * 1_000_000

    with bounded(8 << 20):
        assert signed_batch(SimpleNamespace(body=nested)) == b""


def test_a_broker_that_is_away_is_tried_every_three_seconds(monkeypatch):
    tries = []

    def retry(*given, **_):
        # after function, errors, arguments of both kinds, callback, number: start, step, most
        tries.append(given[6:9])

    monkeypatch.setattr("kombu.connection.retry_over_time", retry)
    app = broker.application("memory://")
    kind = consumer_class(lambda _: None)
    # without all that a worker process has besides
    consumer = kind.__new__(kind)
    consumer.app, consumer.first_connection_attempt = app, True
    consumer.broker_connection_retry_attempt = 0

    consumer.ensure_connected(app.connection_for_read())

    assert tries == [(1.0, 1.0, 3.0)]


@pytest.mark.parametrize(
    ("name", "lines"),
    [("celery.worker.request", 1), ("kombu.transport", 1), ("my.scenario", 5)],
)
def test_only_what_celery_logs_is_without_its_traceback(name: str, lines: int) -> None:
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    handler.addFilter(CeleryInOneLine())
    logger = logging.getLogger(name)
    logger.addHandler(handler)

    try:
        raise ConnectionError("the broker is away")
    except ConnectionError:
        logger.critical("Couldn't ack", exc_info=True)
    logger.removeHandler(handler)

    assert said.getvalue().count("\n") == lines
