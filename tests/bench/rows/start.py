"""How long the wheel's shortest commands take: help, and a run of one iteration in local mode."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.comparison import Comparison, Target
from bench.rounds import interleave
from bench.stage import Stage

NEEDS = ("redis",)


def measure(stage: Stage, say: Callable[[str], None]) -> list[Comparison]:
    """Seconds from the start of a command to its end."""
    stage = stage.with_wheel()
    stage.configure()
    run = ("run", "--scenario", "Dummy.dummy", "--times", "1", "--quiet")
    # what is read for the first time comes from the disk, and is compiled
    stage.coord(*run)
    arms = {
        "help": lambda: {"help": _seconds(stage, "--help")},
        "run": lambda: {"run": _seconds(stage, *run)},
    }
    values = interleave(arms, stage.rounds, say)
    return [
        Comparison(
            row="start",
            title=title,
            unit="s",
            osbench=values[name],
            target=Target(bound=bound, at_most=True),
        )
        for name, title, bound in (
            ("help", "osbench-coord --help", 0.15),
            ("run", "osbench-coord run of one iteration, local mode", 2.0),
        )
    ]


def _seconds(stage: Stage, *arguments: str) -> float:
    begun = time.perf_counter()
    stage.coord(*arguments)
    return time.perf_counter() - begun
