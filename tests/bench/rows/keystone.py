"""GET requests a second by keystoneauth1 in one process, against a bare loop of it."""

from __future__ import annotations

import json
from collections.abc import Callable

from bench.comparison import Comparison, Target
from bench.nginx import nginx
from bench.rounds import interleave
from bench.stage import Stage

NEEDS = ("redis", "nginx")

#: Pairs for each round of the bench: the values vary much.
PAIRS = 3


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """One worker process with one virtual user; a loop in one thread."""
    with nginx(stage) as server:
        url = server.url
        arms = {
            "osbench": lambda: {"osbench": _osbench(stage, url)},
            "bare": lambda: {
                "bare": float(stage.peer("keystoneauth_get.py", url, stage.block_s)["rate"])
            },
        }
        values = interleave(arms, stage.rounds * PAIRS, say)
    return [
        Comparison(
            row="keystone",
            title="keystoneauth1 GET, one process, nginx",
            unit="1/s",
            osbench=values["osbench"],
            peer_name="bare keystoneauth1 loop",
            peer=values["bare"],
            target=Target(bound=4.0),
        )
    ]


def _osbench(stage: Stage, url: str) -> float:
    stage.configure()
    record = stage.subfolder("deployment") / "cloud.json"
    admin = {"username": "bench", "password": "bench", "project_name": "bench"}
    names = {"user_domain_name": "Default", "project_domain_name": "Default"}
    cloud = {"auth_url": f"{url}v3", "admin": admin | names}
    record.write_text(json.dumps({"openstack": cloud}))
    stage.coord("deployment", "create", "--name", "cloud", "--file", str(record))
    runner = {"constant_for_duration": {"duration": stage.block_s, "concurrency": 1}}
    found = stage.run(
        {"scenario": {"Bench.keystoneauth_get": {"url": url}}, "runner": runner},
        *("--workers", "1"),
    )
    return float(found["workloads"][0]["throughput"]["ok_per_s"])
