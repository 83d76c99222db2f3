"""GET requests per second of CPU of the client, beside clients in C, Go and Python."""

from __future__ import annotations

import re
from collections.abc import Callable

from bench.comparison import Comparison, Target
from bench.locust import run_locust
from bench.nginx import nginx
from bench.rounds import interleave
from bench.stage import WORKERS, BenchError, Stage

NEEDS = ("redis", "nginx", "wrk", "hey")

USERS = 20
#: The least of each peer's value.
BOUNDS = {"wrk": 0.5, "bare pycurl": 1.8, "Locust FastHttpUser": 3.0, "hey": None}


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """CPU of the processes that make the load: of osbench and Locust, the workers."""
    with nginx(stage) as server:
        arms = {
            "osbench": lambda: {"osbench": _osbench(stage, server.url)},
            "wrk": lambda: {"wrk": _wrk(stage, server.url)},
            "hey": lambda: {"hey": _hey(stage, server.url)},
            "bare pycurl": lambda: {"bare pycurl": _pycurl(stage, server.url)},
            "Locust FastHttpUser": lambda: {"Locust FastHttpUser": _locust(stage, server.url)},
        }
        values = interleave(arms, stage.rounds, say)
    return [
        Comparison(
            row="core",
            title=f"GET requests per second of CPU of the client, {USERS} users, nginx",
            unit="1/s",
            osbench=values["osbench"],
            peer_name=name,
            peer=values[name],
            target=None if bound is None else Target(bound=bound),
        )
        for name, bound in BOUNDS.items()
    ]


def _osbench(stage: Stage, url: str) -> float:
    stage.configure()
    request = {"url": url, "method": "GET", "status_code": 200}
    runner = {"duration": stage.block_s, "concurrency": USERS}
    found = stage.run(
        {
            "scenario": {"HttpRequests.check_request": request},
            "runner": {"constant_for_duration": runner},
        },
        *("--workers", str(WORKERS)),
    )["workloads"][0]
    cores = sum(one["cpu_mean"] for one in found["workers"])
    return float(found["throughput"]["ok_per_s"]) / cores


def _wrk(stage: Stage, url: str) -> float:
    seconds = round(stage.block_s)
    found = stage.peer(
        "command_cpu.py", "wrk", "-t", WORKERS, "-c", USERS, "-d", f"{seconds}s", url
    )
    return _number(r"(\d+) requests in", found["said"]) / found["cpu_s"]


def _hey(stage: Stage, url: str) -> float:
    seconds = round(stage.block_s)
    found = stage.peer("command_cpu.py", "hey", "-c", USERS, "-z", f"{seconds}s", url)
    return _number(r"\[200\]\s+(\d+) responses", found["said"]) / found["cpu_s"]


def _number(pattern: str, said: str) -> float:
    found = re.search(pattern, said)
    if found is None:
        raise BenchError(f"no number of requests among:\n{said}")
    return float(found[1])


def _pycurl(stage: Stage, url: str) -> float:
    found = stage.peer(
        "command_cpu.py",
        *(stage.peers, "pycurl_get.py", "--url", url, "--seconds", stage.block_s),
        *("--processes", WORKERS, "--threads", USERS // WORKERS),
    )
    return _number(r'"count": (\d+)', found["said"]) / found["cpu_s"]


def _locust(stage: Stage, url: str) -> float:
    run = run_locust(stage, "locust_http.py", USERS, stage.block_s, {"BENCH_URL": url})
    return 1e6 / run.cpu_us
