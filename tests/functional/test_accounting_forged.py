"""Someone without a key writes to Redis and the broker: runs end, lie not, and execute nothing.

What each attack alone does at which moment is in `tests/world/test_scenes_forged.py`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import psutil
import pytest

from helpers.arena import Arena, Host, Load, arena, wait_until
from helpers.attacker import JUNK
from osbench.common.protocol import redis_keys

pytestmark = [pytest.mark.functional, pytest.mark.faults, pytest.mark.timeout(600)]

TIMES = 1000
#: How many iterations begin between two attacks.
BETWEEN = 70


@pytest.fixture(scope="module")
def attacked() -> Iterator[Arena]:
    """Two hosts that outlive one attack after the other."""
    with arena() as found:
        found.start_hosts(2)
        yield found


def delete_an_entry(found: Arena) -> None:
    assert wait_until(found.attacker.delete_results)


def reorder_entries(found: Arena) -> None:
    assert wait_until(found.attacker.reorder_results)


def forget_everything(found: Arena) -> None:
    """A server that comes back without its data, at the same address."""
    found.fragile.begin_empty()


def close_stream(found: Arena) -> None:
    found.attacker.close_streams()


def change_types(found: Arena) -> None:
    found.attacker.change_types(1.0)


def replay(found: Arena) -> None:
    for _ in range(5):
        found.attacker.replay(50)
        time.sleep(0.1)


def spoil(found: Arena) -> None:
    """Names and marks that are not text wherever a coordinator or a worker looks."""
    with contextlib.closing(found.fragile.client()) as client:
        for key in client.scan_iter("osbench:worker:*"):
            name = key.removeprefix(b"osbench:worker:")
            client.set(b"osbench:offer:" + name, JUNK, ex=3)
    found.attacker.add_junk()


ATTACKS: list[Callable[[Arena], None]] = [
    delete_an_entry,
    reorder_entries,
    close_stream,
    change_types,
    forget_everything,
    replay,
    spoil,
]


@pytest.fixture(scope="module")
def load(attacked: Arena) -> Load:
    """A run that was attacked again and again, at its end."""
    load = attacked.start_load({"constant": {"times": TIMES, "concurrency": 6}})
    for at, attack in enumerate(ATTACKS):
        # what was attacked goes on
        attacked.await_started(load, BETWEEN * (at + 1))
        attack(attacked)
    shown = [attacked.site.coord(*one) for one in (("workers",), ("status",), ("runs", "list"))]
    for done in shown:
        assert done.code == 0, done.err
        assert "\x1b" not in done.out + done.err
    attacked.finish(load)
    assert wait_until(attacked.are_free)
    return load


def test_a_run_that_is_attacked_again_and_again_loses_nothing(attacked: Arena, load: Load) -> None:
    sums = attacked.exact(load)

    assert (load.codes, sums["ok"]) == ([0], TIMES), (sums, load.command.said())


def refused(found: Arena, host: Host) -> int:
    """Messages that the worker of a host says it has refused."""
    (beat,) = [one for one in found.present() if one.label == host.label]
    return beat.refused


SIGNATURE = {"task": "osbench.batch", "args": [b"x"], "kwargs": {}, "options": {"queue": "stolen"}}
MIB = 1 << 20


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
    """Messages by which Celery would do something else than hand on a batch."""
    return [
        message(call(SIGNATURE, [[b"x"]] * 5), task="celery.map"),
        message(call([SIGNATURE], {}, "g", []), task="celery.group"),
        message(call(b"x"), eta="2099-01-01T00:00:00+00:00"),
        message(call(b"x", callbacks=[SIGNATURE], chain=[SIGNATURE])),
        message(call(b"x"), task="no.\x1b[31msuch"),
        message(msgpack.packb({"task": "celery.map", "id": "1", "args": []}), task=None),
        message(zlib.compress(bytes(256 * MIB), 1), compression="application/x-gzip"),
        "{}",
    ]


def test_old_records_and_messages_of_others_are_refused_and_do_nothing(
    attacked: Arena, load: Load
) -> None:
    host = attacked.hosts[0]
    (process,) = host.processes()
    before = refused(attacked, host)
    starts = attacked.seen(load).starts

    # offers and batches name no run that others could read
    attacked.attacker.replay_all("osbench:offer:", "osbench.w.", within_s=2.0)
    # what a worker says of it comes with its heartbeats
    assert wait_until(lambda: refused(attacked, host) > before)
    before = refused(attacked, host)
    with contextlib.closing(attacked.fragile.client()) as client:
        (name,) = [one.incarnation for one in attacked.present() if one.label == host.label]
        queue = f"{redis_keys.PREFIX}{redis_keys.queue(name)}"
        client.hset(f"{redis_keys.PREFIX}unacked", "tag", "no message")
        client.zadd(f"{redis_keys.PREFIX}unacked_index", {"tag": 1})
        sent = messages()
        client.lpush(queue, *sent)
        assert wait_until(lambda: not client.llen(queue))
        # the next run is not disturbed
        after = attacked.start_load({"constant": {"times": 40, "concurrency": 4}}, tag="after")
        assert attacked.finish(after) == 0, after.command.said()

        assert attacked.exact(after)["ok"] == 40
        assert not client.exists("stolen", f"{redis_keys.PREFIX}stolen")
    assert wait_until(lambda: refused(attacked, host) >= before + len(sent) - 1)
    assert attacked.seen(load).starts == starts
    assert [one.pid for one in host.processes()] == [process.pid]
    assert psutil.Process(process.pid).memory_info().rss < 200 * MIB
