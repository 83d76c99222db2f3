"""How often osbench's statistics are right: on synthetic runs whose truth is known.

    make statistics

prints the table that docs/adr/0013-intervals-and-comparison.md quotes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np

from helpers.queue_runs import Queue, compared_run, side
from osbench.coordinator.comparison.compared_run import ComparedRun
from osbench.coordinator.comparison.comparing import compare_sides
from osbench.coordinator.comparison.evidence import Evidence
from osbench.coordinator.comparison.trends import trend_of
from osbench.coordinator.statistics.block_intervals import block_intervals

#: Queues of which coverage is shown: arrivals a second, seconds.
SHAPES = ((100, 60), (100, 200), (500, 200), (100, 600), (20, 600), (100, 1800))
PERCENTS = (50.0, 95.0, 99.0)
RUNS = 2000


def main() -> None:
    """Print all tables."""
    wanted = sys.argv[1:] or [*TABLES]
    for name in wanted:
        for line in TABLES[name]():
            print(line, flush=True)
        print()


def coverage() -> Iterator[str]:
    """How many of the intervals of a run's percentiles hold the true one."""
    yield f"Coverage of 95 % intervals, {RUNS} runs of M/M/1; in brackets: runs with an interval"
    yield f"{'arrivals':>9} {'seconds':>8} {'load':>5}" + "".join(
        f"{f'p{p:g}':>16}" for p in PERCENTS
    )
    for rate, duration_s in SHAPES:
        for load in (0.5, 0.8):
            queue = Queue(rate=rate, load=load, duration_s=duration_s)
            cells = (
                f"{'-' if not hits else f'{np.mean(hits):.1%}':>7} ({len(hits) / RUNS:4.0%}) "
                for hits in held(queue, RUNS).values()
            )
            yield f"{rate:>8}/s {duration_s:>8} {load:>5}" + "".join(
                f"{cell:>16}" for cell in cells
            )


def held(queue: Queue, runs: int, seed: int = 1) -> dict[float, list[bool]]:
    """By percentile: of each run that has an interval, whether it holds the true percentile."""
    random = np.random.default_rng(seed)
    found: dict[float, list[bool]] = {percent: [] for percent in PERCENTS}
    for _ in range(runs):
        intervals = block_intervals(queue.matrix(random), PERCENTS)
        assert intervals is not None
        for one in intervals.estimates:
            if one.interval_ns:
                low, high = one.interval_ns
                found[one.percent].append(low <= queue.percentile_s(one.percent) * 1e9 <= high)
    return found


def comparisons() -> Iterator[str]:
    """How often comparisons of equal and of different servers say what is so."""
    pairs = 200
    yield f"Verdicts of {pairs} comparisons of 5 + 5 runs of 200 s, which differ by 2 % anyway"
    yield f"{'load':>5} {'B is':>14} {'worse':>7} {'better':>7} {'mixed':>7} {'no evidence':>12}"
    for load in (0.5, 0.8):
        for slower in (1.0, 1.1):
            found = verdicts(Queue(load=load), pairs, slower)
            name = "equal" if slower == 1 else "10 % slower"
            yield f"{load:>5} {name:>14}" + "".join(
                f"{found.count(word) / pairs:>{width}.1%}"
                for word, width in (("worse", 8), ("better", 8), ("mixed", 8), ("no evidence", 13))
            )


def verdicts(queue: Queue, pairs: int, slower: float = 1.0, seed: int = 1) -> list[str]:
    """Verdicts of comparisons of 5 + 5 runs, the second five of a server that is slower."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(pairs):
        before, after = side(queue, random, "A"), side(queue, random, "B", slower=slower)
        found.append(str(compare_sides(Evidence(before=before, after=after)).verdict))
    return found


def trends() -> Iterator[str]:
    """How often trends find a step, and one where there is none."""
    series, queue = 30, Queue(rate=500, duration_s=120)
    yield f"Change points in {series} series of 30 runs of 120 s, which differ by 2 % anyway"
    for step, name in ((1.0, "equal runs"), (1.05, "5 % slower from run 16 on")):
        random = np.random.default_rng(1)
        found = [trend_of(trend_runs(queue, random, step=step)) for _ in range(series)]
        some = sum(any(one.changes for one in trend.series) for trend in found)
        yield f"{name:>26}: found in {some} of {series}"


def trend_runs(
    queue: Queue, random: np.random.Generator, *, count: int = 30, step: float = 1.0
) -> list[ComparedRun]:
    """Runs of which the later half takes `step` times as long."""
    found = []
    for number in range(count):
        at, values = queue.run(random)
        by = np.exp(random.normal(0, 0.02)) * (step if number >= count // 2 else 1)
        one = (at, (values * by).astype(np.int64))
        found.append(compared_run(f"run{number}", one, rate=queue.rate))
    return found


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "coverage": coverage,
    "comparisons": comparisons,
    "trends": trends,
}

if __name__ == "__main__":
    main()
