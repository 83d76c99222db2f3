"""An operator's walk over hosts of their own, with what deploy/new-secrets makes.

As docs/operations.md has it: TLS, users of few rights, keys rotated, certificates renewed, a host
lost and one added in a run, an upgrade, a backup.
"""

from __future__ import annotations

import configparser
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import osbench
from helpers.import_path import import_path
from helpers.net_hosts.network import Network, need_hosts, network
from helpers.runs import Finished, Site, Started
from servers import Child, folder, redis_executable
from servers.secured_redis import need_tls_and_permissions, new_secrets

pytestmark = [pytest.mark.functional, pytest.mark.faults, pytest.mark.timeout(600)]

COORDINATOR, REDIS = "coordinator", "redis"
WORKERS = ("worker-1", "worker-2", "worker-3")
NEWER = "99.0.0"


def task(times: int, **more: Any) -> dict[str, Any]:
    return {
        "scenario": {"Dummy.dummy": {"sleep": 0.02}},
        "runner": {"constant": {"times": times, "concurrency": 8}},
        **more,
    }


class Operator:
    """Hosts, the folder that new-secrets has made, and what was installed on each host."""

    def __init__(self, hosts: Network, home: Path, stack: ExitStack) -> None:
        self.hosts = hosts
        self.secrets = home / "secrets"
        self._home = home
        self._stack = stack
        self._redis: Child | None = None
        self.supervisors: dict[str, Started] = {}
        self.sites = {
            name: stack.enter_context(hosts[name].site()) for name in (COORDINATOR, *WORKERS)
        }
        new_secrets(self.secrets, REDIS)
        for name in self.sites:
            self.install(name)

    @property
    def desk(self) -> Site:
        """The coordinator's host."""
        return self.sites[COORDINATOR]

    def install(self, name: str) -> None:
        """Copy what the host needs, and nothing else."""
        role = self._role(name)
        at = self.sites[name]
        etc = at.home / "etc"
        etc.mkdir()
        shutil.copy(self.secrets / "keys", etc / "keys")
        self.install_certificates(name)
        text = (self.secrets / f"{role}.conf").read_text().replace("/etc/osbench/", f"{etc}/")
        parsed = configparser.ConfigParser(default_section="", interpolation=None)
        parsed.read_string(text.replace("/var/lib/osbench", str(at.data)))
        at.configure({section: dict(parsed[section]) for section in parsed.sections()})

    def install_certificates(self, name: str) -> None:
        """Copy those of the host's role."""
        role = self._role(name)
        for file in ("ca.pem", f"{role}.pem", f"{role}-key.pem"):
            shutil.copy(self.secrets / file, self.sites[name].home / "etc" / file)

    def _role(self, name: str) -> str:
        return COORDINATOR if name == COORDINATOR else "worker"

    def install_keys(self, name: str) -> None:
        """Copy the coordinator's key file as scp does: the old one is replaced."""
        shutil.copy(self.desk.home / "etc" / "keys", self.sites[name].home / "etc" / "keys.new")
        (self.sites[name].home / "etc" / "keys.new").rename(self.sites[name].home / "etc" / "keys")

    def start_redis(self) -> None:
        """Start, or start again, Redis on its host with the files that it has there."""
        etc = self._home / "redis"
        etc.mkdir(exist_ok=True)
        for file in ("ca.pem", "redis.pem", "redis-key.pem"):
            shutil.copy(self.secrets / file, etc / file)
        text = (self.secrets / "redis.conf").read_text()
        (etc / "redis.conf").write_text(text.replace("/etc/osbench-redis/", f"{etc}/"))
        if self._redis is not None:
            self._redis.end(signal.SIGTERM)
        command = [*self.hosts[REDIS].within(), redis_executable(), str(etc / "redis.conf")]
        self._redis = Child(command, folder=self._home, log=self._home / "redis.log")
        self._stack.callback(self._redis.end, signal.SIGKILL)

    def start(self, name: str, *before: str) -> Started:
        """Start two worker processes on a host; does not wait."""
        command = ("osbench-worker", "--processes", "2", "--label", name)
        at = self.sites[name]
        found = at.start("env", *before, *command) if before else at.begin(*command)
        self.supervisors[name] = found
        return found

    def stop(self, name: str) -> int:
        """SIGTERM, as systemd does; returns the exit code."""
        self.supervisors[name].process.send_signal(signal.SIGTERM)
        return self.supervisors[name].finish().code

    def host_fails(self, name: str) -> None:
        """Nothing of it is heard any more."""
        self.hosts.cut(name)
        os.killpg(self.supervisors[name].process.pid, signal.SIGKILL)

    def run(self, workload: dict[str, Any], *options: str) -> Started:
        """Begin a run."""
        path = self.desk.task(workload)
        arguments = ("run", "--json", "--wait-for-workers", "120", *options, path)
        return self.desk.begin("osbench-coord", *arguments)


@pytest.fixture
def operator() -> Iterator[Operator]:
    need_hosts()
    need_tls_and_permissions()
    with ExitStack() as stack:
        hosts = stack.enter_context(network(COORDINATOR, REDIS, *WORKERS))
        yield Operator(hosts, stack.enter_context(folder()), stack)


def accounted(done: Finished) -> dict[str, int]:
    """The sums of a run, which have to add up."""
    (workload,) = done.result["workloads"]
    sums = dict(workload["accounting"])
    states = {name: value for name, value in sums.items() if name != "planned"}
    assert sums["planned"] == sum(
        value for name, value in states.items()
        if name in ("ok", "failed", "timed_out", "lost", "not_started", "dropped")
    ), sums  # fmt: skip
    return sums


def newer(home: Path) -> str:
    """A copy of osbench of another version; returns the variable that has it found first."""
    copy = home / "newer"
    source = Path(osbench.__file__).parent
    shutil.copytree(source, copy / "osbench", ignore=shutil.ignore_patterns("__pycache__"))
    init = copy / "osbench" / "__init__.py"
    init.write_text(init.read_text().replace(f'"{osbench.__version__}"', f'"{NEWER}"'))
    return f"PYTHONPATH={import_path(copy)['PYTHONPATH']}"


def begin_in_any_order(operator: Operator) -> Finished:
    for name in WORKERS[:2]:
        operator.start(name).await_said("Waiting for it")
    operator.start_redis()

    done = operator.run(task(400), "--workers", "4").finish()

    assert done.code == 0, done.err
    assert accounted(done)["ok"] == 400
    looked = operator.desk.coord("doctor")
    assert looked.code == 0, looked.out
    assert "the certificate of Redis is valid for 82" in looked.out
    return done


def rotate_keys_in_a_run(operator: Operator) -> Finished:
    run = operator.run(task(3000), "--workers", "4")
    run.await_said(" done, ")
    assert operator.desk.coord("keys", "new", "--rotate").code == 0
    for name in WORKERS:
        operator.install_keys(name)

    done = run.finish()

    assert done.code == 0, done.err
    assert accounted(done)["ok"] == 3000
    assert "other keys" not in operator.desk.coord("workers").out
    return done


def lose_a_host_and_add_one_in_a_run(operator: Operator) -> Finished:
    # long enough for a host to start on a busy machine
    run = operator.run(task(8000, idempotent=True), "--workers", "4")
    run.await_said(" done, ")
    operator.host_fails(WORKERS[1])
    operator.start(WORKERS[2])

    done = run.finish()

    assert done.code == 0, done.err
    assert accounted(done)["ok"] == 8000
    (workload,) = done.result["workloads"]
    lost = {one["label"] for one in workload["workers"] if one["lost"]}
    assert lost == {WORKERS[1]}
    assert WORKERS[2] in {one["label"] for one in workload["workers"]}
    return done


def renew_certificates(operator: Operator) -> Finished:
    new_secrets("--renew", operator.secrets, REDIS)
    for name in (COORDINATOR, WORKERS[0], WORKERS[2]):
        operator.install_certificates(name)
    operator.start_redis()

    done = operator.run(task(400), "--workers", "4").finish()

    assert done.code == 0, done.err
    assert accounted(done)["ok"] == 400
    return done


def upgrade(operator: Operator, first: Finished, path: str) -> Finished:
    """The coordinator before the workers: a run says so; then they follow."""
    desk = operator.desk
    command = ("env", path, "osbench-coord")
    early = desk.start(*command, "run", "--json", "--wait-for-workers", "0", desk.task(task(100)))
    refused = early.finish()
    assert refused.code == 2
    assert osbench.__version__ in refused.result["error"]["message"]
    for name in (WORKERS[0], WORKERS[2]):
        assert operator.stop(name) == 0
        operator.start(name, path)

    options = ("--wait-for-workers", "120", "--workers", "4")
    done = desk.start(*command, "run", "--json", *options, desk.task(task(400))).finish()

    assert done.code == 0, done.err
    assert accounted(done)["ok"] == 400
    assert desk.start(*command, "workers").finish().out.count(NEWER) == 4
    # earlier runs can still be read
    told = desk.start(*command, "results", first.result["run_id"]).finish()
    assert "400 planned = 400 ok" in " ".join(told.out.split())
    return done


def test_an_operator_walks_through_the_page(operator: Operator, tmp_path: Path) -> None:
    runs = [
        begin_in_any_order(operator),
        rotate_keys_in_a_run(operator),
        lose_a_host_and_add_one_in_a_run(operator),
        renew_certificates(operator),
    ]
    runs.append(upgrade(operator, runs[0], newer(tmp_path)))

    said = "".join(one.said() for one in operator.supervisors.values())
    said += "".join(one.err + one.out for one in runs)
    users = [
        line.partition(">")[2].partition(" ")[0]
        for line in (operator.secrets / "redis.conf").read_text().splitlines()
        if line.startswith("user osbench-")
    ]
    assert [len(password) for password in users] == [48, 48]
    assert not any(password in said for password in users)
    assert "Traceback" not in said
