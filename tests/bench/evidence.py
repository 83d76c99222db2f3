"""How often osbench's statistics are right: on synthetic runs whose truth is known.

    make statistics

prints the tables that docs/adr/0013-intervals-and-comparison.md quotes, and fails if intervals or
verdicts are wrong more often than they may be.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np

from bench.comparison_verdicts import comparisons
from bench.interval_coverage import coverage
from helpers.queue_runs import Queue, compared_run
from osbench.edges.history.comparison.compared_run import ComparedRun
from osbench.edges.history.comparison.trends import trend_of


def main() -> None:
    """Print all tables, or those named; exit with 1 if one ends with what is wrong."""
    wanted = sys.argv[1:] or [*TABLES]
    failed = False
    for name in wanted:
        for line in TABLES[name]():
            print(line, flush=True)
            failed = failed or line.startswith("wrong")
        print()
    sys.exit(failed)


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
