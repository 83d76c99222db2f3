"""How long the traces of a run take at its end, in a trace store that holds many others."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from bench.comparison import Comparison, Target
from bench.rounds import interleave
from bench.stage import Stage

NEEDS = ()

TRACES, READ = 10_000, 20


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Ten times as many traces in the store, 12 events each; OSProfiler reads a few of them."""
    found = interleave(
        {"osbench": lambda: stage.harness("traces", "--traces", TRACES, "--read", READ)},
        stage.rounds,
        say,
    )
    reader_s = median(found["reader_s"])
    return [
        Comparison(
            row="traces",
            title=f"{TRACES:,} traces among {10 * TRACES:,}: read, explained, the rest deleted",
            unit="s",
            osbench=found["collect_s"],
            target=Target(bound=5.0, at_most=True),
            note=f"OSProfiler's own reader takes {reader_s:.1f} s for {READ} of them",
        ),
        Comparison(
            row="traces",
            title="CPU of the coordinator for that",
            unit="s",
            osbench=found["cpu_s"],
        ),
        Comparison(
            row="traces",
            title="what that takes of memory",
            unit="MB",
            osbench=tuple(grown / 1e6 for grown in found["grown"]),
            target=Target(bound=100.0, at_most=True),
        ),
    ]
