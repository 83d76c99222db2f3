"""One workload of a run: asks the runner, places work, watches its workers, closes its ledger."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from osbench.common.errors import FleetError, StoreAway
from osbench.common.plugin.runner import Step, Totals, split
from osbench.common.plugin.scenario import Scenario
from osbench.common.ports import clock as time
from osbench.common.protocol import timers
from osbench.common.protocol.messages import Specification
from osbench.coordinator.dispatch.arrivals import Ints
from osbench.coordinator.dispatch.dispatcher import Dispatcher
from osbench.coordinator.dispatch.shares import regrant
from osbench.coordinator.fleet.worker import NOT_GRANTED, WorkerHandle
from osbench.coordinator.formatting import count
from osbench.coordinator.hooks.executor import HookExecutor
from osbench.coordinator.results.concurrency import MissingUsers
from osbench.coordinator.results.core_use import CoreUse, CpuProfile
from osbench.coordinator.results.live_figures import LiveFigures
from osbench.coordinator.results.marks import JOIN, LOSS, Mark
from osbench.coordinator.results.totals import Offered
from osbench.coordinator.results.workload_results import WorkloadResults
from osbench.coordinator.run.failover import Failover, loss_sentence
from osbench.coordinator.run.plan import WorkloadPlan
from osbench.coordinator.run.services import RunServices
from osbench.coordinator.run.status import RunStatus
from osbench.coordinator.run.steering.steered_runner import SteeredRunner
from osbench.coordinator.run.stop_rules import StopRules
from osbench.coordinator.run.workload_workers import WorkloadWorkers
from osbench.coordinator.storage.progress import Snapshot

LOG = logging.getLogger(__name__)

#: Between the last preparation and the start: workers read control records every 50 ms.
LEAD_S = 0.3
#: A worker that comes late is told t0 by a measurement of Redis' clock that is no older, seconds.
CLOCK_S = 1.0
#: Results of the stop instant have arrived this long after it, seconds.
LINGER_S = 0.25
#: Between two snapshots, seconds.
SHOW_S = 0.25
#: Longest wait at the end for hooks that still run, and for those that were asked to stop.
HOOKS_S = 60.0
HOOKS_STOP_S = 5.0
#: After which it is said that they are waited for.
HOOKS_SAID_S = 3.0


@dataclass(slots=True, kw_only=True, eq=False)
class WorkloadRun:
    """A workload on its workers. `LoadLoop` calls its steps in their order."""

    plan: WorkloadPlan
    specification: Specification
    services: RunServices
    status: RunStatus
    failover: Failover
    results: WorkloadResults
    dispatcher: Dispatcher
    workers: WorkloadWorkers
    rules: StopRules
    hooks: HookExecutor
    #: Gets snapshots of the workload, some per second.
    progress: Callable[[Snapshot], None]
    cpu: CpuProfile = field(default_factory=CpuProfile)
    core_use: CoreUse = field(default_factory=CoreUse)
    #: Workers that were lost or came, as it happened.
    marks: list[Mark] = field(default_factory=list)
    #: Why its contexts or arguments could not be made; "" if they could.
    error: str = ""
    #: Why the run ended before it; "" if it did not.
    not_begun: str = ""
    _step: Step = field(default_factory=Step)
    _missing: MissingUsers = field(default_factory=MissingUsers)
    #: When the load began, Redis time in seconds since 1970; 0 before.
    _t0_at: float = 0.0
    #: The same by this host's monotonic clock, nanoseconds.
    _t0_ns: int = 0
    _phase: str = "preparing"
    _shown: float = 0.0
    #: Since when there is no worker, monotonic.
    _alone_since: float | None = None
    #: Since when nothing was settled and no worker that is heard had work, monotonic; and how many
    #: iterations were settled then.
    _quiet_since: float = 0.0
    _settled_before: int = -1
    _figures: LiveFigures = field(init=False)
    #: That of the plan, with what was changed of its load.
    runner: SteeredRunner = field(init=False)

    def __post_init__(self) -> None:
        accounts = self.services.accounts
        self.runner = SteeredRunner(self.plan.runner, accounts.changes[self.plan.number])
        self._figures = LiveFigures(self.results, is_open=self.plan.runner.OPEN)

    # before the load

    def prepare(self) -> None:
        """Publish the specification and have the workers prepare it. Raises StoreAway."""
        self.workers.specification = self.services.channel.specify(self.specification)
        self.workers.begin()

    def await_workers(self) -> None:
        """See which workers have prepared.

        Raises ContextError if one cannot prepare, FleetError if none is left; StoreAway.
        """
        self._take_over()
        self.workers.note_prepared(strict=True)
        if not self.workers.present:
            raise FleetError("all workers of the run have died before the load")
        self.show()

    def call_off(self) -> None:
        """The user stopped the run before the load began."""
        self._ask_runner()
        self.settle()

    def restore(self, t0_at: float) -> None:
        """Take over when an earlier coordinator began the load; 0: it did not."""
        self._begin(t0_at)

    def _begin(self, t0_at: float) -> None:
        self._t0_at = self.results.t0_at = t0_at
        self._t0_ns = self.services.clock.to_monotonic_ns(t0_at)

    def resume(self, dues: Iterable[tuple[int, Ints]]) -> None:
        """Go on with a load that an earlier coordinator began. Raises StoreAway.

        `dues` are the instants of the arrivals that it has given out, by first number.
        """
        if self._phase == "preparing":
            for first, part in dues:
                self.dispatcher.restore(first, part)
            self._phase = "running"
        self.workers.specification = self.services.channel.specify(self.specification)
        self._take_over()
        self._skip_gap()
        self._ask_runner()
        self._write_controls()
        self._place()

    def _take_over(self) -> None:
        """Go on with workers of an earlier coordinator, as soon as they follow this one."""
        for worker in self.workers.present:
            self.workers.take_over(worker)

    def _skip_gap(self) -> None:
        """Drop what was due while there was no coordinator; runners plan it in parts."""
        elapsed_s = self.elapsed()
        behind = self.plan.runner.OPEN
        while behind:
            self._ask_runner()
            self.dispatcher.skip(self._step, elapsed_s)
            behind = bool(self._step.arrivals) and self._step.arrivals[-1] < elapsed_s

    def start(self, t0_at: float) -> None:
        """Begin the load at an instant, Redis time in seconds since 1970. Raises StoreAway."""
        self._begin(t0_at)
        started = {"do": "start", "workload": self.plan.number, "t0_at": t0_at}
        self.services.port.decide([started])
        self._phase = "running"
        self._ask_runner()
        self._write_controls()
        self._place()

    # under load

    def turn(self, *, poll: bool) -> None:
        """Do what is to be done now; `poll`: there are new heartbeats. Raises StoreAway."""
        self.rules.watch_abort(self.elapsed())
        self.rules.watch_users(self.elapsed())
        self.rules.watch_sla(self._planned)
        self._fire_hooks()
        if poll:
            self._take_over()
            if self.wants_workers:
                self._replace_workers()
            self.workers.note_prepared(strict=False)
            self._note_cpu()
        self._ask_runner()
        self._write_controls()
        present = self.workers.present
        if self.rules.reached(self.elapsed()):
            self._phase = "stopping"
            self.dispatcher.recall_all(present)
        else:
            self._place()
            self.dispatcher.recall_unreadable(present)
        self.dispatcher.deliver(present)
        self._tell_recalls(present)
        self.show()

    def _tell_recalls(self, workers: Sequence[WorkerHandle]) -> None:
        untold = [worker for worker in workers if worker.untold]
        if untold:
            self.services.controls.change(untold)
            for worker in untold:
                worker.untold = False

    @property
    def wants_workers(self) -> bool:
        """Workers that were lost or left are to be replaced."""
        return self._phase == "running" and not self.status.interruption.drains

    @property
    def hungry(self) -> bool:
        """Some worker runs out of work before the next turn, so that turns have to be short."""
        if self._phase != "running" or self.plan.runner.OPEN or self.elapsed() < 0:
            return False
        some_left = self.results.ledger.available(self._step.budget) != 0
        return some_left and any(one.share and not one.known for one in self.workers.takers)

    @property
    def scant(self) -> int:
        """Workers, all if one of them has few iterations in hand for each user; else 0."""
        if self._phase != "running" or self.plan.runner.OPEN or self.elapsed() < 0:
            return 0
        takers = self.workers.takers
        return len(takers) if any(one.share and one.scant for one in takers) else 0

    def record_lost(self, worker: WorkerHandle) -> None:
        """A worker was declared lost: its users were missing since it fell silent."""
        if worker.workload != self.plan.number or worker.gone or self.results.ledger.closed:
            return
        elapsed_s = self.elapsed()
        silent_from_s = max(0.0, elapsed_s - worker.silence_s)
        self._missing.add_lost(worker.lost_share, silent_from_s, self.rules.within(elapsed_s))
        sentence = loss_sentence(worker, silent_from_s, elapsed_s)
        self.status.losses.append(f"{self.plan.name}: {sentence}")
        name = worker.beat.label or worker.beat.host
        lost = Mark(
            kind=LOSS,
            from_s=min(silent_from_s, elapsed_s),
            to_s=elapsed_s,
            label=f"{name} lost",
            text=f"{sentence[0].upper()}{sentence[1:]}.",
        )
        self.marks.append(lost)

    def _replace_workers(self) -> None:
        before = set(self.workers.present)
        self.failover.replace(self.workers)
        elapsed_s = self.elapsed()
        for worker in self.workers.present:
            if worker not in before:
                beat = worker.beat
                name, place = beat.label or beat.host, f"{beat.host}:{beat.pid}"
                text = f"Worker {place} was taken in place of one that was lost or left."
                joined = Mark(
                    kind=JOIN, from_s=elapsed_s, to_s=elapsed_s, label=f"{name} joins", text=text
                )
                self.marks.append(joined)

    def _note_cpu(self) -> None:
        elapsed_s = self.elapsed()
        for worker in self.workers.present:
            self.cpu.add(worker.name, elapsed_s, worker.beat.cpu)
            if elapsed_s >= 0:
                self.core_use.add(worker.name, worker.beat)

    def _ask_runner(self) -> None:
        """Ask the runner what should be offered, and grant virtual users accordingly."""
        active = self.workers.active
        elapsed_s = self.elapsed()
        totals = Totals(allotted=self.dispatcher.planned, settled=self.results.ledger.decided)
        capacity = [worker.capacity for worker in active]
        self._step = self.runner.step(elapsed_s, totals, capacity)
        if self.plan.data is not None:
            self._step = self.plan.data.within(self._step, totals)
        self.rules.apply(self._step, elapsed_s)
        is_open = self.plan.runner.OPEN
        asked = self._open_shares(active) if is_open else self._step.shares or ()
        others = [worker for worker in self.workers.present if worker not in active]
        shares = self._risen(asked, elapsed_s, capacity)
        regrant([*active, *others], [*shares, *[0] * len(others)])
        self._pace(active)
        self._number_users(active, capacity)
        if not is_open:
            self._count_missing(elapsed_s)

    def _risen(
        self, shares: Sequence[int], elapsed_s: float, capacity: Sequence[int]
    ) -> Sequence[int]:
        """The shares of a closed load, as far as its users start already."""
        if self.plan.runner.OPEN:
            return shares
        risen = self._users_due(elapsed_s)
        return shares if risen >= sum(shares) else split(risen, capacity)

    @property
    def asked(self) -> Sequence[tuple[float, float]]:
        """The load over time that was asked for: see `Runner.asked`."""
        points, rate = self.runner.asked(), self.plan.workload.users.get("start_rate")
        if not rate or self.plan.runner.OPEN or len(points) != 1:
            return points
        users = points[0][1]
        return ((0.0, 0.0), (users / rate, users))

    def _pace(self, workers: Sequence[WorkerHandle]) -> None:
        """Divide the greatest rate of a closed load over workers, by their users."""
        most, users = self.plan.workload.users.get("max_rate"), sum(one.share for one in workers)
        if most and users and not self.plan.runner.OPEN:
            for worker in workers:
                worker.pace = most * worker.share / users

    def _users_due(self, elapsed_s: float) -> int:
        """Virtual users that a closed load is to have at an instant."""
        users = self.runner.users(elapsed_s)
        rate = self.plan.workload.users.get("start_rate")
        return min(users, math.floor(rate * max(0.0, elapsed_s)) + 1) if rate else users

    def _number_users(self, workers: Sequence[WorkerHandle], capacity: Sequence[int]) -> None:
        """Give the users of workers their numbers: at once for all that they are to have."""
        if self._phase == "preparing":
            return
        wanted = [worker.target for worker in workers]
        if not self.plan.runner.OPEN:
            in_all = split(self.plan.runner.concurrency, capacity)
            wanted = [max(pair) for pair in zip(wanted, in_all, strict=True)]
        register, number = self.results.users, self.plan.number
        for worker, many in zip(workers, wanted, strict=True):
            numbers = register.wanted(worker.mid, many)
            if numbers:
                record = {"do": "users", "workload": number, "mid": worker.mid, "numbers": numbers}
                self.services.port.decide([record])
                # they are told with the next control record
                worker.granted = NOT_GRANTED

    def _open_shares(self, workers: list[WorkerHandle]) -> tuple[int, ...]:
        """Most virtual users of each worker; beyond its capacity where the user wishes so."""
        if not self.specification.max_concurrency:
            return tuple(worker.capacity for worker in workers)
        return split(self.specification.max_concurrency, [1 << 30] * len(workers))

    def _count_missing(self, elapsed_s: float) -> None:
        granted = sum(worker.share for worker in self.workers.present)
        asked = self.dispatcher.has_work(self._step) and not self.rules.reached(elapsed_s)
        self._missing.count(elapsed_s, self._users_due(elapsed_s) - granted, asked=asked)

    def _place(self) -> None:
        self.dispatcher.place(self._step, self.workers.takers, self.elapsed(), self.rules.stop_s)

    def _write_controls(self) -> None:
        stop_s = self.rules.stop_s
        if any(worker.ready and worker.granted == NOT_GRANTED for worker in self.workers.present):
            # t0 has to be told by the clock of Redis as it is now
            self.services.clock.refresh(CLOCK_S)
        t0_at = self.services.clock.at_s(self._t0_ns)
        changed = {
            worker: {
                "workload": self.plan.number,
                # an earlier coordinator's worker may have dropped the workload meanwhile: the first
                # record of this coordinator did not know of it yet
                "specification": self.workers.specification,
                "t0_at": t0_at,
                "share": worker.share,
                "generation": worker.generation,
                "numbers": self.results.users.of(worker.mid),
                "pace": worker.pace,
                "stop_s": stop_s,
            }
            for worker in self.workers.present
            if worker.ready and (worker.generation, stop_s, worker.pace) != worker.granted
        }
        self.services.controls.write(changed)
        for worker in changed:
            worker.granted = (worker.generation, stop_s, worker.pace)

    @property
    def name(self) -> str:
        """What messages call the workload."""
        return self.plan.name

    @property
    def is_open(self) -> bool:
        """Iterations start at planned instants."""
        return self.plan.runner.OPEN

    @property
    def is_search(self) -> bool:
        """Its rate is decided on by trials."""
        return self.runner.is_search

    @property
    def under_load(self) -> bool:
        """Iterations are started, or would be if the load were not paused."""
        return self._phase == "running"

    # the end

    @property
    def begun(self) -> bool:
        """The load has started, so that there is something to report."""
        return bool(self._t0_at)

    @property
    def closed(self) -> bool:
        """Every iteration has its state."""
        return self.results.ledger.closed

    def finished(self) -> bool:
        """Nothing more will start or be reported."""
        if self.status.interruption.stops:
            return True
        return self._ended() and (not self.results.ledger.open or self._waited_enough())

    def _ended(self) -> bool:
        """No more work will be granted."""
        if self.rules.reached(self.elapsed() - self._linger_s):
            return True
        if self._step.done and not self.results.ledger.pool:
            return True
        if self.workers.active:
            self._alone_since = None
            return False
        # no worker is left for the rest: perhaps one comes
        now = self.services.pool.watched_s
        self._alone_since = now if self._alone_since is None else self._alone_since
        return now - self._alone_since > self.services.limits.wait_s

    def _waited_enough(self) -> bool:
        """Nobody who is heard has anything, and what was on its way has had time to come."""
        pool, ledger = self.services.pool, self.results.ledger
        now = pool.watched_s
        holders = [worker for worker in pool.workers.values() if ledger.outstanding(worker.name)]
        lively = any(one.present and not one.gone and one.holds_work for one in holders)
        if lively or ledger.settled != self._settled_before:
            self._settled_before = ledger.settled
            self._quiet_since = now
        # results that wait to be read are read first, unless somebody adds entries without end
        patience_s = timers.SETTLE_S * (3 if self.services.channel.behind else 1)
        return now - self._quiet_since > patience_s

    @property
    def _linger_s(self) -> float:
        """How long users may take to report that they waited for work until the stop instant."""
        return 0.0 if self.plan.runner.OPEN or self._step.stop_s is None else LINGER_S

    def settle(self) -> None:
        """Close the ledger; the workers are free for other workloads."""
        if self.begun:
            # what the last results bring about; time of other workloads does not count
            self._fire_hooks()
        self._close_ledger()
        self.rules.judge_end(complete=self._all_started)
        # what Redis does not take now goes with the next change
        with contextlib.suppress(StoreAway):
            self.services.controls.change(self.workers.present, workload=-1, t0_at=None)

    @property
    def timeout_s(self) -> float:
        """Bound of an iteration, seconds; 0 is none."""
        return self.specification.timeout_s

    @property
    def users_to_end(self) -> int:
        """Virtual users of workers that are heard and have not ended, by `on_stop`, yet."""
        plugin = self.plan.scenario.cls
        if getattr(plugin, "on_stop", None) is Scenario.on_stop or not self.begun:
            return 0
        return sum(
            max(1, worker.beat.living)
            for worker in self.workers.served
            if worker.present
            and not worker.gone
            and (worker.beat.living or worker.beat.prepared == self.plan.number)
        ) or sum(
            worker.present and not worker.gone and worker.holds_work
            for worker in self.workers.served
        )

    def abandon(self, *, resumable: bool) -> None:
        """The run cannot go on: account for every iteration as things stand.

        `resumable`: another coordinator may go on, so that the journal does not say that it ended.
        """
        if not self.results.ledger.closed:
            if not self._step.done and self._step.budget is None:
                self._ask_runner()
            self._close_ledger(journalled=not resumable)
        self.hooks.stop()

    def _close_ledger(self, *, journalled: bool = True) -> None:
        # where a time ends the load, rows that were not reached are no part of the plan
        is_open = self.plan.runner.OPEN
        budget = self.runner.planned if is_open or self._timed else self._step.budget
        services, number = self.services, self.plan.number
        unused = budget is None
        closing = services.accounts.closing(number, budget, unused=unused)
        if journalled:
            services.port.decide([closing])
        else:
            services.accounts.apply(closing)

    # hooks

    def _fire_hooks(self) -> None:
        elapsed_s = self.elapsed()
        if elapsed_s < 0:
            return
        sums = self.results.ledger.accounting()
        self.hooks.look(self.rules.within(elapsed_s), sums.ok + sums.failed + sums.timed_out)

    def end_hooks(self) -> None:
        """Wait for actions that still run, then end them: contexts are undone next."""
        self._await_hooks(HOOKS_S, lambda: not self.status.interruption.drains)
        self.hooks.stop()
        self._await_hooks(HOOKS_STOP_S, lambda: True)

    def _await_hooks(self, longest_s: float, patient: Callable[[], bool]) -> None:
        begun, said = time.monotonic(), False
        while self.hooks.running and patient() and time.monotonic() < begun + longest_s:
            if not said and time.monotonic() >= begun + HOOKS_SAID_S:
                said = True
                LOG.warning(
                    "%s: the load is over; waiting up to %g s for %s that have not ended; Ctrl-C "
                    "ends them",
                    self.plan.name,
                    longest_s,
                    count(self.hooks.running, "hook action"),
                )
            with contextlib.suppress(StoreAway):
                self.services.pool.poll()
            time.sleep(0.1)

    # what is reported

    def elapsed(self) -> float:
        """Seconds since t0; negative before."""
        return self.services.clock.since_s(self._t0_ns) if self._t0_at else -LEAD_S

    def offered(self) -> Offered:
        """How the load was offered, compared with what was asked."""
        results = self.results
        duration_s = (results.statistics.last_end or 0) / 1e9
        if self.plan.runner.OPEN:
            return Offered(
                duration_s=duration_s,
                rate_planned=self.dispatcher.rate_planned,
                rate_offered=results.statistics.rate_started,
                cut_short=self.rules.cut_short,
            )
        users = self.runner.concurrency
        wanting_s = results.want_ns / 1e9 + self._missing.user_s
        asked_s = results.busy_s + wanting_s
        return Offered(
            duration_s=duration_s,
            concurrency=users,
            concurrency_held=results.busy_s / asked_s if asked_s > 0 else None,
            waited_s=wanting_s / users,
            cut_short=self.rules.cut_short,
        )

    @property
    def data_used_up(self) -> bool:
        """The last row of the data file ended a load that would have gone on."""
        data = self.plan.data
        if data is None or self.plan.runner.planned is not None or self.rules.cut_short:
            return False
        return self._started >= len(data)

    @property
    def _all_started(self) -> bool:
        """Every iteration of the plan was started; a load that only a time ends has no plan."""
        return self._planned is not None and self._started >= self._planned

    @property
    def _started(self) -> int:
        """Iterations that may have started, and dropped arrivals."""
        sums = self.results.ledger.accounting()
        return sums.settled - sums.not_started

    @property
    def _timed(self) -> bool:
        """The runner ends the load at an instant, however many iterations that makes."""
        return self._step.stop_s is not None

    @property
    def _planned(self) -> int | None:
        planned = self.runner.planned
        if self.plan.runner.OPEN or (self.plan.data is not None and planned is None):
            # rows are no plan: most often something else ends the load
            return planned
        return self._step.budget

    def show(self) -> None:
        """Pass a snapshot on, now and then."""
        now = time.monotonic()
        if now - self._shown < SHOW_S:
            return
        self._shown = now
        ledger = self.results.ledger
        sums = ledger.accounting()
        self.progress(
            Snapshot(
                workload=self.plan.number,
                name=self.plan.name,
                phase="paused" if self.under_load and self.runner.is_paused else self._phase,
                elapsed_s=max(0.0, self.elapsed()),
                # rows that a duration may leave unused are no plan
                planned=None if self._timed else self._planned,
                settled=ledger.settled,
                dropped=sums.dropped,
                ok=sums.ok,
                failed=sums.failed + sums.timed_out,
                busy=sum(worker.beat.busy for worker in self.workers.present),
                workers=len(self.workers.active),
                away=self.status.store_away,
                longest=self.workers.longest,
                **self._figures.fields(now, self.workers.served),
            )
        )
