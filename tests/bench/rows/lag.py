"""Start lag at a fixed rate, against a pacer that hands arrivals to threads through a queue."""

from __future__ import annotations

from collections.abc import Callable

from bench.comparison import Comparison, Target
from bench.rounds import interleave
from bench.stage import WORKERS, Stage

NEEDS = ("redis",)

RATE = 1_000
SLEEP_S = 0.01
THREADS = 64


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Percentiles over all iterations of a block, both over two processes."""
    arms = {"osbench": lambda: _osbench(stage), "pacer": lambda: _pacer(stage)}
    values = interleave(arms, stage.rounds, say)
    return [
        Comparison(
            row="lag",
            title=f"start lag at {RATE:,}/s of 10 ms each, {WORKERS} workers, {name}",
            unit="ms",
            osbench=values[f"osbench {name}"],
            peer_name="one pacer thread and a queue",
            peer=values[f"pacer {name}"],
            target=Target(bound=bound, at_most=True),
        )
        for name, bound in (("p50", 0.5), ("p99", 0.8))
    ]


def _osbench(stage: Stage) -> dict[str, float]:
    stage.configure()
    runner = {"rps": {"rps": RATE, "times": stage.count(RATE)}}
    workload = {"scenario": {"Bench.sleep": {"sleep_s": SLEEP_S}}, "runner": runner}
    lag = stage.run(workload, "--workers", str(WORKERS))["workloads"][0]["start_lag"]
    return {f"osbench {name}": lag[name] * 1e3 for name in ("p50", "p99")}


def _pacer(stage: Stage) -> dict[str, float]:
    arguments = {
        "--rate": RATE,
        "--count": stage.count(RATE),
        "--sleep-s": SLEEP_S,
        "--processes": WORKERS,
        "--threads": THREADS,
    }
    found = stage.peer("pacer_queue.py", *(part for pair in arguments.items() for part in pair))
    return {f"pacer {name}": found[name] for name in ("p50", "p99")}
