"""Passwords and keys are nowhere in clear but in the files that users wrote them into."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis as redis_py

from helpers.runs import Cluster, site
from osbench.coordinator.storage.run_directory import RunDirectory
from servers import CountingServer, redis_server

pytestmark = pytest.mark.functional

PLANTED = {
    "redis password": "planted-redis-5519",
    "hmac key": "planted-hmac-2276",
    "password": "planted-password-8143",
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with redis_server(password=PLANTED["redis password"]) as redis, site() as here:
        yield Cluster(here, redis)


class Watch:
    """Reads, during a run, all of Redis and the arguments of all processes."""

    def __init__(self, cluster: Cluster) -> None:
        self.seen: set[bytes] = set()
        self.kinds: set[str] = set()
        self._client = cluster.redis.client()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._loop)
        self._thread.start()

    def end(self) -> bytes:
        """Stop; all that was seen, once each."""
        self._over.set()
        self._thread.join()
        self._client.close()
        return b"\n".join(self.seen)

    def _loop(self) -> None:
        while not self._over.is_set():
            for key in self._client.scan_iter(count=1000):
                self.kinds.add(key.decode().split(":")[1])
                self.seen.add(key)
                self.seen |= set(values(self._client, key))
            for process in psutil.process_iter():
                try:
                    self.seen.add("\0".join(process.cmdline()).encode())
                except psutil.Error:
                    continue


def values(client: redis_py.Redis, key: bytes) -> Iterator[bytes]:
    """All that lies under a key."""
    kind = client.type(key)
    if kind == b"string":
        yield client.get(key) or b""
    elif kind == b"hash":
        for field, value in client.hgetall(key).items():
            yield from (field, value)
    elif kind == b"stream":
        for _, entry in client.xrange(key):
            yield from entry.values()
    elif kind == b"list":
        yield from client.lrange(key, 0, -1)
    elif kind == b"set":
        yield from client.smembers(key)
    elif kind == b"zset":
        yield from client.zrange(key, 0, -1)


def kept(folder: Path) -> bytes:
    """All files below a folder, as they are and as osbench reads them."""
    parts = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    for run in folder.iterdir():
        directory = RunDirectory(run)
        parts += [repr(list(directory.blocks())).encode()]
        parts += [repr(list(directory.decisions())).encode()]
    return b"\n".join(parts)


def test_no_secret_is_seen_anywhere(cluster: Cluster, counting: CountingServer) -> None:
    here = cluster.site
    here.configure(cluster.messaging, {"DEFAULT": {"log_level": "DEBUG"}})
    record = {
        "openstack": {
            "auth_url": f"{counting.url}/v3",
            "admin": {
                "username": "admin",
                "password": PLANTED["password"],
                "project_name": "admin",
            },
            "profiler_hmac_key": PLANTED["hmac key"],
            "profiler_conn_str": cluster.redis.url,
        }
    }
    file = here.write("cloud.json", json.dumps(record))
    created = here.coord("deployment", "create", "--name", "cloud", "--file", str(file))
    shown = here.coord("deployment", "show", "cloud")
    for _ in range(2):
        cluster.start_worker()
    cluster.await_idle(2)
    request = {"url": counting.url, "method": "GET", "status_code": 200}
    task = here.task(
        {
            "scenario": {"HttpRequests.check_request": request},
            "runner": {"constant_for_duration": {"duration": 2, "concurrency": 4}},
        },
        # the server is no Keystone: every iteration fails, and reports why
        {"scenario": {"Authenticate.keystone": {}}, "runner": {"serial": {"times": 2}}},
    )
    watch = Watch(cluster)

    run = here.coord("run", task)
    as_json = here.coord("results", "last", "--json")
    as_rows = here.coord("results", "last", "--csv")

    seen = watch.end()
    for worker in cluster.workers:
        worker.process.terminate()
    logs = [worker.finish() for worker in cluster.workers]
    assert run.code == 1, run.err
    # the watch saw what there is to see: heartbeats, marks, the run, traces
    assert {"worker", "busy", "run"} <= watch.kinds
    assert b"HttpRequests" in kept(here.data / "runs")
    assert any("DEBUG" in log.err for log in logs)
    secret = base64.urlsafe_b64decode((here.data / "keys").read_text().split()[0] + "=")
    planted = {**{name: word.encode() for name, word in PLANTED.items()}, "signing key": secret}
    planted["signing key in base64"] = (here.data / "keys").read_bytes().split()[0]
    printed = [created, shown, run, as_json, as_rows, *logs]
    places = {
        "stdout": "\n".join(one.out for one in printed).encode(),
        "stderr and logs": "\n".join(one.err for one in printed).encode(),
        "run directory": kept(here.data / "runs"),
        "Redis and process arguments": seen,
    }
    found = [
        (what, where) for what, word in planted.items() for where in places if word in places[where]
    ]
    assert found == []


def test_files_with_secrets_are_for_their_owner_only(cluster: Cluster) -> None:
    here = cluster.site
    record = {"osbench": {"services": {"a": "http://127.0.0.1:1"}, "profiler_hmac_key": "k"}}
    file = here.write("a.json", json.dumps(record))

    created = here.coord("deployment", "create", "--name", "a", "--file", str(file))

    assert created.code == 0, created.err
    modes = {
        path.relative_to(here.data): path.stat().st_mode & 0o777
        for path in [here.data / "keys", *(here.data / "deployments").rglob("*")]
    }
    assert all(mode & 0o077 == 0 for mode in modes.values()), modes
