"""How long the wheel's shortest commands take: help, and a run of one iteration in local mode."""

from __future__ import annotations

import resource
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
        "help": lambda: _seconds(stage, "help", "--help"),
        "run": lambda: _seconds(stage, "run", *run),
    }
    values = interleave(arms, stage.rounds, say)
    return [
        Comparison(
            row="start",
            title=title,
            unit="s",
            osbench=values[name],
            target=Target(bound=bound, at_most=True) if bound else None,
        )
        for name, title, bound in (
            ("help", "osbench-coord --help", 0.15),
            ("help CPU", "the same: CPU", None),
            ("run", "osbench-coord run of one iteration, local mode", 2.0),
            ("run CPU", "the same: CPU of all its processes", None),
        )
    ]


def _seconds(stage: Stage, name: str, *arguments: str) -> dict[str, float]:
    """Seconds by the clock, and of CPU of the command and what it has waited for."""
    begun, cpu = time.perf_counter(), _cpu_s()
    stage.coord(*arguments)
    return {name: time.perf_counter() - begun, f"{name} CPU": _cpu_s() - cpu}


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
