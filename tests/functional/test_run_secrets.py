"""Passwords and keys are nowhere in clear but in the files that users wrote them into."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest
import redis as redis_py

from helpers.runs import Cluster, Finished, Site, site
from osbench.common.protocol.keyring import Keyring
from osbench.coordinator.storage.run_directory import RunDirectory
from servers import CountingServer, redis_server

pytestmark = pytest.mark.functional

PLANTED = {
    "redis password": "planted-redis-5519",
    "hmac key": "planted-hmac-2276",
    "password": "planted-password-8143",
    "password of a target": "planted-target-7731",
}
EXPORTS = (
    *("html", "junit", "csv", "csv-times", "json", "rally", "parquet", "hdr", "openmetrics"),
)


def forms(word: bytes) -> set[bytes]:
    """A secret as it is, in hexadecimal, and in base64 wherever it begins."""
    found = {word, word.hex().encode(), word.hex().upper().encode()}
    for before in range(3):
        # of the characters of base64, those that hang on nothing but the secret
        whole = base64.b64encode(bytes(before) + word)[-(-before * 8 // 6) :]
        bits = (before + len(word)) * 8
        kept = bits // 6 - -(-before * 8 // 6)
        found |= {whole[:kept], whole[:kept].translate(bytes.maketrans(b"+/", b"-_"))}
    return found


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with redis_server(password=PLANTED["redis password"]) as redis, site() as here:
        yield Cluster(here, redis)


class Watch:
    """Reads, during a run, all of Redis, and the arguments and environment of processes."""

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
                with contextlib.suppress(psutil.Error):
                    self.seen.add(repr(process.cmdline()).encode())
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    self.seen.add(repr(process.environ()).encode())


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


def planted(here: Site) -> dict[str, bytes]:
    """Every secret of a site."""
    line = (here.data / "keys").read_bytes().split()[0]
    words = {name: word.encode() for name, word in PLANTED.items()}
    derived = Keyring.load(here.data / "keys").keys[0]
    return {
        **words,
        "secret of the key file": base64.urlsafe_b64decode(line + b"="),
        "line of the key file": line,
        "signing key": derived.signing,
        "encryption key": derived.encryption,
    }


def found_in(here: Site, places: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """Which secret is where."""
    return [
        (what, where)
        for what, word in planted(here).items()
        for where, text in places.items()
        if any(form in text for form in forms(word))
    ]


def deploy(cluster: Cluster, counting: CountingServer) -> list[Finished]:
    """Make a record that holds secrets; what was printed."""
    here = cluster.site
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
    return [
        here.coord("deployment", "create", "--name", "cloud", "--file", str(file)),
        here.coord("deployment", "show", "cloud"),
        here.coord("deployment", "list"),
    ]


def task_with_secrets(here: Site, counting: CountingServer, seconds: float) -> str:
    address = counting.url.replace("//", f"//user:{PLANTED['password of a target']}@")
    return here.task(
        {
            "scenario": {
                "HttpRequests.check_request": {
                    "url": address,
                    "method": "GET",
                    "status_code": 200,
                }
            },
            "runner": {"constant_for_duration": {"duration": seconds, "concurrency": 4}},
        },
        # nothing listens there: what is raised names the address
        {
            "scenario": {
                "HttpRequests.check_request": {
                    "url": f"http://user:{PLANTED['password of a target']}@127.0.0.1:9/a",
                    "method": "GET",
                    "status_code": 200,
                }
            },
            "runner": {"serial": {"times": 3}},
        },
        # it answers with another status
        {
            "scenario": {
                "HttpRequests.check_request": {
                    "url": f"{address}/a?token={PLANTED['password of a target']}",
                    "method": "GET",
                    "status_code": 418,
                }
            },
            "runner": {"serial": {"times": 3}},
        },
        # the server is no Keystone: every iteration fails, and reports why
        {"scenario": {"Authenticate.keystone": {}}, "runner": {"serial": {"times": 2}}},
    )


def test_the_forms_of_a_secret_are_found_wherever_it_stands() -> None:
    word = b"planted-redis-5519"

    for before in (b"", b"x", b"xy", b"xyz"):
        text = before + word + b"?!"
        for coded in (text, text.hex().encode(), base64.b64encode(text)):
            assert any(form in coded for form in forms(word)), (before, coded)
    assert not any(form in base64.b64encode(b"something else") for form in forms(word))


def test_no_secret_is_seen_anywhere(cluster: Cluster, counting: CountingServer) -> None:
    here = cluster.site
    here.configure(cluster.messaging, {"DEFAULT": {"log_level": "DEBUG"}})
    printed = deploy(cluster, counting)
    for _ in range(2):
        cluster.start_worker()
    cluster.await_idle(2)
    watch = Watch(cluster)

    run = here.coord("run", task_with_secrets(here, counting, 2))
    asked: list[tuple[str, ...]] = [
        ("results", "last", "--json"),
        ("results", "last", "--csv"),
        ("results", "last", "--rally-json"),
        ("status", "--json"),
        ("runs", "list", "--json"),
        ("workers", "--json"),
    ]
    for name in EXPORTS:
        asked.append(("report", "last", "--export", f"{name}={here.home / 'reports' / name}"))
    (here.home / "reports").mkdir()
    printed += [run, *(here.coord(*command) for command in asked)]

    seen = watch.end()
    for worker in cluster.workers:
        worker.process.terminate()
    logs = [worker.finish() for worker in cluster.workers]
    printed += logs
    assert run.code == 1, run.err
    # the watch saw what there is to see: heartbeats, offers, the run, traces
    assert {"worker", "offer", "run"} <= watch.kinds
    assert b"HttpRequests" in kept(here.data / "runs")
    assert any("DEBUG" in log.err for log in logs)
    files = [path for path in (here.home / "reports").rglob("*") if path.is_file()]
    assert len(files) >= len(EXPORTS), [one.err for one in printed]
    places = {
        "stdout": "\n".join(one.out for one in printed).encode(),
        "stderr and logs": "\n".join(one.err for one in printed).encode(),
        "run directory": kept(here.data / "runs"),
        "Redis, arguments and environments": seen,
        **{path.name: path.read_bytes() for path in files},
    }
    assert found_in(here, places) == []


def test_a_crash_of_the_coordinator_leaves_no_secret(
    cluster: Cluster, counting: CountingServer
) -> None:
    here = cluster.site
    deploy(cluster, counting)
    worker = cluster.start_worker()
    cluster.await_idle(1)
    watch = Watch(cluster)

    run = here.start("osbench-coord", "run", task_with_secrets(here, counting, 60))
    run.await_said(" running: ")
    os.kill(run.process.pid, signal.SIGABRT)
    done = run.finish()

    seen = watch.end()
    told = [here.coord("status"), here.coord("runs", "list")]
    worker.process.kill()
    log = worker.finish()
    texts = [done, *told, log]
    places = {
        "output": "\n".join(one.out + one.err for one in texts).encode(),
        "run directory": kept(here.data / "runs"),
        "Redis, arguments and environments": seen,
    }
    assert done.code == -signal.SIGABRT
    assert found_in(here, places) == []


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
