"""Start lag at a fixed rate, against a pacer that hands arrivals to threads through a queue."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from bench.comparison import Comparison, Target
from bench.rounds import interleave
from bench.stage import WORKERS, Stage

NEEDS = ("redis",)

RATE = 1_000
SLEEP_S = 0.01
THREADS = 64
#: Shortest block, seconds: of fewer arrivals the tail says nothing.
LEAST_S = 10.0
SHOWN = {"p50": "p50", "p99": "p99", "p999": "p99.9"}
PERCENTILES = tuple(SHOWN)
#: Bounds of the ratio by percentile: of an ordinary user, and with `[worker] realtime`.
ORDINARY = dict(zip(PERCENTILES, (0.35, 2.0, 1.0), strict=True))
REALTIME = dict(zip(PERCENTILES, (0.35, 0.4, 0.5), strict=True))


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Percentiles over all iterations of a block, all over two processes."""
    variants = {"osbench": ("an ordinary user", ORDINARY)}
    arms = {"osbench": lambda: _osbench(stage, "osbench", realtime=False)}
    if realtime_allowed():
        variants["real-time"] = ("[worker] realtime", REALTIME)
        arms["real-time"] = lambda: _osbench(stage, "real-time", realtime=True)
    else:
        say("no real-time: this user may not use SCHED_RR (docs/performance.md)")
    arms["pacer"] = lambda: _pacer(stage)
    values = interleave(arms, stage.rounds, say)
    return [
        Comparison(
            row="lag",
            title=f"start lag at {RATE:,}/s of 10 ms each, {WORKERS} workers, {how}, {SHOWN[name]}",
            unit="ms",
            osbench=values[f"{variant} {name}"],
            peer_name="one pacer thread and a queue",
            peer=values[f"pacer {name}"],
            target=Target(bound=bounds[name], at_most=True),
        )
        for variant, (how, bounds) in variants.items()
        for name in PERCENTILES
    ]


def realtime_allowed() -> bool:
    """Whether this user may use SCHED_RR; tried in a process of its own."""
    program = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    tried = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    return tried.returncode == 0


def _count(stage: Stage) -> int:
    return max(stage.count(RATE), round(RATE * LEAST_S))


def _osbench(stage: Stage, variant: str, *, realtime: bool) -> dict[str, float]:
    stage.configure(worker={"realtime": realtime})
    runner = {"rps": {"rps": RATE, "times": _count(stage)}}
    workload = {"scenario": {"Bench.sleep": {"sleep_s": SLEEP_S}}, "runner": runner}
    lag = stage.run(workload, "--workers", str(WORKERS))["workloads"][0]["start_lag"]
    return {f"{variant} {name}": lag[name] * 1e3 for name in PERCENTILES}


def _pacer(stage: Stage) -> dict[str, float]:
    arguments = {
        "--rate": RATE,
        "--count": _count(stage),
        "--sleep-s": SLEEP_S,
        "--processes": WORKERS,
        "--threads": THREADS,
    }
    found = stage.peer("pacer_queue.py", *(part for pair in arguments.items() for part in pair))
    return {f"pacer {name}": found[name] for name in PERCENTILES}
