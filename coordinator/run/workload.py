"""Conducts the load of one workload: asks the runner, places work, watches its workers."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable

from osbench.common.errors import FleetError, StoreAway, StoreError
from osbench.common.plugin.runner import Runner, Step, Totals, split
from osbench.common.plugin.sla import Verdict
from osbench.common.protocol.messages import Specification
from osbench.coordinator.data_file import DataFile
from osbench.coordinator.dispatch.dispatcher import Dispatch
from osbench.coordinator.dispatch.shares import regrant
from osbench.coordinator.fleet.worker import Member
from osbench.coordinator.hooks.executor import HookExecutor
from osbench.coordinator.results.concurrency import Shortfall
from osbench.coordinator.results.totals import Offered
from osbench.coordinator.results.workload_results import Book
from osbench.coordinator.run.state import RunState
from osbench.coordinator.run.workload_workers import Crew
from osbench.coordinator.storage.progress import Snapshot

LOG = logging.getLogger(__name__)

#: Between the last preparation and the start: workers read control records every 50 ms.
LEAD_S = 0.3
#: Results of the stop instant are here so long after it, seconds.
LINGER_S = 0.25
#: Longest wait at the end for hooks that still run, and for those that were told to stop.
HOOKS_S = 60.0
HOOKS_STOP_S = 5.0


class Conductor:
    """One workload on its workers. `Concert` calls its steps in their order."""

    def __init__(
        self,
        state: RunState,
        specification: Specification,
        runner: Runner,
        *,
        book: Book,
        progress: Callable[[Snapshot], None],
        hooks: HookExecutor,
        data: DataFile | None = None,
    ) -> None:
        self._state = state
        self._spec = specification
        self._runner = runner
        self._progress = progress
        self.book = book
        self._number = specification.workload
        state.reader.books[self._number] = self.book
        self.hooks = hooks
        self._data = data
        self._dispatch = Dispatch(state, self.book, specification, data)
        self.crew = Crew(state, specification, self._dispatch)
        self._t0_at = 0.0
        self._shown = 0.0
        self._stop_s: float | None = None
        self._cut_short: str | None = None
        self._phase = "preparing"
        #: Since when there is no worker.
        self._alone_since: float | None = None
        self._step = Step()
        self._shortfall = Shortfall()

    # before the load

    def prepare(self) -> None:
        """Lay the workload out and have the workers prepare it."""
        self._state.channel.specify(self._spec)
        self.crew.begin()

    def gather(self) -> None:
        """See who has prepared. Raises FleetError where one cannot, or nobody is left."""
        self.crew.welcome(strict=True)
        self.crew.notice_silence()
        self.crew.bury()
        if not self.crew.members:
            raise FleetError("all workers of the run have died before the load")
        self.show()

    def call_off(self) -> None:
        """The user stopped the run before the load began."""
        self._ask()
        self.settle()

    def start(self, t0_at: float) -> None:
        """Begin the load at an instant, Redis time in seconds since 1970."""
        self._t0_at = self.book.t0_at = t0_at
        started = {"do": "start", "workload": self._number, "t0_at": self._t0_at}
        self._state.directory.decide([started])
        self._phase = "running"
        self._ask()
        self._write_controls()
        self._dispatch.place(self._step, self.crew.takers, self.elapsed(), self._stop_s)

    def _open_parts(self, crew: list[Member]) -> tuple[int, ...]:
        """Most virtual users of each worker; beyond its capacity where the user wishes so."""
        if not self._spec.max_concurrency:
            return tuple(member.capacity for member in crew)
        return split(self._spec.max_concurrency, [1 << 30] * len(crew))

    # under load

    def turn(self, *, poll: bool) -> None:
        """Do what is to be done now; `poll`: there are new heartbeats."""
        self._watch_criteria()
        self._fire_hooks()
        self.crew.bury()
        if poll:
            self.crew.notice_silence()
            if self._phase != "stopping":
                self.crew.replace_lost()
            self.crew.welcome(strict=False)
        self._ask()
        self._write_controls()
        stop_s = self._stop_s
        if stop_s is not None and self.elapsed() >= stop_s:
            self._phase = "stopping"
            self._dispatch.take_back_unclaimed(self.crew.members)
        else:
            self._dispatch.place(self._step, self.crew.takers, self.elapsed(), stop_s)
        self._dispatch.drain_leaving(self.crew.members)
        if poll and self.elapsed() > 0:
            self._dispatch.rescue(self.crew.members)
        self.show()

    def _ask(self) -> None:
        """Ask the runner, and grant what it says."""
        crew = self.crew.active
        ledger = self.book.ledger
        elapsed = self.elapsed()
        totals = Totals(allotted=self._dispatch.planned, settled=ledger.decided)
        capacity = [member.capacity for member in crew]
        self._step = self._runner.step(elapsed, totals, capacity)
        if self._data is not None:
            self._step = self._data.within(self._step, totals)
        stop = self._step.stop_s
        cause = self._state.stopped_for
        if cause:
            stop = min(elapsed, stop) if stop is not None else elapsed
            if not self._step.done and (self._stop_s is None or elapsed < self._stop_s):
                self._cut_short = cause
        if stop is not None and (self._stop_s is None or stop < self._stop_s):
            self._stop_s = stop
        shares = self._open_parts(crew) if self._spec.open else self._step.shares or ()
        others = [m for m in self.crew.members if m not in crew]
        regrant([*crew, *others], [*shares, *[0] * len(others)])
        self._count_missing(elapsed)

    def _count_missing(self, elapsed: float) -> None:
        fleet, stop_s = self._state.fleet.members.values(), self._stop_s
        mine = [member for member in fleet if member.workload == self._number]
        losses = self._shortfall.mourn(mine, elapsed, stop_s)
        self._state.losses += [f"{self._spec.scenario}: {loss}" for loss in losses]
        if not self._spec.open:
            granted = sum(member.share for member in self.crew.members)
            asked = self._dispatch.wants(self._step) and (stop_s is None or elapsed < stop_s)
            self._shortfall.count(elapsed, self._runner.users(elapsed) - granted, asked=asked)

    def _fire_hooks(self) -> None:
        elapsed = self.elapsed()
        if elapsed < 0:
            return
        sums = self.book.ledger.accounting()
        under_load_s = elapsed if self._stop_s is None else min(elapsed, self._stop_s)
        self.hooks.look(under_load_s, sums.ok + sums.failed + sums.timed_out)

    def _watch_criteria(self) -> None:
        """Where the run is to abort on SLA failure: look for one that nothing can mend."""
        state, book = self._state, self.book
        if not state.abort_on_sla or state.breach:
            return
        self._breached(book.criteria.breach(book.statistics, self._plan()))

    def _breached(self, verdict: Verdict | None) -> None:
        if verdict is not None:
            self._state.breach = f"{self._spec.scenario}: {verdict.criterion}: {verdict.detail}"
            LOG.warning("the load is stopped for a failed SLA: %s", self._state.breach)

    def _write_controls(self) -> None:
        self._state.controls.write(
            {
                member: {
                    "workload": self._number,
                    "t0_at": self._t0_at,
                    "share": member.share,
                    "generation": member.generation,
                    "stop_s": self._stop_s,
                }
                for member in self.crew.members
                if member.ready and (member.generation, self._stop_s) != member.granted
            }
        )
        for member in self.crew.members:
            if member.ready:
                member.granted = (member.generation, self._stop_s)

    # the end

    def abandon(self) -> None:
        """The run cannot go on: account for every iteration as things stand."""
        if not self.book.ledger.closed:
            if not self._step.done and self._step.budget is None:
                self._ask()
            self._close_ledger()
        self.hooks.stop()

    @property
    def used_up(self) -> bool:
        """The last row of the data file ended a load that would have gone on."""
        if self._data is None or self._runner.planned is not None:
            return False
        return self.book.ledger.allotted >= len(self._data)

    @property
    def begun(self) -> bool:
        """The load has started, so that there is something to report."""
        return bool(self._t0_at)

    def finished(self) -> bool:
        """Nothing more will start or be reported."""
        interruption = self._state.interruption
        ledger = self.book.ledger
        if interruption.level >= 2:
            return True
        unsettled = self._state.reader.unsettled(self._number)
        if unsettled or ledger.open or self._dispatch.doubtful:
            return False
        stopped = self._stop_s is not None and self.elapsed() >= self._stop_s + self._linger_s
        if stopped or (self._step.done and not ledger.pool):
            return True
        if self.crew.active:
            self._alone_since = None
            return False
        # nobody is left to do what is left: perhaps somebody comes
        now = time.monotonic()
        self._alone_since = self._alone_since or now
        return now - self._alone_since > self._state.wait_s

    @property
    def _linger_s(self) -> float:
        """How long users may take to say that they waited for work until the stop instant."""
        return 0.0 if self._spec.open or self._step.stop_s is None else LINGER_S

    def settle(self) -> None:
        """Close the accounts; the workers are free for other workloads."""
        if self.begun:
            # what the last results bring about; another workload's time is none of ours
            self._fire_hooks()
        self._close_ledger()
        state, book = self._state, self.book
        if self._plan() is not None and not book.ledger.accounting().not_started:
            # the stop came after the last start
            self._cut_short = None
        if state.abort_on_sla and not state.breach and not state.interruption.level:
            # nothing is to come that could mend what fails now
            self._breached(next(iter(book.criteria.failing(book.statistics)), None))
        self._state.directory.decide([{"do": "close", "workload": self._number}])
        # what Redis does not take now goes with the next change
        with contextlib.suppress(StoreAway):
            self._state.controls.change(self.crew.members, workload=-1, t0_at=None)

    def end_hooks(self) -> None:
        """Wait for actions that still run, then end them: what they act on is taken away next."""
        self._await_hooks(HOOKS_S, lambda: not self._state.interruption.level)
        self.hooks.stop()
        self._await_hooks(HOOKS_STOP_S, lambda: True)

    def _await_hooks(self, longest_s: float, patient: Callable[[], bool]) -> None:
        deadline = time.monotonic() + longest_s
        while self.hooks.running and patient() and time.monotonic() < deadline:
            with contextlib.suppress(StoreAway):
                self._state.fleet.poll()
            time.sleep(0.1)

    def _close_ledger(self) -> None:
        # what nobody has claimed was not started; where Redis is away nobody can know that
        with contextlib.suppress(StoreAway, StoreError):
            self._dispatch.take_back_unclaimed(self.crew.members)
        ledger = self.book.ledger
        # where a time ends the load, rows that nobody came to are no part of the plan
        timed = self._step.stop_s is not None
        budget = self._runner.planned if self._spec.open or timed else self._step.budget
        if budget is None:
            ledger.release_unused()
        ledger.close(budget)

    # what the report asks

    def offered(self) -> Offered:
        """How the load was offered, against what was asked."""
        statistics = self.book.statistics
        duration_s = (statistics.last_end or 0) / 1e9
        if self._spec.open:
            return Offered(
                duration_s=duration_s,
                rate_planned=self._dispatch.rate_planned,
                rate_offered=statistics.rate_started,
                cut_short=self._cut_short,
            )
        users = self._runner.concurrency
        wanting_s = self.book.want_ns / 1e9 + self._shortfall.user_s
        asked_s = self.book.busy_s + wanting_s
        return Offered(
            duration_s=duration_s,
            concurrency=users,
            concurrency_held=self.book.busy_s / asked_s if asked_s > 0 else None,
            waited_s=wanting_s / users,
            cut_short=self._cut_short,
        )

    # small things

    def _plan(self) -> int | None:
        return self._runner.planned if self._spec.open else self._step.budget

    def _failing(self) -> tuple[str, ...]:
        if not self.book.statistics.ran:
            return ()
        return tuple(v.criterion for v in self.book.criteria.failing(self.book.statistics))

    def elapsed(self) -> float:
        """Seconds since t0; negative before."""
        return self._state.offset.now_s() - self._t0_at if self._t0_at else -LEAD_S

    def show(self) -> None:
        """Tell where the workload is, now and then."""
        now = time.monotonic()
        if now - self._shown < 0.25:
            return
        self._shown = now
        sums = self.book.ledger.accounting()
        self._progress(
            Snapshot(
                workload=self._number,
                name=self._spec.scenario,
                phase=self._phase,
                elapsed_s=max(0.0, self.elapsed()),
                planned=self._plan(),
                settled=self.book.ledger.settled,
                ok=sums.ok,
                failed=sums.failed + sums.timed_out,
                busy=sum(member.beat.busy for member in self.crew.members),
                workers=len(self.crew.active),
                away=self._state.away,
                failing=self._failing(),
            )
        )
