"""Runs whose coordinators are killed: when something holds, at a call, or at a wait."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from osbench.common.errors import StoreError
from osbench.coordinator.results.storage import resumable
from world import present
from world.coordinators import STATES, SimulatedRun
from world.scenes import play_out, when
from world.world import World

#: Until a run is resumed whose coordinator was killed, seconds.
RESUMED_S = 0.5


def added(
    world: World, runner: dict[str, Any], *, slot_s: float = 0.01, **more: Any
) -> SimulatedRun:
    """A run of one workload that notes what it does."""
    args = {"name": "one", "judged": True, "fails": 1_000_000, "slot_s": slot_s}
    document = {"scenario": {"Noted.work": args}, "runner": runner, **more}
    return begun(world, document)


def begun(world: World, *documents: dict[str, Any]) -> SimulatedRun:
    """A run of some workloads, one after the other."""
    subtasks = [{"title": str(number), **one} for number, one in enumerate(documents)]
    task = {"version": 2, "title": "scene", "subtasks": subtasks}
    return world.begin(task, at_s=0.0, workers=2)


def played(world: World) -> None:
    """Play a world to its end; no judge finds anything."""
    assert play_out(world) == []


def sums(run: SimulatedRun, workload: int = 0) -> dict[str, Any]:
    """The accounting of a workload in the report; its states sum to the plan."""
    assert run.summary is not None
    found: dict[str, Any] = run.summary["workloads"][workload]["accounting"]
    assert sum(found[state] for state in STATES) == found["planned"]
    return found


def under_load(run: SimulatedRun, act: Callable[[], object], most: int = 0) -> None:
    """Act as soon as more iterations have begun than so many."""
    when(run.world, lambda: len(iterations(run)) > most, act)


def steps(run: SimulatedRun) -> list[str]:
    """What its contexts did."""
    return [note for note in run.known.notes if note in ("setup", "cleanup", "cleaned")]


def iterations(run: SimulatedRun) -> Counter[str]:
    """How often each of its iterations was started."""
    others = ("setup", "cleanup", "cleaned", "hook")
    return Counter(note for note in run.known.notes if note not in others)


def code(run: SimulatedRun) -> int:
    """The exit code."""
    assert run.summary is not None
    return int(run.summary["exit_code"])


def in_hand(run: SimulatedRun) -> bool:
    """Whether there is anything that another coordinator may go on with."""
    return (run.folder / resumable.PLAN).exists()


def die(run: SimulatedRun, then_s: float = RESUMED_S) -> None:
    """The coordinator kills itself; this does not return."""
    run.kill_coordinator(then_s)
    present.scheduler().wait(None)


def is_coordinator(run: SimulatedRun) -> bool:
    """Whether the present coordinator is what runs."""
    fiber, one = present.fiber(), run.coordinator
    return fiber is not None and one is not None and fiber.process is one.process


class Points:
    """Places of the coordinator that do something else than they should, one after the other."""

    def __init__(self, patch: pytest.MonkeyPatch, run: SimulatedRun) -> None:
        self._patch = patch
        self._run = run
        #: Those that were come to.
        self.met: list[str] = []

    def die_at(self, *points: str) -> None:
        """Have a coordinator killed before a call; once one is dead the next point counts."""
        self._arm(points[0], lambda: self._dies(points[1:]))

    def _dies(self, others: tuple[str, ...]) -> None:
        if others:
            self.die_at(*others)
        die(self._run)

    def fail_at(self, point: str) -> None:
        """Have a call raise StoreError."""

        def fail() -> None:
            raise StoreError("a planted error")

        self._arm(point, fail)

    def _arm(self, point: str, act: Callable[[], None]) -> None:
        """Act before the n-th call, once: "module:path n" below osbench.coordinator."""
        place, nth = point.split()
        module, _, path = place.partition(":")
        *above, name = path.split(".")
        owner: Any = importlib.import_module(f"osbench.coordinator.{module}")
        for part in above:
            owner = getattr(owner, part)
        found, calls = getattr(owner, name), list[int]()

        def reached(*given: Any, **named: Any) -> Any:
            if is_coordinator(self._run):
                calls.append(1)
                if len(calls) == int(nth):
                    self.met.append(point)
                    act()
            return found(*given, **named)

        self._patch.setattr(owner, name, reached)


class Waits:
    """Counts the waits of the first coordinator of a run, and kills it at one of them."""

    def __init__(self, world: World, run: SimulatedRun, fatal: int = 0) -> None:
        """`fatal`: at which one it is killed; 0: at none."""
        self.count = 0
        self._run = run
        self._fatal = fatal
        self._wait = world.scheduler.wait
        world.scheduler.wait = self._waited  # type: ignore[method-assign]

    def _waited(self, seconds: float | None) -> None:
        run = self._run
        if len(run.coordinators) == 1 and is_coordinator(run) and not run.world.scheduler.closing:
            self.count += 1
            if self.count == self._fatal:
                run.kill_coordinator(RESUMED_S)
        self._wait(seconds)


def all_kinds(rows: Path) -> dict[str, Any]:
    """A task with all that a run can have: contexts, hooks, rows, closed and open loads.

    Of three workloads the second and third are under load at once.
    """
    rows.write_text("row\n" + "".join(f"row-{number}\n" for number in range(1, 41)))
    closed = {
        "title": "closed",
        "scenario": {"Noted.work": {"name": "closed", "judged": True}},
        "runner": {"constant": {"times": 60, "concurrency": 4}},
        "contexts": {"noted": {}},
        "hooks": [
            {
                "action": {"noted": {}},
                "trigger": {"event": {"unit": "iteration", "at": [10, 30]}},
            }
        ],
        "sla": {"failure_rate": {"max": 50}, "outliers": {"max": 60, "min_iterations": 5}},
    }
    fed = {
        "scenario": {"Noted.work": {"name": "fed"}},
        "runner": {"constant": {"times": 40, "concurrency": 2}},
        "args_from": str(rows),
        "sla": {"failure_rate": {"max": 50}},
    }
    offered = {
        "scenario": {"Noted.work": {"name": "offered"}},
        "runner": {"rps": {"times": 30, "rps": 30}},
        "contexts": {"noted": {}},
        "sla": {"failure_rate": {"max": 50}},
    }
    together = {"title": "together", "workloads": [fed, offered], "run_in_parallel": True}
    return {"version": 2, "title": "all kinds", "subtasks": [closed, together]}


def workloads(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The workloads of a task, in their order."""
    found = []
    for subtask in document["subtasks"]:
        found += subtask.get("workloads", [subtask])
    return found
