"""What an iteration of one atomic action costs in the worker, against Locust's."""

from __future__ import annotations

from collections.abc import Callable

from bench.cluster import Cluster, cluster
from bench.comparison import Comparison, Target
from bench.locust import run_locust
from bench.rounds import interleave
from bench.stage import WORKERS, Stage

NEEDS = ("redis",)

USERS = 16


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Process CPU of all workers over a whole run, divided by its iterations."""
    with cluster(stage, WORKERS) as workers:
        arms = {
            "osbench": lambda: {"osbench": _osbench(workers)},
            "Locust": lambda: {
                "locust": run_locust(stage, "locust_noop.py", USERS, stage.block_s).cpu_us
            },
        }
        values = interleave(arms, stage.rounds, say)
    return [
        Comparison(
            row="cpu",
            title="worker CPU per iteration, one atomic action, not traced",
            unit="us",
            osbench=values["osbench"],
            peer_name=f"Locust, {USERS} users",
            peer=values["locust"],
            target=Target(bound=0.65, at_most=True),
        )
    ]


def _osbench(workers: Cluster) -> float:
    block_s = workers.stage.block_s
    workers.await_workers(WORKERS)
    before_s = workers.cpu_s()
    found = workers.run(
        {
            "scenario": {"Bench.action": {}},
            "enable_profiler": False,
            "runner": {"constant_for_duration": {"duration": block_s, "concurrency": USERS}},
        }
    )
    used_s = workers.cpu_s() - before_s
    return float(used_s / found["workloads"][0]["accounting"]["ok"] * 1e6)
