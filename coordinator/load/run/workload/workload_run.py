"""Steps of one workload of a run, from the preparation of its workers to its closed ledger.

The ledger accounts for every iteration and its final state.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from osbench.common.errors import FleetError, StoreUnreachable
from osbench.common.plugin.scripted_runner import scripted_part
from osbench.coordinator.load.dispatch.arrivals import Ints
from osbench.coordinator.load.fleet.worker import NOT_GRANTED, Granted, WorkerHandle
from osbench.coordinator.load.fleet.worker_request import ANY_NUMBER
from osbench.coordinator.load.run.failover import Failover
from osbench.coordinator.load.run.workload.ending import Ending
from osbench.coordinator.load.run.workload.load_hooks import LoadHooks
from osbench.coordinator.load.run.workload.load_parts import LoadParts, Phase
from osbench.coordinator.load.run.workload.load_view import LoadView
from osbench.coordinator.load.run.workload.user_allocation import (
    ClosedUserAllocation,
    OpenUserAllocation,
    UserAllocation,
)
from osbench.coordinator.results.accounting.core_use import CoreUse, CpuProfile
from osbench.coordinator.results.storage.progress import Snapshot

#: A worker that joins late gets t0 by a measurement of Redis' clock that is at most so old,
#: seconds.
CLOCK_S = 1.0


@dataclass(kw_only=True, eq=False)
class WorkloadRun(LoadParts):
    """A workload of a run: its parts, and its steps from `prepare` to `settle`.

    `LoadLoop` calls the steps in their order.
    """

    failover: Failover
    hooks: LoadHooks
    #: Gets snapshots of the workload, some per second.
    progress: Callable[[Snapshot], None]
    cpu: CpuProfile = field(default_factory=CpuProfile)
    core_use: CoreUse = field(default_factory=CoreUse)
    #: Reason if its contexts or arguments could not be made; else "".
    error: str = ""
    #: Reason if the run ended before it; else "".
    not_begun: str = ""
    #: Resources in error of a drill are still to be searched; its end is not judged before.
    search_due: bool = field(init=False)
    allocation: UserAllocation = field(init=False)
    ending: Ending = field(init=False)
    view: LoadView = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.search_due = self.results.drill is not None
        self.allocation = _allocation(self)
        self.ending = Ending(self, self.allocation)
        self.view = LoadView(self, self.allocation, self.progress)

    # before the load

    def prepare(self) -> None:
        """Write the specification to Redis and notify the workers to prepare it; does not wait.

        Raises StoreUnreachable.
        """
        self.workers.specification = self.services.channel.specify(self.specification)
        self.workers.begin()

    def update_ready_workers(self) -> None:
        """Mark workers that have prepared, by their heartbeats, and show a snapshot; does not wait.

        Also takes over workers of an earlier coordinator. Raises ContextError if a worker cannot
        prepare, FleetError if none is left; StoreUnreachable.
        """
        self._take_over()
        self.workers.note_prepared(strict=True)
        if not self.workers.present:
            raise FleetError("all workers of the run have died before the load; see their logs")
        self.view.show()

    def call_off(self) -> None:
        """Close the ledger of a workload that did not begin, because the user stopped the run."""
        self.allocation.ask()
        self.settle()

    def restore(self, t0_at: float) -> None:
        """Restore the start of a load that an earlier coordinator began.

        `t0_at`: Redis time in seconds since 1970; 0 if it did not begin.
        """
        self.results.t0_at = t0_at
        if t0_at:
            self.services.load_clock.restore(self.number, t0_at)

    def resume(self, dues: Iterable[tuple[int, Ints]]) -> None:
        """Go on with a load that an earlier coordinator began.

        `dues`: due times of the arrivals that it has granted, in parts of a first number and ns
        after t0. Arrivals that were due without a coordinator are dropped. May be called again
        after an error. Raises StoreUnreachable, StorageError.
        """
        if self.phase is Phase.PREPARING:
            for first, part in dues:
                self.dispatcher.restore(first, part)
            self.phase = Phase.RUNNING
        self.workers.specification = self.services.channel.specify(self.specification)
        self._take_over()
        self.allocation.skip_gap()
        self.allocation.ask()
        self._write_controls()
        self._place()

    def _take_over(self) -> None:
        """Take over workers that served an earlier coordinator and have accepted this one by now.

        Workers that were taken over before stay as they are.
        """
        for worker in self.workers.present:
            self.workers.take_over(worker)

    def start(self, t0_at: float) -> None:
        """Begin the load at `t0_at`, Redis time in seconds since 1970; journals it first.

        Sends t0, user limits and the first batches to the workers. Raises StoreUnreachable,
        StorageError.
        """
        clock, number = self.services.load_clock, self.number
        clock.begin(number, t0_at)
        started = {"do": "start", "workload": number, "t0_at": t0_at, **clock.note(number)}
        self.services.port.decide([started])
        self.phase = Phase.RUNNING
        self.allocation.ask()
        self.allocation.note_held()
        self._write_controls()
        self._place()
        self.view.show()

    # under load

    def run_pass(self, *, poll: bool) -> None:
        """Run one pass of the control loop: stop rules, hooks, replacements, controls, dispatch.

        `poll`: new heartbeats have been read. Raises StoreUnreachable, StorageError.
        """
        self.rules.watch_abort(self.elapsed())
        self.rules.watch_users(self.elapsed())
        self.rules.watch_script(self.elapsed(), lost=self.allocation.script_lost)
        self.rules.watch_sla(self.allocation.planned)
        self._fire_hooks()
        if poll:
            self._take_over()
            if self.wants_workers:
                self.failover.replace(self.workers)
            self.workers.note_prepared(strict=False)
            self._note_cpu()
        self.allocation.ask()
        if poll:
            self.allocation.note_held()
        self._write_controls()
        present = self.workers.present
        if self.rules.reached(self.elapsed()):
            self.phase = Phase.STOPPING
            self.dispatcher.recall_all(present)
        else:
            self._place()
            self.dispatcher.recall_unused(present)
        strays = self._strays() if poll else []
        self.dispatcher.recall_all(strays)
        self.dispatcher.deliver([*present, *strays])
        self._tell_recalls([*present, *strays])
        self.view.show()

    def _strays(self) -> list[WorkerHandle]:
        """Return live workers that hold iterations of this load but serve another workload or none.

        They were lost and replaced before they sent heartbeats again.
        """
        ledger = self.results.ledger
        return [
            worker
            for worker in self.services.pool.present
            if worker.workload != self.number and ledger.outstanding(worker.name)
        ]

    def _tell_recalls(self, workers: Sequence[WorkerHandle]) -> None:
        untold = [worker for worker in workers if worker.untold]
        if untold:
            self.services.controls.change(untold)
            for worker in untold:
                worker.untold = False

    @property
    def wants_workers(self) -> bool:
        """Return whether lost workers are to be replaced: under load, and not interrupted."""
        return self.under_load and not self.status.interruption.drains

    @property
    def most_workers(self) -> int:
        """The most workers that the load can use: one for each virtual user; one for a script.

        0 for an open load whose users have rows, as their numbers do not move.
        """
        if self.is_open:
            return ANY_NUMBER if self.plan.user_data is None else 0
        return 1 if self.plan.is_scripted else self.runner.concurrency

    def _note_cpu(self) -> None:
        elapsed_s = self.elapsed()
        for worker in self.workers.present:
            self.cpu.add(worker.name, elapsed_s, worker.beat.cpu)
            if elapsed_s >= 0:
                self.core_use.add(worker.name, worker.beat)

    def _place(self) -> None:
        takers, stop_s = self.workers.takers, self.rules.stop_s
        self.dispatcher.place(self.allocation.step, takers, self.elapsed(), stop_s)

    def _write_controls(self) -> None:
        stop_s = self.rules.stop_s
        if any(worker.ready and worker.granted == NOT_GRANTED for worker in self.workers.present):
            # t0 has to be sent by the clock of Redis as it is now
            self.services.clock.refresh(CLOCK_S)
        t0_at = self.services.load_clock.t0_at(self.number)
        changed = {
            worker: {
                "workload": self.number,
                # an earlier coordinator's worker may have dropped the workload meanwhile: the first
                # record of this coordinator did not know of it yet
                "specification": self.workers.specification,
                "t0_at": t0_at,
                "told_at": self.services.clock.now_s(),
                "user_limit": worker.user_limit,
                "generation": worker.generation,
                "numbers": self.results.users.of(worker.mid, worker.numbers),
                "pace": worker.pace,
                "pace_part": list(worker.pace_part),
                "stop_s": stop_s,
            }
            for worker in self.workers.present
            if worker.ready and _grant_of(worker, stop_s) != worker.granted
        }
        self.services.controls.write(changed)
        for worker in changed:
            worker.granted = _grant_of(worker, stop_s)

    def _fire_hooks(self) -> None:
        elapsed_s = self.elapsed()
        if elapsed_s < 0:
            return
        sums = self.results.ledger.accounting()
        self.hooks.look(self.rules.within(elapsed_s), sums.ok + sums.failed + sums.timed_out)

    # the end

    def settle(self) -> None:
        """Close the ledger, judge the SLA, and release the workers for other workloads.

        A drill is not judged yet, since its resources in error are not known. Hooks that the last
        results make due are fired before. A failed criterion may stop the run. Raises StorageError.
        """
        if self.begun:
            # the last results may make hooks due; time of other workloads does not count
            self._fire_hooks()
        self.ending.close()
        if not self.search_due:
            self.rules.judge_end()
        # a change that Redis does not take now goes with the next one
        with contextlib.suppress(StoreUnreachable):
            self.services.controls.change(self.workers.present, workload=-1, t0_at=None)

    def end_hooks(self) -> None:
        """Wait for running hook actions, about a minute at most, then ask them to end.

        Ctrl-C ends the wait. Journals their results. Raises StorageError.
        """
        self.hooks.end(lambda: not self.status.interruption.drains)

    def abandon(self, *, resumable: bool) -> None:
        """Close the ledger as it is, unless it is closed, and ask running hooks to end.

        `resumable`: another coordinator may go on, so that is not journalled. Raises StorageError.
        """
        if not self.closed:
            if not self.allocation.step.done and self.allocation.step.budget is None:
                self.allocation.ask()
            self.ending.close(journalled=not resumable)
        self.search_due = False
        self.hooks.stop()


def _grant_of(worker: WorkerHandle, stop_s: float | None) -> Granted:
    return worker.generation, stop_s, worker.pace, worker.pace_part


def _allocation(load: LoadParts) -> UserAllocation:
    if load.is_open:
        return OpenUserAllocation(load)
    kind = scripted_part("allocation") if load.runner.is_scripted else ClosedUserAllocation
    return cast(UserAllocation, kind(load))
