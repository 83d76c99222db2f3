"""GET requests a second by a native OpenStack scenario, against a bare loop of keystoneauth1."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bench.cluster import HMAC_KEY
from bench.comparison import Comparison, Target
from bench.nginx import nginx
from bench.rounds import interleave
from bench.stage import BenchError, Stage
from helpers.fake_keystone import PASSWORD, USER, FakeKeystone, fake_keystone
from servers import redis_server

NEEDS = ("redis", "nginx")

#: Rounds for each round of the bench: the values vary much.
PAIRS = 2
PATH = "things"


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """One worker process with one virtual user; a loop in one thread; each with a token."""
    with nginx(stage) as server, fake_keystone() as keystone, redis_server() as store:
        url = keystone.catalogued = server.url
        cloud = _cloud(keystone)
        traced = {"profiler_hmac_key": HMAC_KEY, "profiler_conn_str": store.url}
        arms = {
            "osbench": lambda: {"osbench": _osbench(stage, cloud)},
            "bare": lambda: {"bare": _bare(stage, cloud, url)},
            "osbench, traced": lambda: {"traced": _osbench(stage, cloud | traced)},
        }
        values = interleave(arms, stage.rounds * PAIRS, say)
    return [
        Comparison(
            row="client",
            title=f"OpenStack.request GET, one process, nginx{more}",
            unit="1/s",
            osbench=values[key],
            peer_name="bare keystoneauth1 loop, not traced",
            peer=values["bare"],
            target=Target(bound=bound),
        )
        for key, more, bound in (("osbench", "", 3.5), ("traced", ", each traced", 2.5))
    ]


def _osbench(stage: Stage, cloud: dict[str, Any]) -> float:
    stage.configure(traces={"collect": False})
    record = stage.subfolder("deployment") / "cloud.json"
    record.touch(mode=0o600)
    record.write_text(json.dumps({"openstack": cloud}))
    stage.coord("deployment", "create", "--name", "cloud", "--file", str(record))
    runner = {"constant_for_duration": {"duration": stage.block_s, "concurrency": 1}}
    request = {"service_type": "thing", "path": PATH, "status": 200}
    found = stage.run(
        {"scenario": {"OpenStack.request": request}, "runner": runner},
        *("--workers", "1"),
    )["workloads"][0]
    if "profiler_hmac_key" in cloud and found["tracing"]["traced"] != found["accounting"]["ok"]:
        raise BenchError(f"not every iteration was traced: {found['tracing']}")
    return float(found["throughput"]["ok_per_s"])


def _bare(stage: Stage, cloud: dict[str, Any], url: str) -> float:
    credential = {"auth_url": cloud["auth_url"], **cloud["admin"]}
    found = stage.peer(
        *("keystoneauth_get.py", f"{url}{PATH}", stage.block_s),
        env={"BENCH_CREDENTIAL": json.dumps(credential)},
    )
    return float(found["rate"])


def _cloud(keystone: FakeKeystone) -> dict[str, Any]:
    admin = {"username": USER, "password": PASSWORD, "project_name": "bench"}
    names = {"user_domain_name": "Default", "project_domain_name": "Default"}
    return {"auth_url": keystone.auth_url, "admin": admin | names}
