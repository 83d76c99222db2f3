"""What a traced iteration costs in the worker, against OSProfiler with its Redis driver."""

from __future__ import annotations

from collections.abc import Callable

from bench.cluster import Cluster, cluster
from bench.comparison import Comparison, Target
from bench.rounds import interleave
from bench.stage import BenchError, Stage
from servers import redis_server

NEEDS = ("redis",)

THREADS = (8, 64)
#: Iterations that a second of a block is good for, roughly.
OSBENCH_PER_S = 10_000
PEER_PER_S = 800


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """One worker process, every iteration traced: a root span and one atomic action."""
    with cluster(stage, 1) as workers, redis_server() as store:
        arms: dict[str, Callable[[], dict[str, float]]] = {}
        for threads in THREADS:
            arms[f"osbench, {threads} threads"] = lambda threads=threads: {  # type: ignore[misc]
                f"osbench {threads}": _osbench(workers, threads)
            }
            arms[f"OSProfiler, {threads} threads"] = lambda threads=threads: {  # type: ignore[misc]
                f"peer {threads}": _inline(stage, store.url, threads)
            }
        values = interleave(arms, stage.rounds, say)
    return [
        Comparison(
            row="traced",
            title=f"worker CPU per traced iteration, {threads} threads",
            unit="us",
            osbench=values[f"osbench {threads}"],
            peer_name="OSProfiler, Redis driver inline",
            peer=values[f"peer {threads}"],
            target=Target(bound=0.12, at_most=True),
            note="all spans written",
        )
        for threads in THREADS
    ]


def _osbench(workers: Cluster, threads: int) -> float:
    times = workers.stage.count(OSBENCH_PER_S)
    workers.await_workers(1)
    before_s = workers.cpu_s()
    found = workers.run(
        {
            "scenario": {"Bench.action": {}},
            "runner": {"constant": {"times": times, "concurrency": threads}},
        }
    )
    used_s = workers.cpu_s() - before_s
    if found["workloads"][0]["tracing"]["traced"] != times:
        raise BenchError(f"not every iteration was traced: {found['workloads'][0]['tracing']}")
    return used_s / times * 1e6


def _inline(stage: Stage, store: str, threads: int) -> float:
    found = stage.peer(
        "osprofiler_inline.py",
        *("--threads", threads, "--iterations", stage.count(PEER_PER_S)),
        env={"BENCH_STORE": store},
    )
    return float(found["cpu_us"])
