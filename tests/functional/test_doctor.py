"""`doctor`: what it says of good and of bad servers, keys, workers and hosts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.runs import Cluster, Site, site
from osbench.common.machine.python_build import is_unoptimised
from servers import free_port, redis_server
from servers.child import PATIENCE_S
from servers.redis_server import RedisServer

pytestmark = pytest.mark.functional

WELL = ("version", "CPU", "data directory", "keys", "open files", "Redis", "clock", "rights")


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def findings(here: Site, *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code, and the worst finding on each thing."""
    done = here.coord("doctor", "--json", *arguments)
    order = ("ok", "warning", "error")
    found: dict[str, dict[str, Any]] = {}
    for one in json.loads(done.out):
        before = found.get(one["about"])
        if before is None or order.index(one["state"]) > order.index(before["state"]):
            found[one["about"]] = one
    return done.code, found


def test_local_mode_needs_no_server(here: Site) -> None:
    code, found = findings(here)
    text = here.coord("doctor").out

    assert code == 0
    assert found["Redis"]["state"] == found["data directory"]["state"] == "ok"
    assert "runs are in local mode" in text


def test_a_cluster_that_is_well(here: Site) -> None:
    with redis_server(password="of-redis") as redis:
        cluster = Cluster(here, redis)
        code, alone = findings(here)
        for _ in range(20):
            # a Redis that gets no core for a tenth of a second is told as a slow one
            if "use a nearer Redis" not in alone["Redis"]["remedy"]:
                break
            code, alone = findings(here)
        cluster.start_worker()
        cluster.await_idle(1)
        _, together = findings(here)
        left = redis.client().keys("*doctor*")

    assert code == 0
    assert {name: one["state"] for name, one in alone.items() if name != "workers"} == {
        **dict.fromkeys(WELL, "ok"),
        "version": "warning" if is_unoptimised() else "ok",
    }
    assert (alone["workers"]["state"], alone["workers"]["detail"]) == ("warning", "none")
    assert together["workers"]["state"] == "ok"
    assert together["workers"]["detail"].startswith("1 process on 1 host, ")
    assert left == []
    assert "of-redis" not in str(together)


def test_rights_that_are_missing_are_named_all_at_once(here: Site) -> None:
    with redis_server(password="of-redis") as redis:
        Cluster(here, redis)
        rules = ("reset", "on", ">of-user", "~osbench:*", "+@all", "-hset", "-xadd", "-incrby")
        redis.client().execute_command("ACL", "SETUSER", "few", *rules)
        url = redis.url.replace(":of-redis@", "few:of-user@")
        file = here.configure({"messaging": {"redis_url": url}}, name="few.conf")
        code, found = findings(here, "--config-file", str(file))

    assert code == 1
    assert found["rights"]["state"] == "error"
    assert "may not use hset, incrby, xadd with" in found["rights"]["detail"]
    assert "+hset +incrby +xadd and ~osbench:*" in found["rights"]["remedy"]


def test_what_is_wrong_is_told_with_everything_else(here: Site) -> None:
    with redis_server(password="of-redis", maxmemory_policy="allkeys-lru") as redis:
        here.configure({"messaging": {"redis_url": redis.url}})
        broken = here.write("broken.py", "import nothing_of_this_name\n")
        code, found = findings(here, "--plugin-path", str(broken))

    assert code == 1
    assert "noeviction" in found["Redis"]["detail"]
    assert found["keys"]["state"] == "error"
    assert "keys new" in found["keys"]["detail"]
    assert "nothing_of_this_name" in found["plug-ins"]["detail"]


def fail_to_save(redis: RedisServer) -> None:
    client = redis.client()
    client.config_set("save", "3600 1")
    # where a folder has its name, no snapshot can be put
    (redis.folder / "dump.rdb").mkdir()
    client.bgsave()
    deadline = time.monotonic() + PATIENCE_S
    while client.info("persistence")["rdb_last_bgsave_status"] == "ok":
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_redis_that_takes_no_writes_is_told(here: Site) -> None:
    found = {}
    with redis_server(password="of-redis") as redis:
        Cluster(here, redis)
        client = redis.client()
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        found["it is a replica", "replicaof no one"] = findings(here)
        client.execute_command("REPLICAOF", "NO", "ONE")
        client.config_set("min-replicas-to-write", 1)
        few = "it has fewer replicas than min-replicas-to-write"
        found[few, "min-replicas-to-write 0"] = findings(here)
        client.config_set("min-replicas-to-write", 0)
        memory = client.config_get("maxmemory")["maxmemory"]
        client.config_set("maxmemory", 1000)
        found["its memory is full", "raise its maxmemory"] = findings(here)
        client.config_set("maxmemory", memory)
        client.config_set("maxclients", 20)
        _, crowded = findings(here)
        fail_to_save(redis)
        found["its last snapshot failed", "make room on the disk"] = findings(here)

    assert crowded["connections"]["state"] == "warning"
    assert "of maxclients 20 are in use" in crowded["connections"]["detail"]
    for (why, remedy), (code, things) in found.items():
        assert code == 1
        assert things["Redis"]["state"] == "error"
        assert things["Redis"]["detail"] == f"Redis takes no writes: {why}"
        assert remedy in things["Redis"]["remedy"]


def test_a_redis_that_is_not_there(here: Site) -> None:
    here.configure({"messaging": {"redis_url": f"redis://127.0.0.1:{free_port()}/0"}})

    code, found = findings(here)

    assert code == 1
    assert "does not respond" in found["Redis"]["detail"]
