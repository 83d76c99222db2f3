"""Someone who writes to the broker steers no worker by what Celery would do with a message."""

from __future__ import annotations

import base64
import contextlib
import json
import zlib
from collections.abc import Iterator
from typing import Any

import msgpack
import psutil
import pytest

from helpers.arena import Arena, arena, wait_until
from osbench.common.protocol import redis_keys

pytestmark = [pytest.mark.functional, pytest.mark.faults, pytest.mark.timeout(600)]

JUNK = b"junk"
SIGNATURE = {"task": "osbench.batch", "args": [JUNK], "kwargs": {}, "options": {"queue": "stolen"}}
CLOSED = {"constant": {"times": 200, "concurrency": 4}}
MIB = 1 << 20


@pytest.fixture
def found() -> Iterator[Arena]:
    with arena() as made:
        made.start_hosts(1)
        yield made


def message(body: bytes, **headers: Any) -> str:
    """A message as kombu puts it into a list of Redis."""
    given = {"task": "osbench.batch", "id": "1", "lang": "py"} | headers
    properties = {"body_encoding": "base64", "delivery_tag": "1", "delivery_info": {}}
    return json.dumps(
        {
            "body": base64.b64encode(body).decode(),
            "content-type": "application/x-msgpack",
            "content-encoding": "binary",
            "headers": {name: value for name, value in given.items() if value is not None},
            "properties": properties,
        }
    )


def call(*arguments: Any, **embedded: Any) -> bytes:
    return bytes(msgpack.packb([list(arguments), {}, embedded]))


def messages() -> list[str]:
    return [
        message(call(SIGNATURE, [[JUNK]] * 5), task="celery.map"),
        message(call([SIGNATURE], {}, "g", []), task="celery.group"),
        message(call(JUNK), eta="2099-01-01T00:00:00+00:00"),
        message(call(JUNK, callbacks=[SIGNATURE], chain=[SIGNATURE])),
        message(call(JUNK), task="no.\x1b[31msuch"),
        message(msgpack.packb({"task": "celery.map", "id": "1", "args": []}), task=None),
        message(zlib.compress(bytes(256 * MIB), 1), compression="application/x-gzip"),
        "{}",
    ]


def test_messages_of_others_are_refused_and_counted_and_do_nothing(found: Arena) -> None:
    (process,) = found.hosts[0].processes()
    with contextlib.closing(found.fragile.client()) as client:
        (key,) = client.scan_iter(f"{redis_keys.PREFIX}worker:*")
        queue = f"{redis_keys.PREFIX}{redis_keys.queue(key.decode().split(':')[-1])}"
        client.hset(f"{redis_keys.PREFIX}unacked", "tag", "no message")
        client.zadd(f"{redis_keys.PREFIX}unacked_index", {"tag": 1})
        sent = messages()
        client.lpush(queue, *sent)
        assert wait_until(lambda: not client.llen(queue))

        load = found.start_load(CLOSED)
        assert found.finish(load) == 0
        sums = found.exact(load)

        assert sums["ok"] == 200
        assert not client.exists("stolen", f"{redis_keys.PREFIX}stolen")
    # it says so in its heartbeats
    assert wait_until(lambda: found.listed()[0]["refused"] >= len(sent) - 1)
    assert [one.pid for one in found.hosts[0].processes()] == [process.pid]
    assert psutil.Process(process.pid).memory_info().rss < 200 * MIB
