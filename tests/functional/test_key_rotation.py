"""Keys rotate while a run goes on: no message is refused, and every iteration is counted."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import msgpack
import pytest

from helpers.runs import Cluster, site
from osbench.common.protocol import redis_keys
from osbench.common.protocol.keyring import ADOPT_S, Keyring
from servers import redis_server

pytestmark = pytest.mark.functional


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with redis_server(password="functional") as redis, site() as here:
        yield Cluster(here, redis)


def signed_with(cluster: Cluster) -> set[str]:
    """Ids of the keys of all heartbeats."""
    client = cluster.redis.client()
    try:
        beats = [client.get(key) for key in client.scan_iter(redis_keys.worker("*"))]
    finally:
        client.close()
    return {msgpack.unpackb(beat)[2].hex() for beat in beats if beat is not None}


def test_a_rotation_during_a_run_refuses_nothing(cluster: Cluster) -> None:
    here = cluster.site
    keys = here.data / "keys"
    workers = [cluster.start_worker() for _ in range(2)]
    cluster.await_idle(2)
    old = Keyring.load(keys).keys[0].id.hex()
    task = here.task(
        {
            "scenario": {"Dummy.dummy": {"sleep": 0.05}},
            "runner": {"constant": {"times": 600, "concurrency": 4}},
        }
    )
    run = here.begin("osbench-coord", "run", "--json", task)
    run.await_said(" running: ")

    rotated = here.coord("keys", "new", "--rotate")
    new = Keyring.load(keys).keys[0].id.hex()
    # the time that others have to get the file has passed
    then = time.time() - ADOPT_S - 1
    os.utime(keys, (then, then))
    run.wait_for(lambda: signed_with(cluster) == {new})

    done = run.finish()
    listed = cluster.listed()
    for worker in workers:
        worker.process.terminate()
    logs = [worker.finish() for worker in workers]
    assert rotated.code == 0, rotated.err
    assert new != old
    assert done.code == 0, done.err
    assert done.sums["ok"] == 600
    assert [done.sums[name] for name in ("stale", "late", "refused")] == [0, 0, 0]
    assert [beat["refusals"] for beat in listed] == [{}, {}]
    said = done.err + "".join(log.err for log in logs)
    assert "refused" not in said
    assert "unknown key" not in said
