"""The users of deploy/redis/users.acl: all that coordinator and workers do, and nothing else."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest
import redis

from helpers.readme import REPOSITORY
from helpers.runs import Site, Started, checked, site
from servers import RedisServer, redis_server

pytestmark = pytest.mark.functional

WORDS = {"COORDINATOR": "of-the-coordinator", "WORKER": "of-the-worker"}
LOAD = {"scenario": {"Dummy.dummy": {"sleep": 0.01}}}
STAGES = {"stages": {"start": 40, "stages": [{"duration": 6, "target": 40}]}}


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server(password="of-the-admin") as found:
        admin = found.client()
        if not admin.info("server").get("server_name") and (
            int(str(admin.info("server")["redis_version"]).partition(".")[0]) < 7
        ):
            pytest.skip("this Redis has no permissions to read or to write keys: it needs 7")
        for line in (REPOSITORY / "deploy/redis/users.acl").read_text().splitlines():
            _, name, *rules = line.split()
            if name != "default":
                given = [re.sub(r"(\w+)_PASSWORD", lambda m: WORDS[m[1]], rule) for rule in rules]
                admin.execute_command("ACL", "SETUSER", name, "reset", *given)
        yield found


def address(server: RedisServer, role: str) -> str:
    return server.url.replace(":of-the-admin@", f"osbench-{role}:{WORDS[role.upper()]}@")


@pytest.fixture
def here(server: RedisServer) -> Iterator[Site]:
    with site() as found:
        found.configure({"messaging": {"redis_url": address(server, "coordinator")}})
        assert found.coord("keys", "new").code == 0
        yield found


def worker(here: Site, server: RedisServer) -> Started:
    file = here.configure({"messaging": {"redis_url": address(server, "worker")}}, name="w.conf")
    return here.start("osbench-worker", "--processes", "2", "--config-file", str(file))


def refusals(server: RedisServer) -> list[str]:
    return [str(one) for one in server.client().execute_command("ACL", "LOG")]


def test_all_that_runs_do_is_allowed(here: Site, server: RedisServer) -> None:
    (here.home / "rows.csv").write_text("sleep:float\n0.01\n0.02\n0.01\n")
    data = {"scenario": {"Dummy.dummy": {}}, "args_from": "rows.csv"}
    supervisor = worker(here, server)
    done = here.coord(
        *("run", "--json", "--wait-for-workers", "120"),
        here.task(
            {**data, "runner": {"constant": {"times": 3, "concurrency": 2}}},
            {**LOAD, "runner": {"constant": {"times": 100, "concurrency": 4}}, "idempotent": True},
            {**LOAD, "runner": STAGES},
        ),
    )
    assert done.code == 0, done.err
    for workload in done.result["workloads"]:
        assert checked(workload)["ok"] == checked(workload)["planned"]

    # another coordinator takes over
    run = here.start("osbench-coord", "run", "--json", here.task({**LOAD, "runner": STAGES}))
    run.await_said(" done, ")
    assert here.coord("control", "--rate", "60").code == 0
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    resumed = here.coord("resume", "last", "--json")
    assert resumed.code in (0, 3), resumed.err
    assert here.coord("keys", "new", "--rotate").code == 0
    assert here.coord("workers").code == 0
    supervisor.process.send_signal(signal.SIGTERM)
    assert supervisor.finish().code == 0

    assert refusals(server) == []
    client = redis.Redis.from_url(address(server, "coordinator"))
    assert client.smembers("osbench:workers") == set()


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
def test_a_worker_may_not_do_what_is_the_coordinators(server: RedisServer, command) -> None:
    client = redis.Redis.from_url(address(server, "worker"))

    with pytest.raises(redis.exceptions.NoPermissionError):
        client.execute_command(*command)
    server.client().execute_command("ACL", "LOG", "RESET")


def test_a_right_that_is_missing_is_named(here: Site, server: RedisServer) -> None:
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
