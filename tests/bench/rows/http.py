"""GET requests a second by native HttpRequests, against Locust's fast client and bare pycurl."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bench.comparison import Comparison, Target
from bench.locust import run_locust
from bench.nginx import nginx
from bench.rounds import Values, best, interleave
from bench.stage import WORKERS, Stage

NEEDS = ("redis", "nginx")

#: Virtual users of osbench, handles of bare pycurl -> the least of pycurl's rate.
USERS = {2: 0.95, 20: 1.3, 100: 1.8}
#: With how many users CPU is measured, TLS is, and Locust stands beside osbench.
MIDDLE = 20
CPU_US = 25.0
LOCUST_USERS = (8, 16, 64)
LOCUST_BOUND = 4.5
TRIAL_S = 2.0
#: Over TLS: what is measured -> the header of each request, and the least of pycurl's rate.
TLS = {"kept connections": ("", 0.9), "a new connection each": ("close", 0.9)}


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Two workers; nginx shares the machine."""
    with nginx(stage) as server:
        env = {"BENCH_URL": server.url}
        locust = best(
            LOCUST_USERS, lambda n: run_locust(stage, "locust_http.py", n, TRIAL_S, env).rate
        )
        say(f"best: Locust with {locust} users")
        arms: dict[str, Callable[[], dict[str, float]]] = {}
        for users in USERS:
            arms[f"osbench, {users} users"] = partial(_osbench, stage, server.url, users)
            arms[f"pycurl, {users} users"] = partial(_pycurl, stage, server.url, users)
        arms["Locust"] = lambda: {
            "locust": run_locust(stage, "locust_http.py", locust, stage.block_s, env).rate
        }
        for name, (connection, _) in TLS.items():
            over = {"authority": str(server.certificate), "connection": connection, "name": name}
            arms[f"osbench, TLS, {name}"] = partial(_osbench, stage, server.tls_url, MIDDLE, **over)
            arms[f"pycurl, TLS, {name}"] = partial(_pycurl, stage, server.tls_url, MIDDLE, **over)
        values = interleave(arms, stage.rounds, say)
    return _comparisons(values, f"Locust FastHttpUser, {locust} users")


def _comparisons(values: Values, locust: str) -> list[Comparison]:
    def line(title: str, key: str, peer_name: str, peer: str, bound: float) -> Comparison:
        return Comparison(
            row="http",
            title=f"HttpRequests GET, {WORKERS} workers, nginx, {title}",
            unit="1/s",
            osbench=values[key],
            peer_name=peer_name,
            peer=values[peer],
            target=Target(bound=bound),
        )

    middle = f"{MIDDLE} users"
    return [
        line(middle, f"osbench {middle}", locust, "locust", LOCUST_BOUND),
        *(
            line(f"{n} users", f"osbench {n} users", "bare pycurl", f"pycurl {n} users", bound)
            for n, bound in USERS.items()
        ),
        *(
            line(
                f"{middle}, TLS, {name}", f"osbench {name}", "bare pycurl", f"pycurl {name}", bound
            )
            for name, (_, bound) in TLS.items()
        ),
        Comparison(
            row="http",
            title=f"HttpRequests GET, {middle}: CPU of the workers for an iteration",
            unit="us",
            osbench=values[f"cpu {middle}"],
            target=Target(bound=CPU_US, at_most=True),
        ),
    ]


def _osbench(
    stage: Stage, url: str, users: int, authority: str = "", connection: str = "", name: str = ""
) -> dict[str, float]:
    stage.configure()
    request: dict[str, Any] = {"url": url, "method": "GET", "status_code": 200}
    if authority:
        request["verify"] = authority
    if connection:
        request["headers"] = {"Connection": connection}
    runner = {"constant_for_duration": {"duration": stage.block_s, "concurrency": users}}
    found = stage.run(
        {"scenario": {"HttpRequests.check_request": request}, "runner": runner},
        *("--workers", str(WORKERS)),
    )["workloads"][0]
    rate = float(found["throughput"]["ok_per_s"])
    name = name or f"{users} users"
    # of all threads of the processes, results and heartbeats included
    cores = sum(one["cpu_mean"] for one in found["workers"])
    return {f"osbench {name}": rate, f"cpu {name}": cores / rate * 1e6}


def _pycurl(
    stage: Stage, url: str, users: int, authority: str = "", connection: str = "", name: str = ""
) -> dict[str, float]:
    found = stage.peer(
        "pycurl_get.py",
        *("--url", url, "--seconds", stage.block_s),
        *("--processes", WORKERS, "--threads", users // WORKERS),
        *(("--authority", authority) if authority else ()),
        *(("--connection", connection) if connection else ()),
    )
    return {f"pycurl {name or f'{users} users'}": float(found["rate"])}
