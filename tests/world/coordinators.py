"""A run through all its coordinator processes: begun, killed, resumed, stopped."""

from __future__ import annotations

import fcntl
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osbench.common.errors import OsbenchError, UsageError
from osbench.coordinator.load.run.connection import Connection
from osbench.coordinator.load.run.lifecycle import Run
from osbench.coordinator.load.run.plan import RunInterface, RunPlan
from osbench.coordinator.load.run.resumption import plan_file
from osbench.coordinator.load.run.services import RunServices
from osbench.coordinator.results.storage import resumable
from osbench.coordinator.results.storage.run_directory import RunDirectory
from world import present
from world.fibers import BOOTED_NS, Process
from world.knowledge import Knowledge

if TYPE_CHECKING:
    from world.world import World

#: Until somebody resumes a run that has ended and can be resumed, seconds, and how often.
RESUMED_S = 2.0
RESUMED_MOST = 40
#: How likely that is on another host.
ELSEWHERE = 0.3
#: Final states of an iteration.
STATES = ("ok", "failed", "timed_out", "dropped", "lost", "not_started")


class CoordinatorProcess:
    """Begins the run, or resumes it."""

    def __init__(self, run: SimulatedRun, number: int) -> None:
        self._run, self._world = run, run.world
        self.process = Process(f"{run.plan.run_id}-{number}", run.world.seed)
        self.number = number
        if number > 1 and self.process.chance.random() < ELSEWHERE:
            self.process.boot, self.process.booted_ns = self.process.name, 2 * BOOTED_NS
        self.summary: dict[str, Any] | None = None
        self.error: OsbenchError | None = None
        self.entry: Run | None = None
        self.ended = False
        self._world.scheduler.spawn(self.process, self._main, "main")

    def _main(self) -> None:
        world, plan = self._world, self._run.plan
        ui = RunInterface(progress=lambda _: None, say=lambda text: world.note("say", text))
        connection = Connection(
            redis_url="redis://memory",
            broker_url="redis://memory",
            other_broker="amqp://memory" if world.broker.apart else "",
            keyring=world.keyring(),
            local=False,
            check=lambda: None,
        )
        try:
            if self.number == 1:
                self.entry = Run(plan, ui)
                self.summary = self.entry.execute(connection).to_json()
            else:
                self._resume(connection, ui)
        except OsbenchError as error:
            world.note("ended", f"{type(error).__name__}: {error}")
            self.error = error
        finally:
            self._end()

    def _resume(self, connection: Connection, ui: RunInterface) -> None:
        """As `osbench-coord resume` does it."""
        directory = RunDirectory.of(self._world.conf.data_dir, self._run.plan.run_id)
        if self._is_finished(directory):
            return
        try:
            self._take_up(directory, connection, ui)
        except UsageError:
            if not self._is_finished(directory):
                raise

    def _is_finished(self, directory: RunDirectory) -> bool:
        self.summary = resumable.report(directory)
        if self.summary is not None:
            resumable.forget(directory)
            self._run.taken_up(self)
        return self.summary is not None

    def _take_up(self, directory: RunDirectory, connection: Connection, ui: RunInterface) -> None:
        directory.lock()
        try:
            saved = plan_file.load(directory, self._world.conf)
        except BaseException:
            directory.close()
            raise
        self._run.taken_up(self)
        self.entry = Run(saved.plan, ui)
        self.summary = self.entry.resume(connection, directory, saved.started_at).to_json()

    def _end(self) -> None:
        if not self.ended and self.process.alive:
            self.ended = True
            self._run.coordinator_ended(self)

    def interrupt(self) -> None:
        """Ctrl-C."""
        if self.entry is not None and not self.ended:
            self._world.note("interrupt", self.process.name)
            self.entry.interrupt()

    def kill(self, *, host: bool = False) -> None:
        """kill -9; or its host ends, and what was not on disk is lost."""
        self._world.note("kill", self.process.name)
        self.process.alive, self.ended = False, True
        self._world.disk.crash(self.process, host=host)
        # the kernel frees what it had locked
        for directory in self._run.locked.pop(self.process.name, ()):
            if directory._lock is not None and not directory._lock.closed:
                fcntl.flock(directory._lock, fcntl.LOCK_UN)
                directory._lock.close()


class SimulatedRun:
    """One run, whoever coordinates it."""

    def __init__(self, world: World, plan: RunPlan, *, idempotent: bool) -> None:
        self.world = world
        self.plan = plan
        self.idempotent = idempotent
        self.known = Knowledge(self)
        #: What the present coordinator works with.
        self.services: RunServices | None = None
        #: How many wrong files its directory has, and whether it was an older copy.
        self.spoilt = 0
        self.restored = False
        self.damaged = False
        #: A coordinator has said that workers do not hear of the end.
        self.untold = False
        #: Redis, or the disk, was not waited for, because the run was interrupted.
        self.given_up = False
        #: How often somebody has stopped it.
        self.interrupts = 0
        #: Run directories that a coordinator process has locked.
        self.locked: dict[str, list[RunDirectory]] = {}
        self._count = 0
        self.coordinators: list[CoordinatorProcess] = []
        #: Those that somebody started beside the present one.
        self.seconds: list[CoordinatorProcess] = []
        #: When it was over; None before.
        self.over_at: int | None = None

    @property
    def over(self) -> bool:
        """Nobody goes on with it."""
        return self.over_at is not None

    @property
    def folder(self) -> Path:
        """Its run directory."""
        return RunDirectory.of(self.world.conf.data_dir, self.plan.run_id).path

    @property
    def coordinator(self) -> CoordinatorProcess | None:
        """The last one; None before the first."""
        return self.coordinators[-1] if self.coordinators else None

    @property
    def is_coordinated(self) -> bool:
        """Whether a coordinator runs."""
        return self.coordinator is not None and not self.coordinator.ended

    @property
    def summary(self) -> dict[str, Any] | None:
        """The report, once the run is over."""
        return self.coordinator.summary if self.coordinator is not None else None

    @property
    def error(self) -> OsbenchError | None:
        """What the last coordinator ended with, where it has no report."""
        return self.coordinator.error if self.coordinator is not None else None

    def _started(self) -> CoordinatorProcess:
        self._count += 1
        return CoordinatorProcess(self, self._count)

    def begin(self) -> None:
        """Start a coordinator: the first one, or one that resumes the run."""
        if self.is_coordinated or self.over:
            return
        self.coordinators.append(self._started())

    def kill_coordinator(self, then_s: float, *, host: bool = False) -> None:
        """kill -9, and somebody resumes the run later."""
        assert self.coordinator is not None
        self.coordinator.kill(host=host)
        self.world.scheduler.after(then_s, self.begin)

    def begin_second(self) -> None:
        """Somebody resumes the run although it goes on."""
        self.seconds.append(self._started())

    def sets(self, workload: int) -> tuple[set[int], set[int], set[int]]:
        """The numbers that are settled, lost, and in the pool, of the last ledger."""
        assert self.services is not None
        ledger = self.services.accounts.results[workload].ledger
        settled, lost, back = (
            set(found.members().tolist()) for found in (ledger._settled, ledger._lost, ledger.pool)
        )
        return settled, lost, back

    def accounting(self) -> dict[str, int]:
        """The final states of the report, over all workloads."""
        found: Counter[str] = Counter()
        for workload in (self.summary or {}).get("workloads", ()):
            found.update({name: workload["accounting"][name] for name in STATES})
        return found

    def interrupt(self) -> None:
        """Ctrl-C."""
        if self.is_coordinated:
            assert self.coordinator is not None
            self.interrupts += 1
            self._look_for_redis()
            self.coordinator.interrupt()

    def taken_up(self, one: CoordinatorProcess) -> None:
        """A coordinator has the lock: it is the present one, whoever started it."""
        if one in self.seconds:
            self.seconds.remove(one)
            self.coordinators.append(one)

    def _look_for_redis(self) -> None:
        """Where Redis is away when a run is stopped, it is waited for some seconds only."""
        server, scheduler = self.world.redis, self.world.scheduler
        if max(server.hung_until, server.down_until, server.full_until) > scheduler.now:
            self.given_up = True
        elif self.is_coordinated:
            scheduler.after(1.0, self._look_for_redis)

    def coordinator_ended(self, one: CoordinatorProcess) -> None:
        """A coordinator has ended by itself: the run is over, or is resumed."""
        if one in self.seconds:
            self.seconds.remove(one)
        elif one is self.coordinator:
            if (self.folder / resumable.PLAN).exists() and len(self.coordinators) < RESUMED_MOST:
                self.world.scheduler.after(RESUMED_S, self.begin)
                return
            self.over_at = self.world.scheduler.now
            if not self.spoilt:
                self.world.run_over()


_lock = RunDirectory.lock


def _locked(directory: RunDirectory, *, writes: bool = True) -> None:
    fiber = present.fiber()
    run = present.world().runs.get(directory.path.name)
    if fiber is not None and run is not None:
        # before: it may be killed while it locks
        run.locked.setdefault(fiber.process.name, []).append(directory)
    _lock(directory, writes=writes)


def install() -> None:
    """Have the world know who has locked what."""
    RunDirectory.lock = _locked  # type: ignore[method-assign]
