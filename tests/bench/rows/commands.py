"""Redis commands per iteration of the wheel at a fixed rate, not traced and traced."""

from __future__ import annotations

from collections.abc import Callable

from bench.cluster import Cluster, cluster
from bench.comparison import Comparison, Target
from bench.rounds import interleave
from bench.stage import WORKERS, Stage

NEEDS = ("redis",)

RATE = 10_000
#: Blocks that a run takes: what it costs to begin and to end is spread over its iterations.
LENGTH = 4


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """All that both servers were asked during a run: coordinator, workers, heartbeats, traces."""
    with cluster(stage.with_wheel(), WORKERS) as workers:
        arms = {
            "not traced": lambda: {"off": _osbench(workers, traced=False)},
            "traced": lambda: {"on": _osbench(workers, traced=True)},
        }
        values = interleave(arms, stage.rounds, say)
    return [
        Comparison(
            row="commands",
            title=f"Redis commands per iteration at {RATE:,}/s, {how}",
            unit="commands",
            osbench=values[key],
            target=Target(bound=bound, at_most=True),
        )
        for key, how, bound in (("off", "not traced", 0.01), ("on", "every one traced", 2.02))
    ]


def _osbench(workers: Cluster, *, traced: bool) -> float:
    times = workers.stage.count(RATE) * LENGTH
    workers.await_workers(WORKERS)
    before = workers.commands()
    workers.run(
        {
            "scenario": {"Bench.action": {}},
            "enable_profiler": traced,
            "runner": {"rps": {"rps": RATE, "times": times}},
        }
    )
    return (workers.commands() - before) / times
