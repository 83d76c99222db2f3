"""A day of virtual time in one run: `make world-day`.

Prints the memory of the process and the counts of the run at equal distances. Exit code 1 if an
iteration is not accounted for, a judge finds something, or memory grows by more than a limit.
Coordinator, workers, Redis and the record that the world keeps for its judges are one process.
"""

from __future__ import annotations

import world.ports  # noqa: F401 - before anything imports osbench

# isort: split

import argparse
import gc
import sys
import time
from collections.abc import Sequence

import psutil

from osbench.coordinator.load.run import load_loop
from osbench.worker.engine import engine
from world.coordinators import SimulatedRun
from world.fibers import S
from world.judges import judge
from world.scenes import staffed, sums
from world.world import World

HOUR_S = 3600
#: How long an iteration takes at least and at most, seconds.
LASTS = {"least_s": 5.0, "most_s": 15.0}
#: Length of a turn of the coordinator, as with a distant Redis, and between two looks of an engine
#: at its timeouts, seconds. At the usual 0.1 and 0.02 s a day takes some times as long to play.
TURN_S, LOOK_S = 0.5, 0.5
#: Until when the run has to be over after its load, and its workers free, seconds.
OVER_S, RELEASED_S = 600.0, 90.0
#: Growth of memory after the first of the printed instants at most, MB. Tables of latencies get
#: buckets for new latencies, and the world keeps each start for its judges.
GROWTH_MB = 24.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Play; return the exit code."""
    parser = argparse.ArgumentParser(prog="make world-day")
    parser.add_argument("--hours", type=float, default=24.0, help="virtual length of the load")
    parser.add_argument("--every", type=float, default=2.0, help="virtual hours between two lines")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--users", type=int, default=4, help="virtual users of the load")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    load_loop.READ_S = TURN_S  # type: ignore[misc]
    engine.WATCH_S = LOOK_S  # type: ignore[misc]
    begun = time.perf_counter()
    with staffed(given.workers, seed=given.seed) as played:
        gc.enable()
        load = {"duration": given.hours * HOUR_S, "concurrency": given.users}
        run = played.add(workers=given.workers, runner={"constant_for_duration": load}, args=LASTS)
        memory_mb = _watched(played, run, given.hours, given.every)
        problems = _problems(played, run, memory_mb)
        print(f"accounting: {sums(run) if run.summary else run.error}")
    print("\n".join(problems) or "all fits")
    print(f"{given.hours:g} virtual hours took {time.perf_counter() - begun:.0f} s")
    return int(bool(problems))


def _watched(played: World, run: SimulatedRun, hours: float, every_h: float) -> list[float]:
    """Play the load and print a line at equal distances; return the memory at each, MB."""
    print(f"{'hours':>6} {'memory, MB':>10} {'started':>8} {'ended':>8} {'turns':>9}", flush=True)
    memory_mb: list[float] = []
    at_h = 0.0
    while at_h < hours:
        at_h = min(hours, at_h + every_h)
        played.play(at_h * HOUR_S)
        gc.collect()
        memory_mb.append(psutil.Process().memory_info().rss / 1e6)
        known = run.known
        print(
            f"{at_h:6g} {memory_mb[-1]:10.1f} {len(known.starts):8,} "
            f"{known.ended.total():8,} {played.scheduler.switches:9,}",
            flush=True,
        )
    return memory_mb


def _problems(played: World, run: SimulatedRun, memory_mb: Sequence[float]) -> list[str]:
    is_over = played.play(played.scheduler.now / S + OVER_S)
    is_released = played.play_release(RELEASED_S)
    found = [
        f"{one.kind}: {one.detail}"
        for one in judge(played, is_over=is_over, is_released=is_released)
    ]
    if run.summary is not None:
        states, started = sums(run), len(run.known.starts)
        if not states["ok"] == states["planned"] == started:
            found.append(f"{started} iterations started, and the report has {states}")
    growth_mb = memory_mb[-1] - memory_mb[0]
    if growth_mb > GROWTH_MB:
        found.append(f"memory grew by {growth_mb:.1f} MB")
    return found


if __name__ == "__main__":
    sys.exit(main())
