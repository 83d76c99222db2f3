"""What workers and iterations cost one coordinator and one Redis; simulated workers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict

import numpy as np
import psutil

from bench.comparison import Comparison
from bench.stage import BenchError, Stage
from simulation.figures import PRIORITY, Figures, prefer, simulate

NEEDS = ()

#: Workers and iterations a second of each run.
POINTS = ((10, 1_000), (50, 1_000), (200, 1_000), (50, 20_000), (200, 20_000), (200, 100_000))
#: Other points, such as "300x10000 500x10000": workers and iterations a second.
OTHERS = os.environ.get("OSBENCH_SCALE_POINTS", "")
#: Length of a load, seconds, at least.
LOAD_S = 12.0


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Runs of an open load on 10 to 200 workers; CPU is that of the middle of the load.

    The cost of a worker, a block and 1,000 iterations is fitted to `POINTS` alone.
    """
    # who measures must not come late
    prefer(PRIORITY, psutil.Process())
    seconds = max(LOAD_S, stage.block_s * 2)
    points = read_points(OTHERS) if OTHERS else list(POINTS)
    found: dict[tuple[int, int], list[Figures]] = {point: [] for point in points}
    for _ in range(stage.rounds):
        for workers, rate in points:
            runner = {"rps": {"rps": rate, "times": round(rate * seconds)}}
            figures = simulate(stage, workers, runner, seconds)
            found[workers, rate].append(figures)
            say(", ".join(f"{name} {_short(value)}" for name, value in asdict(figures).items()))
    rows: list[Comparison] = []
    for (workers, rate), several in found.items():
        rows += _point(f"{workers} workers, {rate:,}/s", several)
    return rows if OTHERS else [*rows, *_fitted(list(found.values()))]


def read_points(text: str) -> list[tuple[int, int]]:
    """Return workers and rate of each point. Raises BenchError."""
    found = []
    for point in text.split():
        numbers = re.fullmatch(r"(\d+)x(\d+)", point)
        if numbers is None:
            raise BenchError(f"point {point!r}: expected WORKERSxRATE")
        workers, rate = numbers.groups()
        found.append((int(workers), int(rate)))
    return found


def _point(what: str, several: Sequence[Figures]) -> list[Comparison]:
    columns: dict[str, tuple[str, Callable[[Figures], float]]] = {
        "coordinator, CPU": ("cores", lambda one: one.coordinator_cpu),
        "Redis, CPU": ("cores", lambda one: one.redis_cpu),
        "coordinator, memory": ("MB", lambda one: one.coordinator_mb),
        "Redis, commands": ("1/s", lambda one: one.commands_per_s),
        "Redis, bytes in": ("MB/s", lambda one: one.in_bytes_per_s / 1e6),
        "coordinator not heard, p99": ("s", lambda one: one.unheard_s[1]),
        "coordinator not heard, most": ("s", lambda one: one.unheard_s[2]),
        "start of the load": ("s", lambda one: one.start_s),
        "end of the load to the report": ("s", lambda one: one.end_s),
    }
    return [
        _row(f"{name}: {what}", unit, tuple(map(value, several)))
        for name, (unit, value) in columns.items()
    ]


def _fitted(points: Sequence[Sequence[Figures]]) -> list[Comparison]:
    """What fits the points best, round by round."""
    parts = (
        ("without workers", "ms/s", 1e3),
        ("of a worker", "ms/s", 1e3),
        ("of a block and a batch", "ms", 1e3),
        ("of 1,000 iterations", "ms", 1e6),
    )
    rows = []
    for whose in ("coordinator", "redis"):
        found = [
            costs(
                [
                    ((one.workers, one.blocks_per_s, one.rate), getattr(one, f"{whose}_cpu"))
                    for one in several
                ]
            )
            for several in zip(*points, strict=True)
        ]
        for at, (what, unit, scale) in enumerate(parts):
            values = tuple(one[at] * scale for one in found)
            rows.append(_row(f"{whose}, CPU {what}", unit, values))
    return rows


def costs(points: Sequence[tuple[tuple[float, ...], float]]) -> list[float]:
    """What one of each costs: first what is there without any of them. Least squares.

    `points` are how many there are of each, a second, and CPU seconds a second.
    """
    factors = np.array([[1.0, *counts] for counts, _ in points])
    # of the same size, so that none of them is fitted worse than another
    sizes = factors.max(axis=0)
    found = np.linalg.lstsq(factors / sizes, np.array([cpu for _, cpu in points]), rcond=None)[0]
    return [float(one) for one in found / sizes]


def _row(title: str, unit: str, values: tuple[float, ...]) -> Comparison:
    return Comparison(row="scale", title=title, unit=unit, osbench=values)


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
