"""The loop under load: reads results and heartbeats, then runs a pass of each workload."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from functools import partial

from osbench.common.errors import ContextError, StoreUnreachable
from osbench.common.plugin.entry_points import load_object
from osbench.common.ports import clock as time
from osbench.common.protocol import timers
from osbench.coordinator.load.fleet.worker import WorkerHandle
from osbench.coordinator.load.run.failover import Failover
from osbench.coordinator.load.run.resumption.earlier_run import EarlierRun
from osbench.coordinator.load.run.resumption.stall_watch import StallWatch
from osbench.coordinator.load.run.services import READ_S, RunServices
from osbench.coordinator.load.run.status import RunStatus
from osbench.coordinator.load.run.steering.steering import Steering
from osbench.coordinator.load.run.workload.workload_run import WorkloadRun
from osbench.coordinator.load.transport.outages import Outage, Outages

LOG = logging.getLogger(__name__)

#: Length of a turn while workers have little to do; otherwise `READ_S`.
EAGER_S = 0.005
#: t0 is sent earlier by this many round trips of coordinator and most distant worker: a read of the
#: control record may just have missed it, and batches come after it.
LEAD_TRIPS = 6
#: Specifications are written again this often, seconds.
RESTATE_S = 1.0
#: Interval in which the keys of the run are checked, and new workers looked for, seconds.
TEND_S = 0.5
#: Longest wait for running iterations before contexts are undone, after a second Ctrl-C.
RUNNING_S = 10.0
#: Interval of messages on the iterations that an interrupted run waits for, seconds.
WAITS_S = 10.0
#: Round trips to Redis in a turn; turns count as this much longer than usual at most, seconds; the
#: part of that which the next turn remembers.
TURN_TRIPS, LONGEST_TURN_S, TURN_MEMORY = 7, 0.7, 0.9
#: Longest wait for virtual users that end by `on_stop`.
USERS_END_S = 60.0
#: Seconds within which workers report that users have ended.
USERS_TOLD_S = 3.0
#: States of a worker that can still start iterations.
LOADED = frozenset({"preparing", "ready", "running"})
#: More between two looks at workers that prepare, for each of them, seconds.
AWAIT_S_PER_WORKER = 0.0005
#: Longest preparation of a workload on a worker.
PREPARE_S = 120.0


class LoadLoop:
    """Runs the workloads of one group under load, each on its own workers, until all have ended."""

    def __init__(
        self,
        services: RunServices,
        status: RunStatus,
        failover: Failover,
        workloads: Sequence[WorkloadRun],
        note: Callable[[], object],
    ) -> None:
        """`note` saves figures that a resuming coordinator cannot take from journal and blocks.

        It is called before the ledger of each workload is closed.
        """
        self._services = services
        self._note = note
        self._status = status
        self._failover = failover
        self._workloads = tuple(workloads)
        self._steering = Steering(services)
        self._searches = [
            load_object("search", "control")(services, one)
            for one in self._workloads
            if one.runner.is_search
        ]
        self._polled = self._read_at = self._restated = self._tended = 0.0
        #: By how much turns last longer than `POLL_S`, lately.
        self._turn_s = 0.0
        #: Of a load that was resumed.
        self._stall: StallWatch | None = None
        #: When the run was interrupted, and when the last message on its iterations was.
        self._stop_at = self._told_at = 0.0
        self._outages = Outages(self._note_outage, services.limits.patience_s)

    def run(self, turned: Callable[[], None]) -> None:
        """Prepare the workers, run the load, and return when every iteration has its final state.

        `turned` is called after each pass of the loop under load. Waits for hooks at the end, too.
        No load begins if the user ends the run before. Raises OsbenchErrors: ContextError if
        workers do not prepare, FleetError if there are none, StoreLost if Redis or the broker stays
        unreachable, StoreUnreachable if the user stops the run meanwhile, and others.
        """
        self._prepare()
        if self._status.interruption.drains:
            for workload in self._workloads:
                workload.call_off()
                workload.end_hooks()
            return
        self._patiently(self._services.clock.measure)
        # as it is not known yet how long turns last
        self._note_turn(TURN_TRIPS * self._services.clock.trip_s)
        t0_at = self._services.clock.now_s() + self._lead_s()
        for workload in self._workloads:
            self._start(workload, t0_at)
        self._load(turned)

    def _lead_s(self) -> float:
        """Return the seconds from sending t0, the start of the load, to t0 itself.

        They grow with the round trips of the coordinator and its workers to Redis and, in local
        mode, with the virtual users of each worker.
        """
        trips_s = [worker.trip_s for worker in self._services.pool.present]
        users = sum(workload.plan.users for workload in self._workloads)
        lead_s = self._services.limits.lead_s(users / max(1, len(trips_s)))
        return lead_s + LEAD_TRIPS * (max(trips_s, default=0.0) + self._services.clock.trip_s)

    def resume(self, t0_at: float, earlier: EarlierRun, turned: Callable[[], None]) -> None:
        """Go on with a load that began at `t0_at`, Redis time since 1970; return as `run` does.

        Workloads of the group that had not begun are prepared and started, too. `earlier` has the
        due times of granted arrivals. Also raises FleetError if there is no progress for `STALL_S`
        seconds.
        """
        # under load it would take too long; batches wait for a broker that is unreachable
        with contextlib.suppress(StoreUnreachable):
            self._services.channel.ready()
        self._stall = StallWatch(self._services)
        for workload in self._workloads:
            number = workload.plan.number
            if earlier.has_begun(number):
                workload.restore(t0_at)
                self._patiently(partial(workload.resume, list(earlier.dues(number))))
            else:
                # killed between two that begin at once
                self._patiently(workload.prepare)
                self._start(workload, t0_at)
        self._load(turned)

    def _load(self, turned: Callable[[], None]) -> None:
        running = list(self._workloads)
        while running:
            for workload in [one for one in running if one.ending.finished()]:
                # a closed workload has no workers for another coordinator
                self._note()
                workload.settle()
                running.remove(workload)
            try:
                if running:
                    self._turn(running)
                    turned()
            except StoreUnreachable as error:
                self._wait_for_store(error, running)
        self._await_users()
        if self._status.interruption.stops and self._services.contexts.holds:
            self._let_end()
        for workload in self._workloads:
            workload.end_hooks()

    def _await_users(self) -> None:
        """Wait, at most USERS_END_S + USERS_TOLD_S seconds, until all users have run `on_stop`.

        After that, logs a warning and returns. Returns early if the user of osbench stops the run.
        """
        now = time.monotonic()
        longest_s = max(one.specification.timeout_s or USERS_END_S for one in self._workloads)
        # a user that times out has ended, too, and workers report it a little later
        deadline = now + min(longest_s, USERS_END_S) + USERS_TOLD_S
        while left := sum(one.ending.users_to_end for one in self._workloads):
            if self._status.interruption.stops:
                return
            if time.monotonic() > deadline:
                LOG.warning("%d virtual users have not ended; they are not waited for", left)
                return
            with contextlib.suppress(StoreUnreachable):
                self._receive(READ_S)
                self._poll()

    def _let_end(self) -> None:
        """Wait at most RUNNING_S seconds until no worker runs iterations, after a second Ctrl-C.

        Their contexts are undone next. A third Ctrl-C ends the wait. Logs that it waits and, if
        some are left at its end, how many iterations still run.
        """
        LOG.warning(
            "contexts are undone when no iteration runs any more, at the latest in %g s; "
            "Ctrl-C again does not wait",
            RUNNING_S,
        )
        deadline = time.monotonic() + RUNNING_S
        while time.monotonic() < deadline and not self._status.interruption.insists:
            with contextlib.suppress(StoreUnreachable):
                self._poll()
                self._receive(READ_S)
            if not any(one.beat.busy or one.beat.state in LOADED for one in self._present):
                return
            time.sleep(READ_S)
        running = sum(one.beat.busy for one in self._present)
        LOG.warning("contexts are undone while %d iterations run", running)

    @property
    def _present(self) -> list[WorkerHandle]:
        return self._services.pool.present

    def _start(self, workload: WorkloadRun, t0_at: float) -> None:
        try:
            workload.start(t0_at)
        except StoreUnreachable as error:
            # workers hear of it with a later turn; that they start late is then start lag
            self._wait_for_store(error, ())

    def _prepare(self) -> None:
        for workload in self._workloads:
            self._patiently(workload.prepare)
        # meanwhile, since it takes as long as they do
        with contextlib.suppress(StoreUnreachable):
            self._services.channel.ready()
        deadline = time.monotonic() + PREPARE_S
        while not all(workload.workers.ready for workload in self._workloads):
            if self._status.interruption.drains:
                return
            self._patiently(self._await_workers)
            if time.monotonic() > deadline:
                slow = " and ".join(
                    workload.workers.delay()
                    for workload in self._workloads
                    if not workload.workers.ready
                )
                raise ContextError(
                    f"within {PREPARE_S:g} s {slow}; see the logs of the workers there"
                )

    def _await_workers(self) -> None:
        limits = self._services.limits
        wait_s = max(limits.await_s, AWAIT_S_PER_WORKER * len(self._present))
        self._receive(wait_s, block_s=limits.block_s)
        self._poll()
        for workload in self._workloads:
            workload.update_ready_workers()

    def _patiently(self, step: Callable[[], None]) -> None:
        """Call `step`, which has to be idempotent, again until it raises no StoreUnreachable.

        Notes outages of Redis and the broker. Raises StoreLost if one is unreachable for too long,
        StoreUnreachable if the user stops the run.
        """
        while True:
            try:
                step()
            except StoreUnreachable as error:
                self._wait_for_store(error, ())
            else:
                return

    def _turn(self, running: Sequence[WorkloadRun]) -> None:
        begun = time.monotonic()
        self._receive(self._between_reads_s(running))
        poll = time.monotonic() - self._polled >= timers.POLL_S
        if poll:
            self._poll()
            self._bound_stop()
            if self._stall is not None:
                self._stall.look(running)
            self._steering.look(running)
            for search in self._searches:
                search.look()
        for workload in running:
            workload.run_pass(poll=poll)
        if self._outages and not self._services.channel.broker_away_s:
            self._outages.broker_answers()
            self._show_outages()
        self._note_turn(time.monotonic() - begun)

    def _note_turn(self, lasted_s: float) -> None:
        """Let workers get more work ahead, for some turns, if a turn lasts longer than usual."""
        longer_s = min(lasted_s - timers.POLL_S, LONGEST_TURN_S)
        self._turn_s = max(longer_s, TURN_MEMORY * self._turn_s)
        for worker in self._present:
            worker.turn_s = self._turn_s

    def _bound_stop(self) -> None:
        """After an interrupt, log how many iterations are awaited; abandon them after `STOP_S`."""
        if not self._status.interruption.drains or self._status.interruption.stops:
            return
        now = time.monotonic()
        if not self._stop_at:
            self._stop_at = self._told_at = now
        left_s = self._stop_at + timers.STOP_S - now
        running = sum(one.beat.busy for one in self._present)
        if left_s <= 0:
            LOG.warning(
                "%d iterations have not ended within %g s: they are abandoned",
                running,
                timers.STOP_S,
            )
            self._status.interruption.overdue = True
        elif now - self._told_at >= WAITS_S:
            self._told_at = now
            LOG.warning(
                "stopping: %d iterations run, and have %.0f s more to end; Ctrl-C again stops at "
                "once",
                running,
                left_s,
            )

    def _between_reads_s(self, running: Sequence[WorkloadRun]) -> float:
        if any(workload.allocation.runs_short for workload in running):
            return EAGER_S
        if running[0].elapsed() <= 0:
            return 0.02
        # if iterations are long, blocks are few: each can be read at once, if workers are few
        scant = sum(workload.allocation.scant for workload in running)
        return min(READ_S, EAGER_S * scant) if scant else READ_S

    def _receive(self, wait_s: float, block_s: float = READ_S) -> None:
        """Read results from Redis, settle their iterations, and credit workers with their counts.

        Sleeps before, so that reads are `wait_s` seconds apart, unless more results are waiting:
        each read is a command to Redis. A read waits for results for the longer of `wait_s` and
        `block_s` seconds. Raises errors of `Receiver.receive`.
        """
        services = self._services
        pause_s = self._read_at + wait_s - time.monotonic()
        if pause_s > 0 and not services.channel.behind:
            time.sleep(pause_s)
        self._read_at = now = time.monotonic()
        pool = services.pool
        for arrival in services.receiver.receive(max(wait_s, block_s)):
            worker = pool.workers.get(arrival.mid)
            if worker is None:
                pool.restore(services.accounts.memberships[arrival.mid])
                continue
            worker.signed(now)
            if arrival.problem:
                worker.unreadable()
            elif arrival.workload == worker.workload >= 0:
                ledger = services.accounts.results[arrival.workload].ledger
                dry = ledger.outstanding(worker.name) < worker.user_limit
                worker.measured(arrival.ran, arrival.busy_s, dry=dry)

    def _wait_for_store(self, error: StoreUnreachable, running: Sequence[WorkloadRun]) -> None:
        self._outages.take(error)
        self._show_outages()
        self._services.check()
        if self._status.interruption.stops:
            raise error
        self._outages.lose_patience(error, interrupted=self._status.interruption.drains)
        for workload in running:
            workload.view.show()
        time.sleep(0.2)

    def _poll(self) -> None:
        """Read and acknowledge heartbeats, detect lost workers, invite others, write controls.

        Restores keys that Redis may have lost every TEND_S seconds, and specifications every
        RESTATE_S. Raises errors of `WorkerPool.poll`, and the error of `check` if a process of
        local mode has died.
        """
        services = self._services
        services.check()
        self._polled = now = time.monotonic()
        tends = now - self._tended >= TEND_S + 4 * self._turn_s or bool(self._outages)
        if tends:
            self._tended = now
            services.channel.tend()
            services.key_notes.look()
        services.pool.poll(relist=tends)
        services.clock.refresh()
        self._failover.detect()
        wanting = {one.workers: one.most_workers for one in self._workloads if one.wants_workers}
        self._failover.invite(wanting)
        self._failover.enlist(wanting)
        if now - self._restated >= RESTATE_S + 4 * self._turn_s:
            self._restated = now
            services.channel.restate(workload.plan.number for workload in self._workloads)
        loaded = frozenset(workload.plan.number for workload in self._workloads)
        services.controls.answer(services.pool.present, taking_over=loaded)
        # workers that have left, or are lost, still wait to learn which blocks are on disk
        services.controls.change(services.pool.workers.values())
        self._outages.redis_answers()
        self._show_outages()

    def _show_outages(self) -> None:
        self._status.store_away = self._outages.servers
        self._status.redis_away = self._outages.redis

    def _note_outage(self, server: Outage, lasted_s: float) -> None:
        from_s = self._workloads[0].elapsed() - lasted_s
        event = {"do": "outage", "server": server.server, "is_broker": server.is_broker}
        self._services.port.decide([{**event, "from_s": from_s, "lasted_s": lasted_s}])
