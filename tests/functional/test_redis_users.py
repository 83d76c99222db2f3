"""What deploy/new-secrets makes: TLS, and users that may do what they have to, and nothing else."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from helpers.runs import Site, Started, checked, site
from osbench.common.config.config import load
from osbench.common.protocol.redis_client import Client, connect
from osbench.common.protocol.wire import Wire
from servers.secured_redis import SecuredRedis, secured_redis

pytestmark = pytest.mark.functional

LOAD = {"scenario": {"Dummy.dummy": {"sleep": 0.01}}}


def stages(duration: int) -> dict[str, Any]:
    return {"stages": {"start": 40, "stages": [{"duration": duration, "target": 40}]}}


@pytest.fixture(scope="module")
def server() -> Iterator[SecuredRedis]:
    with secured_redis() as found:
        yield found


@pytest.fixture(scope="module")
def here(server: SecuredRedis) -> Iterator[Site]:
    with site() as found:
        found.configure({"messaging": server.messaging("coordinator")})
        assert found.coord("keys", "new").code == 0
        yield found


def client(server: SecuredRedis, here: Site, role: str) -> Client:
    """As a role has it."""
    file = here.configure({"messaging": server.messaging(role)}, name=f"{role}.conf")
    return connect(load([str(file)]).messaging.redis_url, 5.0)


def worker(here: Site, server: SecuredRedis) -> Started:
    file = here.configure({"messaging": server.messaging("worker")}, name="w.conf")
    return here.start("osbench-worker", "--processes", "1", "--config-file", str(file))


def test_all_that_runs_do_is_allowed(here: Site, server: SecuredRedis) -> None:
    (here.home / "rows.csv").write_text("sleep:float\n0.01\n0.02\n0.01\n")
    data = {"scenario": {"Dummy.dummy": {}}, "args_from": "rows.csv"}
    supervisor = worker(here, server)
    done = here.coord(
        *("run", "--json", "--wait-for-workers", "120"),
        here.task(
            {**data, "runner": {"constant": {"times": 3, "concurrency": 2}}},
            {**LOAD, "runner": {"constant": {"times": 100, "concurrency": 4}}, "idempotent": True},
            {**LOAD, "runner": stages(1)},
        ),
    )
    assert done.code == 0, done.err
    for workload in done.result["workloads"]:
        assert checked(workload)["ok"] == checked(workload)["planned"]

    looked = here.coord("doctor", "--json")
    assert looked.code == 0, looked.out
    assert "is valid for 82" in looked.out
    checked_workers = ("osbench-worker", "--check", "--config-file", str(here.home / "w.conf"))
    assert here.start(*checked_workers).finish().code == 0

    # another coordinator takes over
    run = here.start("osbench-coord", "run", "--json", here.task({**LOAD, "runner": stages(600)}))
    run.await_said(" done, ")
    assert here.coord("control", "--rate", "60").code == 0
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    resumed = here.start("osbench-coord", "resume", "last")
    resumed.await_said(" running: ")
    resumed.interrupt()
    assert resumed.finish().code == 130, resumed.said()
    assert here.coord("keys", "new", "--rotate").code == 0
    assert here.coord("workers").code == 0
    supervisor.process.send_signal(signal.SIGTERM)
    assert supervisor.finish().code == 0

    assert server.refusals() == []
    assert client(server, here, "coordinator").smembers("osbench:workers") == set()


@pytest.mark.parametrize(
    "command",
    [
        ("SET", "osbench:run:r:ctl:w", "x"),
        ("HSET", "osbench:run:r:specs", "0", "x"),
        ("XREAD", "STREAMS", "osbench:run:r:results", "0"),
        ("DEL", "osbench:run:r:specs"),
        ("LPUSH", "osbench:osbench.w.other", "x"),
        ("SET", "another:key", "x"),
        ("CONFIG", "GET", "*"),
        ("CLIENT", "KILL", "ID", "1"),
        ("CLIENT", "LIST"),
        ("KEYS", "*"),
        ("FLUSHALL",),
    ],
)
def test_a_worker_may_not_do_what_is_the_coordinators(
    here: Site, server: SecuredRedis, command: tuple[str, ...]
) -> None:
    its = client(server, here, "worker")

    with pytest.raises(redis.exceptions.NoPermissionError):
        its.execute_command(*command)
    server.client().execute_command("ACL", "LOG", "RESET")


def test_a_worker_may_repair_its_queue(here: Site, server: SecuredRedis) -> None:
    server.client().set("osbench:osbench.w.mine", "no list")

    Wire(client(server, here, "worker")).repair_queue("mine")

    assert not server.client().exists("osbench:osbench.w.mine")
    assert server.refusals() == []


def test_a_right_that_is_missing_is_named(here: Site, server: SecuredRedis) -> None:
    admin = server.client()
    admin.execute_command("ACL", "SETUSER", "osbench-coordinator", "-hset")
    worker(here, server)
    try:
        arguments = ["run", "--wait-for-workers", "120", here.task(LOAD)]
        done = here.coord(*arguments)
    finally:
        admin.execute_command("ACL", "SETUSER", "osbench-coordinator", "+hset")
        admin.execute_command("ACL", "LOG", "RESET")

    assert done.code in (2, 3)
    assert "hset" in done.err
    assert "permission" in done.err
    assert "Traceback" not in done.err
