"""Judges of a world that is over: each module has one invariant, and knows nothing of faults."""

from __future__ import annotations

from collections.abc import Iterator

from world.judges import accounts, disk, endings, needless, shares, starts, times, users
from world.judges.finding import Finding
from world.world import World

__all__ = ["Finding", "judge"]


def judge(world: World, *, is_over: bool, is_released: bool) -> Iterator[Finding]:
    """What broke. `is_over`: all runs have ended; `is_released`: no worker waits for one."""
    yield from endings.of_world(world, is_over=is_over, is_released=is_released)
    for run in world.runs.values():
        yield from endings.of_run(run)
        # two histories of one run, and nobody who could tell them apart (ADR 17)
        if run.summary is None or run.services is None or run.restored:
            continue
        for module in (accounts, starts, needless, disk, times, users, shares):
            yield from module.of_run(run)
