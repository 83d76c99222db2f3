"""A worker goes through its states in one direction, whatever is received from it and when."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from helpers.heartbeats import heartbeat
from osbench.coordinator.fleet.worker import (
    LossReason,
    Readiness,
    WorkerHandle,
    WorkerState,
)

ORDER = list(WorkerState)
LOST_AFTER_S = 2.0


class States(RuleBasedStateMachine):
    """A coordinator that may try any step at any time, and a worker that may say anything."""

    def __init__(self) -> None:
        super().__init__()
        self.worker = WorkerHandle(heartbeat(beat=1))
        self.seen = [self.worker.state]
        self.silent_s = 0.0
        self.shares: list[int] = []

    def moved(self) -> None:
        if self.worker.state is not self.seen[-1]:
            self.seen.append(self.worker.state)

    @rule(
        number=st.integers(0, 30),
        state=st.sampled_from(["idle", "running", "draining", "stuck"]),
        busy=st.integers(0, 4),
    )
    def hear(self, number: int, state: str, busy: int) -> None:
        fresh = number > self.worker.beat.beat
        before = self.worker.state
        self.worker.hear(replace(heartbeat(), beat=number, state=state, busy=busy), 0.5)
        self.silent_s = 0.0 if fresh else self.silent_s + 0.5
        self.moved()
        left = before is WorkerState.ACTIVE and self.worker.state is WorkerState.LEAVING
        assert left == (fresh and state in ("draining", "stuck") and before is WorkerState.ACTIVE)

    @rule()
    def hear_nothing(self) -> None:
        self.worker.hear(None, 0.5)
        self.silent_s += 0.5

    @rule()
    def unreadable(self) -> None:
        self.worker.record_protocol_error()

    @rule(workload=st.integers(0, 3), readiness=st.sampled_from(Readiness))
    def prepare(self, workload: int, readiness: Readiness) -> None:
        if self.worker.present:
            self.worker.begin(workload)
            self.worker.readiness = readiness

    @rule(users=st.integers(0, 8))
    def grant(self, users: int) -> None:
        if self.worker.has_users:
            self.worker.share = self.worker.held = users

    @rule()
    def detect(self) -> None:
        reason = self.worker.due_loss(LOST_AFTER_S)
        if reason is None:
            return
        assert self.worker.state in (WorkerState.ACTIVE, WorkerState.LEAVING)
        if reason is LossReason.SILENT:
            assert self.silent_s >= LOST_AFTER_S
        self.worker.declare_lost(reason)
        self.moved()

    @rule(step=st.sampled_from(["declare_lost", "fence_read", "reclaimed"]))
    def any_step(self, step: str) -> None:
        """A step out of order is refused and changes nothing."""
        before = (self.worker.state, self.worker.share, self.worker.loss_reason)
        allowed = {
            "declare_lost": (WorkerState.ACTIVE, WorkerState.LEAVING),
            "fence_read": (WorkerState.FENCING,),
            "reclaimed": (WorkerState.FENCED,),
        }[step]
        call = getattr(self.worker, step)
        arguments = [LossReason.SILENT] if step == "declare_lost" else []
        if self.worker.state in allowed:
            if step == "fence_read":
                self.shares.append(self.worker.share)
            call(*arguments)
            self.moved()
        else:
            with pytest.raises(ValueError, match=self.worker.state.name):
                call(*arguments)
            assert (self.worker.state, self.worker.share, self.worker.loss_reason) == before

    @invariant()
    def states_only_advance(self) -> None:
        places = [ORDER.index(state) for state in self.seen]
        assert places == sorted(set(places))
        if WorkerState.FENCED in self.seen:
            assert WorkerState.FENCING in self.seen

    @invariant()
    def what_it_may_do_follows_from_its_state(self) -> None:
        worker, state = self.worker, self.worker.state
        assert worker.present == (state not in (WorkerState.FENCED, WorkerState.RECLAIMED))
        assert not worker.takes_work or state is WorkerState.ACTIVE
        assert not worker.takes_work or worker.has_users
        assert not worker.has_users or (worker.ready and not worker.leaving)
        assert worker.capacity == (worker.beat.capacity if worker.has_users else 0)
        assert worker.leaving == (worker.leave_reason is not None and worker.present)
        lost = state in (WorkerState.FENCING, WorkerState.FENCED, WorkerState.RECLAIMED)
        assert not lost or worker.loss_reason is not None
        assert not lost or worker.due_loss(0.0) is None
        if not worker.present:
            assert worker.share == worker.held == worker.target == 0
            assert [worker.lost_share] == self.shares


TestStates = States.TestCase
