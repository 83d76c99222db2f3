"""`make far`: workers and coordinator at a distance from Redis, in a table.

python -m helpers.net_hosts.far [--seconds N]

Exit code 1 if an account does not fit, or a load is below 95 % of the load nearby.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from helpers.net_hosts.net_cluster import COORDINATOR, WORKERS, NetCluster, Verdict, net_cluster
from helpers.net_hosts.switch import Cable

#: Virtual users of each worker, how long an iteration takes, and arrivals per second.
USERS, TAKES_S, RATE = 200, 0.2, 500
#: Name, round trip to Redis in seconds, share of frames lost in each direction, bits per second.
CASES: tuple[tuple[str, float, float, float], ...] = (
    ("near", 0.0, 0.0, 0.0),
    ("5 ms", 0.005, 0.0, 0.0),
    ("30 ms", 0.03, 0.0, 0.0),
    ("100 ms", 0.1, 0.0, 0.0),
    ("30 ms, 0.1 % lost", 0.03, 0.001, 0.0),
    ("100 ms, 0.1 % lost", 0.1, 0.001, 0.0),
    ("30 ms, 1 % lost", 0.03, 0.01, 0.0),
    ("100 ms, 1 % lost", 0.1, 0.01, 0.0),
    ("30 ms, 10 Mbit/s", 0.03, 0.0, 10e6),
    ("100 ms, 1 % lost, 10 Mbit/s", 0.1, 0.01, 10e6),
)
NEAR = 0.95
_HEAD = (
    f"{'to Redis':28} {'load':7} {'code':>4} {'ok':>6} {'dropped':>7} {'lost':>5} {'held':>7} "
    f"{'rate':>9} {'lag p99':>9}"
)


def main() -> int:
    """Play all cases; return the exit code."""
    parser = argparse.ArgumentParser(prog="make far")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--cases", nargs="*", default=[one[0] for one in CASES])
    args = parser.parse_args()
    problems: list[str] = []
    near: dict[str, float] = {}
    print(_HEAD, flush=True)
    with net_cluster() as cluster:
        limits = {"benchmark": {"lag_limit_s": 0.1, "max_lag_s": 1.0}}
        cluster.site.configure(cluster.messaging, limits)
        for name, trip_s, lost, bits_s in CASES:
            if name not in args.cases:
                continue
            _set(cluster, Cable(delay_s=trip_s / 2, loss=lost, bits_s=bits_s))
            for load, runner in _loads(args.seconds):
                verdict = cluster.judge(cluster.start_run(_workload(cluster, load, runner)))
                rate = _rate(verdict)
                print(_line(name, load, verdict, rate), flush=True)
                for note in verdict.done.result["notes"]:
                    print(f"    {note}", flush=True)
                problems += [f"{name}: {one}" for one in verdict.problems]
                if rate < NEAR * near.setdefault(load, rate):
                    problems.append(f"{name}: {load} load at {rate / near[load]:.1%} of near")
                cluster.await_idle(len(WORKERS))
    print("\n".join(problems) or "all fits")
    return int(bool(problems))


def _set(cluster: NetCluster, cable: Cable) -> None:
    cluster.end_workers()
    cluster.hosts.mend()
    for host in (COORDINATOR, *WORKERS):
        cluster.hosts.cable(host, cable, cable)
    for name in WORKERS:
        cluster.start_on(name, "--virtual-users", str(USERS))
    cluster.await_idle(len(WORKERS))


def _loads(seconds: int) -> tuple[tuple[str, dict[str, Any]], ...]:
    users = USERS * len(WORKERS)
    closed = {"concurrency": users, "times": round(seconds * users / TAKES_S)}
    return (
        ("closed", {"constant": closed}),
        ("open", {"rps": {"rps": RATE, "duration": seconds}}),
    )


def _workload(cluster: NetCluster, load: str, runner: dict[str, Any]) -> dict[str, Any]:
    return cluster.workload(runner, sleep_s=TAKES_S if load == "closed" else 0.02)


def _rate(verdict: Verdict) -> float:
    """Iterations per second that started, by what ran on the hosts."""
    starts = sorted(line.at for line in verdict.lines if not line.answered)
    return (len(starts) - 1) / (starts[-1] - starts[0])


def _line(name: str, load: str, verdict: Verdict, rate: float) -> str:
    sums, workload = verdict.sums, verdict.workload
    held = workload["offered"]["concurrency_held"]
    lag_s = (workload.get("start_lag") or {}).get("p99")
    return (
        f"{name:28} {load:7} {verdict.done.code:>4} {sums['ok']:>6} {sums['dropped']:>7} "
        f"{sums['lost']:>5} {f'{held:.1%}' if held is not None else '':>7} {rate:>7.1f}/s "
        f"{f'{lag_s * 1e3:.2f} ms' if lag_s is not None else '':>9}"
    )


if __name__ == "__main__":
    sys.exit(main())
