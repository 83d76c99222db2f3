"""Notes to which workers coordinators give loads with shares of zones, for the judge of shares.

Notes have the hosts of workers, not their zones: a judge knows the label of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from osbench.coordinator.load.dispatch.batches import Grant
from osbench.coordinator.load.dispatch.open_load import Ints, OpenLoad
from osbench.coordinator.load.fleet.worker import WorkerHandle
from osbench.coordinator.load.run.workload.user_allocation import (
    ClosedUserAllocation,
    UserAllocation,
)
from world import present

if TYPE_CHECKING:
    from world.coordinators import SimulatedRun


@dataclass(frozen=True, slots=True)
class Deal:
    """Arrivals that were granted for the first time, or again, while these workers took some."""

    #: Number of the first one of new arrivals; 0 of arrivals that had come back.
    first: int
    many: int
    hosts: tuple[str, ...]
    #: How many arrivals each host got, of those that had come back.
    got: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Split:
    """Virtual users that a closed load was to have, and these workers were."""

    users: int
    hosts: tuple[str, ...]
    limits: tuple[int, ...]
    #: For how many passes of the control loop.
    passes: int = 1


class Shares:
    """Decisions of all coordinators of a run on a load with zones, in turn."""

    def __init__(self) -> None:
        self.deals: list[Deal] = []
        self.splits: list[Split] = []
        #: Most iterations at once in the zone of a label, by the label and the last split.
        self.at_once: Counter[tuple[str, int]] = Counter()
        #: The coordinator that looked last which workers a load that goes on has, and these.
        self.looked: tuple[str, tuple[str, ...]] | None = None

    def split(self, users: int, hosts: tuple[str, ...], limits: tuple[int, ...]) -> None:
        """Virtual users were divided: as before, or otherwise."""
        last = self.splits[-1] if self.splits else None
        if last is not None and (last.users, last.hosts, last.limits) == (users, hosts, limits):
            last.passes += 1
        else:
            self.splits.append(Split(users, hosts, limits))


def _run() -> SimulatedRun | None:
    """The run of the coordinator that decides now, if its load has zones."""
    fiber = present.fiber()
    assert fiber is not None
    run = present.world().runs.get(fiber.process.name.rpartition("-")[0])
    return run if run is not None and run.plan.zones else None


def _hosts(workers: Sequence[WorkerHandle]) -> tuple[str, ...]:
    return tuple(worker.beat.host for worker in workers)


_deal, _moved = OpenLoad._deal, OpenLoad._moved
_limits, _note_held = ClosedUserAllocation._limits, UserAllocation.note_held


def _dealt(load: OpenLoad, dues: Ints, workers: Sequence[WorkerHandle]) -> list[Grant]:
    run = _run()
    if run is not None and len(dues):
        deal = Deal(load._ledger.allotted + 1, len(dues), _hosts(workers))
        run.known.shares.deals.append(deal)
    return _deal(load, dues, workers)


def _moved_on(load: OpenLoad, workers: Sequence[WorkerHandle]) -> list[Grant]:
    run, many = _run(), len(load._ledger.pool)
    found = _moved(load, workers)
    if run is not None and found:
        deal = Deal(0, many, _hosts(workers))
        for one in found:
            deal.got[one.worker.beat.host] += len(one.numbers)
        run.known.shares.deals.append(deal)
    return found


def _limited(
    allocation: ClosedUserAllocation, capacity: Sequence[int], elapsed_s: float
) -> Sequence[int]:
    run = _run()
    found = _limits(allocation, capacity, elapsed_s)
    if run is not None:
        users = min(allocation._due(elapsed_s), sum(allocation.step.users or ()))
        run.known.shares.split(users, _hosts(allocation._load.workers.active), tuple(found))
    return found


def _looked(allocation: UserAllocation) -> None:
    run, fiber = _run(), present.fiber()
    if run is not None and fiber is not None and not allocation.step.done:
        hosts = _hosts(allocation._load.workers.active)
        run.known.shares.looked = fiber.process.name, hosts
    _note_held(allocation)


def install() -> None:
    """Have the world know who gets what of a load with zones."""
    OpenLoad._deal = _dealt  # type: ignore[method-assign]
    OpenLoad._moved = _moved_on  # type: ignore[method-assign]
    ClosedUserAllocation._limits = _limited  # type: ignore[method-assign]
    UserAllocation.note_held = _looked  # type: ignore[method-assign]
