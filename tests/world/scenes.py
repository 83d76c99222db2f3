"""Scenes: worlds with scripted faults at chosen instants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import read_timeline
from world.coordinators import SimulatedRun
from world.fibers import S
from world.judges import Finding, judge
from world.world import World

#: How long an iteration takes at least and at most, seconds.
SHORT = {"least_s": 0.02, "most_s": 0.02}
MEDIUM = {"least_s": 0.04, "most_s": 0.08}


def staffed(workers: int = 2, *, seed: int = 1, trace: bool = False, apart: bool = False) -> World:
    """A world with some workers, in which no arrival and no thread is too late."""
    world = World(seed, trace=trace, broker_apart=apart)
    for name in ("max_lag_s", "lag_limit_s"):
        world.conf.set_override(name, 600.0, "benchmark")
    for _ in range(workers):
        world.hire()
    return world


def closed(times: int, concurrency: int = 6) -> dict[str, Any]:
    """A runner of a closed load."""
    return {"constant": {"times": times, "concurrency": concurrency}}


def open_load(rate: int, seconds: int) -> dict[str, Any]:
    """A runner of an open load."""
    return {"rps": {"rps": rate, "times": rate * seconds}}


def play_out(world: World) -> list[Finding]:
    """Play to the end of all runs and until all workers are free; what the judges found."""
    is_over = world.play(1200.0)
    is_released = world.play_release(90.0)
    return list(judge(world, is_over=is_over, is_released=is_released))


def when(world: World, is_so: Callable[[], object], act: Callable[[], object]) -> None:
    """Act as soon as something is so, to the millisecond."""

    def look() -> None:
        if is_so():
            act()
        else:
            world.scheduler.after(0.001, look)

    look()


def until(world: World, seconds: float) -> int:
    """An instant so long from now."""
    return world.scheduler.now + int(seconds * S)


def report(run: SimulatedRun) -> dict[str, Any]:
    """What the report says."""
    assert run.summary is not None
    return run.summary


def workload(run: SimulatedRun) -> dict[str, Any]:
    """The only workload of the report."""
    (found,) = report(run)["workloads"]
    return dict(found)


def sums(run: SimulatedRun) -> dict[str, Any]:
    """The accounting of the only workload in the report."""
    return dict(workload(run)["accounting"])


def marks(run: SimulatedRun) -> list[dict[str, Any]]:
    """The marks of the charts of the only workload."""
    found = read_timeline(RunDirectory(run.folder))
    assert found is not None
    return list(found["workloads"][0]["marks"])


def code_and_ok(run: SimulatedRun) -> tuple[int, int]:
    """The exit code, and how many iterations ended ok."""
    return report(run)["exit_code"], sums(run)["ok"]
