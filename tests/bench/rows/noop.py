"""No-op iterations a second: two workers, a record of each iteration on disk."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from bench.celery_peer import POOLS, run_celery
from bench.comparison import Comparison, Target
from bench.locust import run_locust
from bench.rally import Rally
from bench.records import Watch
from bench.rounds import best, interleave
from bench.stage import WORKERS, Stage

NEEDS = ("redis",)

#: Virtual users of osbench; users of Locust and threads of Rally that are tried.
USERS = 16
LOCUST_USERS = (2, 16, 64)
RALLY_THREADS = (16, 64)
#: Length of a block in which the best of these is found, seconds.
TRIAL_S = 2.0


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """osbench without and with an atomic action, Locust, Rally, Celery."""
    rally = Rally(stage)
    users = best(LOCUST_USERS, lambda n: run_locust(stage, "locust_noop.py", n, TRIAL_S).rate)
    threads = best(RALLY_THREADS, lambda n: rally.noop_rate(n, TRIAL_S))
    pool = best(POOLS, lambda one: run_celery(stage, one, TRIAL_S))
    say(f"best: Locust with {users} users, Rally with {threads} threads, Celery with {pool[0]}")
    arms = {
        "osbench": lambda: _osbench(stage, "noop"),
        "Locust": lambda: {
            "locust": run_locust(stage, "locust_noop.py", users, stage.block_s).rate
        },
        "osbench, one action": lambda: _osbench(stage, "action"),
        "Rally": lambda: {"rally": rally.noop_rate(threads, stage.block_s)},
        "Celery": lambda: {"celery": run_celery(stage, pool, stage.block_s)},
    }
    values = interleave(arms, stage.rounds, say)
    locust = f"Locust, {WORKERS} workers, {users} users"
    peers = (
        ("noop", "no-op iterations", locust, "locust", 1.9),
        ("action", "iterations of one atomic action", locust, "locust", 1.0),
        ("noop", "no-op iterations", f"Rally, concurrency {threads}", "rally", 100.0),
        ("noop", "no-op iterations", f"one Celery task each, {pool[0]}", "celery", 300.0),
    )
    return [
        Comparison(
            row="noop",
            title=f"{what}, {WORKERS} workers",
            unit="1/s",
            osbench=values[ours],
            peer_name=name,
            peer=values[theirs],
            target=Target(bound=bound),
            note=f"all on disk; {median(values[f'{ours} ended']):,.0f}/s ended",
        )
        for ours, what, name, theirs, bound in peers
    ]


def _osbench(stage: Stage, scenario: str) -> dict[str, float]:
    stage.configure()
    stage.forget_runs()
    runner = {"constant_for_duration": {"duration": stage.block_s, "concurrency": USERS}}
    workload = {"scenario": {f"Bench.{scenario}": {}}, "runner": runner}
    with Watch(stage) as watch:
        found = stage.run(workload, "--workers", str(WORKERS))
    ended = found["workloads"][0]["throughput"]["ran_per_s"]
    return {scenario: watch.rate(stage, found), f"{scenario} ended": ended}
