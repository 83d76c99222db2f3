"""Conducts the load of one workload: asks the runner, places work, watches its workers."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable

from osbench.common.errors import FleetError, StoreAway, StoreError
from osbench.common.messages import Specification
from osbench.common.runner import Runner, Step, Totals, split
from osbench.common.sla import Verdict
from osbench.coordinator.accounting import Offered
from osbench.coordinator.book import Book
from osbench.coordinator.datafile import DataFile
from osbench.coordinator.dispatch import Dispatch
from osbench.coordinator.hooks.firing import Hooks
from osbench.coordinator.member import Member
from osbench.coordinator.shares import regrant
from osbench.coordinator.state import RunState, Snapshot

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
        hooks: Hooks,
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
        self._t0_at = 0.0
        self._shown = 0.0
        self._stop_s: float | None = None
        self._cut_short: str | None = None
        self._phase = "preparing"
        self._settled = False
        #: Workers the run began with, and since when there is none.
        self._size = len(self._members())
        self._alone_since: float | None = None
        self._step = Step()
        #: User-seconds asked for that no worker had.
        self._missing_s = 0.0
        self._missed_at = 0.0
        self._mourned: set[str] = set()
        self._spans_before: dict[str, tuple[int, int]] = {}
        self._spans_after: dict[str, list[int]] = {}

    # before the load

    def prepare(self) -> None:
        """Lay the workload out and have the workers prepare it."""
        self._state.channel.specify(self._spec)
        members = self._members()
        for member in members:
            member.begin(self._number)
            before = member.beat.spans
            self._spans_before[member.incarnation] = (before[0], before[1])
        self._state.controls.change(
            members,
            workload=self._number,
            t0_at=None,
            share=0,
            generation=0,
            stop_s=None,
        )

    def gather(self) -> None:
        """See who has prepared. Raises FleetError where one cannot, or nobody is left."""
        self._welcome(strict=True)
        self._notice_silence()
        self._bury()
        if not self._members():
            raise FleetError("all workers of the run have died before the load")
        self.show()

    @property
    def ready(self) -> bool:
        """All workers have prepared."""
        return all(member.ready for member in self._members())

    def delay(self) -> str:
        """What is still to be prepared, for a message."""
        slow = [member.beat.host for member in self._members() if not member.ready]
        return f"{self._spec.scenario} was not prepared on {', '.join(slow)}"

    def call_off(self) -> None:
        """The user stopped the run before the load began."""
        self._ask()
        self.settle()

    def _welcome(self, *, strict: bool) -> None:
        """Members that have prepared become ready; one that cannot is refused before the load."""
        for member in self._members():
            beat = member.beat
            if member.ready or member.unfit or beat.run != self._state.channel.run_id:
                continue
            if beat.prepared != self._number:
                continue
            if beat.problem:
                text = f"worker {beat.host} (pid {beat.pid}): {beat.problem}"
                if strict:
                    raise FleetError(text)
                LOG.warning("%s; it is not used", text)
                member.unfit = True
                continue
            member.ready = True

    def start(self, t0_at: float) -> None:
        """Begin the load at an instant, Redis time in seconds since 1970."""
        self._t0_at = self.book.t0_at = t0_at
        started = {"do": "start", "workload": self._number, "t0_at": self._t0_at}
        self._state.directory.decide([started])
        self._phase = "running"
        self._ask()
        self._write_controls()
        self._place()

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
        self._bury()
        if poll:
            self._notice_silence()
            self._replace_lost()
            self._welcome(strict=False)
        self._ask()
        self._write_controls()
        stop_s = self._stop_s
        if stop_s is not None and self.elapsed() >= stop_s:
            self._phase = "stopping"
            self._dispatch.take_back_unclaimed(self._members())
        else:
            self._place()
        self._dispatch.drain_leaving(self._members())
        if poll and self.elapsed() > 0:
            self._dispatch.rescue(self._members())
        self.show()

    def _place(self) -> None:
        # who is being given up gets nothing more, though its users are still counted
        crew = [member for member in self._crew() if not member.doomed]
        self._dispatch.place(self._step, crew, self.elapsed(), self._stop_s)

    def _ask(self) -> None:
        """Ask the runner, and grant what it says."""
        crew = self._crew()
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
        others = [m for m in self._members() if m not in crew]
        regrant([*crew, *others], [*shares, *[0] * len(others)])
        self._mourn(elapsed)
        if not self._spec.open:
            self._count_missing(elapsed)

    def _count_missing(self, elapsed: float) -> None:
        """Add the user-seconds since the last call that were asked for and not granted."""
        since = elapsed - max(0.0, self._missed_at)
        self._missed_at = elapsed
        ended = self._stop_s is not None and elapsed >= self._stop_s
        if since <= 0 or ended or not self._dispatch.wants(self._step):
            return
        granted = sum(member.share for member in self._members())
        self._missing_s += since * max(0, self._runner.users(elapsed) - granted)

    def _mourn(self, elapsed: float) -> None:
        """Workers that were given up: their users were missing since they fell silent."""
        for member in self._state.fleet.members.values():
            if not member.fenced or member.workload != self._number:
                continue
            if member.incarnation in self._mourned:
                continue
            self._mourned.add(member.incarnation)
            silent_s = max(0.0, elapsed - member.silence_s)
            until_s = elapsed if self._stop_s is None else min(elapsed, self._stop_s)
            self._missing_s += member.lost_share * max(0.0, until_s - silent_s)
            what = "sent results that cannot be read" if member.garbled else "fell silent"
            self._state.losses.append(
                f"{self._spec.scenario}: worker {member.beat.host}:{member.beat.pid} {what} "
                f"{silent_s:.0f} s into the load and was given up {elapsed - silent_s:.0f} s later"
            )

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
                for member in self._members()
                if member.ready and (member.generation, self._stop_s) != member.granted
            }
        )
        for member in self._members():
            if member.ready:
                member.granted = (member.generation, self._stop_s)

    # workers that die

    def _notice_silence(self) -> None:
        for member in self._members():
            if member.garbled or member.silence_s >= self._state.lost_after_s:
                self._state.reader.give_up(member)

    def _replace_lost(self) -> None:
        """Take free workers in place of those that died or left."""
        lack = self._size - len([m for m in self._members() if not m.leaving])
        if lack <= 0 or self._phase == "stopping" or self._state.interruption.level:
            return
        for member in self._state.fleet.adopt(lack):
            LOG.warning("worker %s takes the place of one that is gone", member.incarnation)
            member.begin(self._number)
            self._spans_before[member.incarnation] = (0, 0)
            self._state.controls.change([member], workload=self._number, t0_at=None)

    def _bury(self) -> None:
        """Take away what given-up workers had; tried again where Redis is away."""
        buried = self._state.reader.buried
        for member in [one for one in buried if one.workload == self._number]:
            self._dispatch.take_away(member.incarnation)
            self._state.fleet.forget(member.incarnation)
            self._state.controls.change([member], fenced=True)
            buried.remove(member)

    # the end

    def abandon(self) -> None:
        """The run cannot go on: account for every iteration as things stand."""
        if self._settled:
            return
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
        if self._crew():
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
            self._state.controls.change(self._members(), workload=-1, t0_at=None)

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
            self._dispatch.take_back_unclaimed(self._members())
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
        wanting_s = self.book.want_ns / 1e9 + self._missing_s
        asked_s = self.book.busy_s + wanting_s
        return Offered(
            duration_s=duration_s,
            concurrency=users,
            concurrency_held=self.book.busy_s / asked_s if asked_s > 0 else None,
            waited_s=wanting_s / users,
            cut_short=self._cut_short,
        )

    @property
    def served(self) -> frozenset[str]:
        """The worker processes that took part."""
        return frozenset(self._spans_before)

    def freeze_spans(self) -> None:
        """Another workload begins: spans written from now on are counted for it."""
        for name in self._spans_before:
            self._spans_after.setdefault(name, self._state.fleet.members[name].beat.spans)

    def spans(self) -> tuple[int, int]:
        """Spans written and dropped for this workload."""
        written = dropped = 0
        for name, (written_before, dropped_before) in self._spans_before.items():
            beat = self._state.fleet.members[name].beat
            after = self._spans_after.get(name, beat.spans)
            written += after[0] - written_before
            dropped += after[1] - dropped_before
        return written, dropped

    # small things

    def _members(self) -> list[Member]:
        members = self._state.fleet.members.values()
        return [m for m in members if m.workload == self._number and not m.fenced]

    def _crew(self) -> list[Member]:
        return [m for m in self._members() if m.active and m.ready]

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
                busy=sum(member.beat.busy for member in self._members()),
                workers=len(self._crew()),
                away=self._state.away,
                failing=self._failing(),
            )
        )
