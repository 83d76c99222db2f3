"""GET requests a second by native HttpRequests, against Locust's fast client and bare pycurl."""

from __future__ import annotations

from collections.abc import Callable

from bench.comparison import Comparison, Target
from bench.locust import run_locust
from bench.nginx import nginx
from bench.rounds import best, interleave
from bench.stage import WORKERS, Stage

NEEDS = ("redis", "nginx")

#: Virtual users of osbench, handles of bare pycurl; users of Locust that are tried.
USERS = 8
LOCUST_USERS = (8, 16, 64)
TRIAL_S = 2.0


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Two workers; nginx shares the machine."""
    with nginx(stage) as url:
        env = {"BENCH_URL": url}
        users = best(
            LOCUST_USERS, lambda n: run_locust(stage, "locust_http.py", n, TRIAL_S, env).rate
        )
        say(f"best: Locust with {users} users")
        arms = {
            "osbench": lambda: {"osbench": _osbench(stage, url)},
            "Locust": lambda: {
                "locust": run_locust(stage, "locust_http.py", users, stage.block_s, env).rate
            },
            "pycurl": lambda: {"pycurl": _pycurl(stage, url)},
        }
        values = interleave(arms, stage.rounds, say)
    peers = (
        (f"Locust FastHttpUser, {users} users", "locust", 1.6),
        ("bare pycurl", "pycurl", 0.7),
    )
    return [
        Comparison(
            row="http",
            title=f"HttpRequests GET, {WORKERS} workers, nginx",
            unit="1/s",
            osbench=values["osbench"],
            peer_name=name,
            peer=values[key],
            target=Target(bound=bound),
        )
        for name, key, bound in peers
    ]


def _osbench(stage: Stage, url: str) -> float:
    stage.configure()
    request = {"url": url, "method": "GET", "status_code": 200}
    runner = {"constant_for_duration": {"duration": stage.block_s, "concurrency": USERS}}
    found = stage.run(
        {"scenario": {"HttpRequests.check_request": request}, "runner": runner},
        *("--workers", str(WORKERS)),
    )
    return float(found["workloads"][0]["throughput"]["ok_per_s"])


def _pycurl(stage: Stage, url: str) -> float:
    found = stage.peer(
        "pycurl_get.py",
        *("--url", url, "--seconds", stage.block_s),
        *("--processes", WORKERS, "--threads", USERS // WORKERS),
    )
    return float(found["rate"])
