"""What the HTML report of a million iterations costs."""

from __future__ import annotations

from collections.abc import Callable

from bench.comparison import Comparison, Target
from bench.rounds import interleave
from bench.stage import BenchError, Stage

NEEDS = ()

ITERATIONS = 10**6


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Seconds from the run directory to the page, and the size of the page."""
    values = interleave({"osbench": lambda: _made(stage)}, stage.rounds, say)
    return [
        Comparison(
            row="report",
            title="HTML report of 10^6 iterations, from the run directory",
            unit="s",
            osbench=values["seconds"],
            target=Target(bound=10.0, at_most=True),
        ),
        Comparison(row="report", title="CPU for that", unit="s", osbench=values["cpu_s"]),
        Comparison(
            row="report",
            title="its size",
            unit="MB",
            osbench=values["size"],
            target=Target(bound=3.0, at_most=True),
        ),
    ]


def _made(stage: Stage) -> dict[str, float]:
    found = stage.harness("report", ITERATIONS)
    if not found["same"]:
        raise BenchError("two reports of one run differ")
    return {
        "seconds": float(found["seconds"]),
        "cpu_s": float(found["cpu_s"]),
        "size": float(found["bytes"]) / 1e6,
    }
