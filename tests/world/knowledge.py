"""What the world knows of a run and nobody in it does: every start and every end."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from world import present
from world.fibers import ASIDE_S
from world.shares import Shares

if TYPE_CHECKING:
    from world.coordinators import SimulatedRun


def _here() -> str:
    """The process that runs."""
    fiber = present.fiber()
    assert fiber is not None
    return fiber.process.name


@dataclass(frozen=True, slots=True)
class Start:
    """An iteration has begun."""

    at_ns: int
    #: The worker process.
    process: str
    number: int
    #: All memberships of the process counted as lost, by the journal.
    though_lost: bool


class Knowledge:
    """Starts and ends of the iterations of a run."""

    def __init__(self, run: SimulatedRun) -> None:
        self._run = run
        self.starts: list[Start] = []
        #: How often each number was started, and has ended.
        self.started: Counter[int] = Counter()
        self.ended: Counter[int] = Counter()
        #: How long a number took on a process, by its clock; each time that it was started there.
        self.took_s: dict[tuple[str, int], list[float]] = {}
        #: When what runs was started; a number may run twice at once.
        self._open: dict[tuple[str, int], list[int]] = {}
        #: Most iterations that ran at once, on processes that nothing has happened to.
        self.most_at_once = 0
        #: What its plug-ins have noted, in turn.
        self.notes: list[str] = []
        #: Processes on which the user with a number is alive, and numbers that two had at once.
        self.users: dict[int, set[str]] = {}
        self.doubled: set[int] = set()
        #: The workers to which a load with zones was given.
        self.shares = Shares()

    def begins(self, number: int) -> Random:
        """An iteration begins on the process that runs; returns the chance of that process."""
        fiber, scheduler = present.fiber(), present.scheduler()
        assert fiber is not None
        name = fiber.process.name
        self.started[number] += 1
        self._open.setdefault((name, number), []).append(scheduler.now)
        self.most_at_once = max(self.most_at_once, self._at_once())
        if self._run.plan.zones:
            self._note_zone(name)
        self.starts.append(Start(scheduler.now, name, number, self._is_lost(name)))
        present.world().note("start", f"{self._run.plan.run_id} {name} {number}")
        return fiber.process.chance

    def ends(self, number: int) -> None:
        """An iteration ends on the process that runs."""
        fiber, scheduler = present.fiber(), present.scheduler()
        assert fiber is not None
        self.ended[number] += 1
        key = (fiber.process.name, number)
        # which of two that run at once has ended is not known
        ran_ns = [scheduler.now - at_ns for at_ns in self._open[key]]
        self.took_s.setdefault(key, []).extend(ns / 1e9 * fiber.process.rate for ns in ran_ns)
        del self._open[key][0]

    def user_begins(self, number: int) -> None:
        """A virtual user begins on the process that runs."""
        here = _here()
        well = {one.name for one in present.world().workers if one.is_up and not one.hurt}
        if self.users.setdefault(number, set()) & (well - {here}):
            self.doubled.add(number)
        self.users[number].add(here)

    def user_ends(self, number: int) -> None:
        """A virtual user has ended on the process that runs."""
        self.users[number].discard(_here())

    def _note_zone(self, name: str) -> None:
        """Note how many iterations run in the zone of a process that begins one."""
        zones = {one.name: one.zone for one in present.world().workers}
        here = {one for one, zone in zones.items() if zone == zones[name]}
        key = zones[name], len(self.shares.splits)
        self.shares.at_once[key] = max(self.shares.at_once[key], self._at_once(here))

    def _at_once(self, here: set[str] | None = None) -> int:
        """Iterations that run, less those that have timed out and those of hurt processes.

        `here`: only of these processes.
        """
        world, now = present.world(), present.scheduler().now
        timeout_s = self._run.plan.task.workloads[0].runner.config.get("timeout", math.inf)
        # by the clock of a process it may be over sooner, and its thread may have been put aside
        # between the engine's look at the clock and the first line of the scenario
        timeout_s = 0.99 * timeout_s - 2 * max(ASIDE_S)
        well = {one.name for one in world.workers if not one.hurt and not self._is_lost(one.name)}
        well &= well if here is None else here
        return sum(
            process in well and now - at_ns < timeout_s * 1e9
            for (process, _), begun in self._open.items()
            for at_ns in begun
        )

    def _is_lost(self, process: str) -> bool:
        services = self._run.services
        if services is None:
            return False
        prefix = f"{process}."
        mine = [
            one.lost
            for one in services.accounts.memberships.values()
            if one.incarnation.startswith(prefix)
        ]
        return bool(mine) and all(mine)
