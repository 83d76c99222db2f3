"""Passwords and keys are nowhere in clear but in the files that users wrote them into."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest
import redis as redis_py
import requests

from helpers import planted_secrets, web
from helpers.json_server import serving
from helpers.planted_secrets import SecretService
from helpers.recordings import write_har
from helpers.runs import Cluster, Finished, Site, site
from osbench.common.protocol.keyring import Keyring
from osbench.coordinator.results.storage.run_directory import RunDirectory
from servers import CountingServer, redis_server
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

PLANTED = {
    "redis password": "planted-redis-5519",
    "hmac key": "planted-hmac-2276",
    "password": "planted-password-8143",
    "password of a target": "planted-target-7731",
}
#: The place of what others can read of a run while it goes on.
PROCESSES = "Redis, arguments and environments"
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


def start_worker(cluster: Cluster, *arguments: str) -> None:
    """Start a worker as a shell does: a forked process does not show the arguments that it got."""
    cluster.workers.append(cluster.site.start("osbench-worker", "--processes", "1", *arguments))


class Watch:
    """Reads, during a run, all of Redis, and the arguments and environment of processes."""

    def __init__(self, cluster: Cluster) -> None:
        self.seen: set[bytes] = set()
        self.kinds: set[str] = set()
        self._client = cluster.redis.client()
        self._over, hears = threading.Event(), threading.Event()
        self._threads = [
            threading.Thread(target=self._loop, daemon=True),
            threading.Thread(target=self._hear, args=(hears,), daemon=True),
        ]
        for one in self._threads:
            one.start()
        assert hears.wait(PATIENCE_S)

    def end(self) -> bytes:
        """Stop; all that was seen, once each."""
        self._over.set()
        # wakes the one that hears
        self._client.ping()
        for one in self._threads:
            one.join()
        self._client.close()
        return b"\n".join(self.seen)

    def _hear(self, hears: threading.Event) -> None:
        """Hear all commands: some keys, such as offers, are there for a moment only."""
        with self._client.monitor() as monitor:
            hears.set()
            for one in monitor.listen():
                self.kinds.update(re.findall(r"osbench:(\w+)", one["command"]))
                self.seen.add(one["command"].encode())
                if self._over.is_set():
                    return

    def _loop(self) -> None:
        # not all the time: the run needs the cores that this would take
        while not self._over.wait(0.2):
            for key in self._client.scan_iter(count=1000):
                self.kinds.add(key.decode().split(":")[1])
                self.seen.add(key)
                self.seen |= set(values(self._client, key))
            # all that is osbench's was started from here
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    self.seen.add(repr(process.cmdline()).encode())
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
    """Every secret of a site and of what it runs."""
    line = (here.data / "keys").read_bytes().split()[0]
    words = {name: word.encode() for name, word in {**PLANTED, **planted_secrets.PLANTED}.items()}
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
    start_worker(cluster)
    cluster.await_idle(1)
    watch = Watch(cluster)

    run = here.coord("run", task_with_secrets(here, counting, 1))
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
    certificate, key = here.home / "reports" / "run.certificate.json", str(here.home / "team.key")
    asked.append(("certify", "--new-key", key))
    page = ("--html", str(certificate.with_suffix(".html")))
    asked.append(("certify", "last", "--key", key, "--output", str(certificate), *page))
    (here.home / "reports").mkdir()
    printed += [run, *(here.coord(*command) for command in asked)]
    # a coordinator that crashes
    crashing = here.start("osbench-coord", "run", task_with_secrets(here, counting, 60))
    crashing.await_said(" running: ")
    os.kill(crashing.process.pid, signal.SIGABRT)
    crashed = crashing.finish()
    printed += [crashed, here.coord("status"), here.coord("runs", "list")]

    seen = watch.end()
    for worker in cluster.workers:
        # it waits for another coordinator
        worker.process.kill()
    logs = [worker.finish() for worker in cluster.workers]
    printed += logs
    assert run.code == 1, run.err
    assert crashed.code == -signal.SIGABRT
    # files with secrets are for their owner only
    modes = {
        path.relative_to(here.data): path.stat().st_mode & 0o777
        for path in [here.data / "keys", *(here.data / "deployments").rglob("*")]
    }
    assert len(modes) > 1
    assert all(mode & 0o077 == 0 for mode in modes.values()), modes
    # the watch saw what there is to see: heartbeats, offers, the run, traces
    assert {"worker", "offer", "run"} <= watch.kinds
    assert b"HttpRequests" in kept(here.data / "runs")
    assert any("DEBUG" in log.err for log in logs)
    files = [path for path in (here.home / "reports").rglob("*") if path.is_file()]
    assert len(files) >= len(EXPORTS), [one.err for one in printed]
    assert certificate in files, printed[len(asked) + 3].err
    places = {
        "stdout": "\n".join(one.out for one in printed).encode(),
        "stderr and logs": "\n".join(one.err for one in printed).encode(),
        "run directory": kept(here.data / "runs"),
        PROCESSES: seen,
        **{path.name: path.read_bytes() for path in files},
    }
    assert found_in(here, places) == []


#: What others can read while a command runs that a user gave a secret, and that masks nothing.
HANDED_ON = {("hook", PROCESSES), ("hook-output", PROCESSES), ("environment", PROCESSES)}


@pytest.fixture
def service() -> Iterator[SecretService]:
    with serving(SecretService()) as running:
        yield running


def arranged(cluster: Cluster, service: SecretService) -> tuple[str, ...]:
    """Files with secrets in all places, and a worker; what to run."""
    here, secrets = cluster.site, planted_secrets.PLANTED
    here.configure(cluster.messaging, {"DEFAULT": {"log_level": "DEBUG"}})
    here.variables["PLANTED"] = secrets["environment"]
    plugin = str(here.write("plugin.py", planted_secrets.plugin()))
    here.write("rows.csv", f"pin\n{secrets['csv']}\n")
    given = here.write("given.json", json.dumps({"token": secrets["task-args"]}))
    task = here.write("planted.json", planted_secrets.task_text(service.url))
    write_har(here.home / "it.har", planted_secrets.recording(service.url))
    start_worker(cluster, "--plugin-path", plugin)
    cluster.await_idle(1)
    return (str(task), "--task-args-file", str(given), "--plugin-path", plugin)


def pages(here: Site, names: list[str]) -> bytes:
    """The pages of `web`: the list, each run, and a comparison."""
    texts = []
    with web.serving(here.data) as server:
        bearer = {"Authorization": f"Bearer {web.TOKENS.token}"}
        for path in ("/", *(f"/runs/{name}" for name in names), f"/compare?run={names[0]}"):
            query = f"&run={names[1]}" if "compare" in path else ""
            answer = requests.get(
                f"{server.url.rstrip('/')}{path}{query}", headers=bearer, timeout=60
            )
            # runs without a success cannot be compared: the page says so
            assert answer.status_code in (200, 409), path
            texts.append(answer.content)
    return b"\n".join(texts)


def test_what_a_run_is_given_and_told_is_sent_and_not_shown(
    cluster: Cluster, service: SecretService
) -> None:
    here = cluster.site
    asked = arranged(cluster, service)
    watch = Watch(cluster)

    run = here.coord("run", *asked, "--report", str(here.home / "page.html"))
    cluster.await_idle(1)
    first = "\n".join(service.got)
    service.got.clear()
    again = here.coord("rerun", "last", "--json")
    second = "\n".join(service.got)
    cluster.await_idle(1)
    seen = watch.end()
    names = sorted(path.name for path in (here.data / "runs").iterdir())
    commands: list[tuple[str, ...]] = [
        ("run", *asked, "--once", "--verbose"),
        ("validate", *asked),
        ("results", names[0]),
        ("results", names[0], "--json"),
        ("results", names[0], "--csv"),
        ("results", names[0], "--rally-json"),
        ("logs", names[0]),
        ("sla", names[0]),
        ("trace", names[0]),
        ("status", names[0], "--json"),
        ("runs", "list", "--json"),
        ("runs", "show", names[0]),
        ("compare", *names[:2]),
        ("trends",),
        ("deployment", "list"),
        ("workers", "--json"),
        ("init", "recorded.yaml", "--from-har", "it.har"),
    ]
    (here.home / "reports").mkdir()
    targets = [f"--export={name}={here.home / 'reports' / name}" for name in EXPORTS]
    commands.append(("report", names[0], *targets))
    printed = {" ".join(one[:1] + one[-2:]): here.coord(*one) for one in commands}

    for worker in cluster.workers:
        worker.process.terminate()
    logs = [worker.finish() for worker in cluster.workers]
    files = [path for path in (here.home / "reports").rglob("*") if path.is_file()]
    written = [*files, here.home / "page.html", here.home / "recorded.yaml"]
    places = {
        "run": (run.out + run.err).encode(),
        "rerun": (again.out + again.err).encode(),
        **{name: (one.out + one.err).encode() for name, one in printed.items()},
        "logs of workers": "\n".join(one.out + one.err for one in logs).encode(),
        "run directory": kept(here.data / "runs"),
        "pages": pages(here, names),
        PROCESSES: seen,
        **{path.name: path.read_bytes() for path in written},
    }
    assert len(files) >= len(EXPORTS), printed
    # workers had the true values, also when the run was made again
    secrets = planted_secrets.PLANTED
    for got in (first, second):
        assert [one for one in planted_secrets.SENT if secrets[one] not in got] == []
    # the last context fails
    assert (run.code, again.code) == (2, 2), run.err
    # each kind of secret was where it is looked for: what is left of it shows that
    directory = places["run directory"]
    for trace in (
        b"login failed, password=***",
        b"no login with ***",
        b"cannot open",
        b"it is ***",
    ):
        assert trace in directory, trace
    found = set(found_in(here, places)) - HANDED_ON
    assert sorted(found) == []
