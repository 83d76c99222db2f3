"""Whatever is heard of a worker and whenever, it is in one state and has users only where heard."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from helpers.memberships import handle
from osbench.coordinator.load.fleet.worker import Readiness, WorkerState

LOST_AFTER_S = 2.0


class States(RuleBasedStateMachine):
    """A coordinator that may try any step at any time, and a worker that may say anything."""

    def __init__(self) -> None:
        super().__init__()
        self.worker = handle()
        self.now = 100.0
        self.left = False

    @rule(
        number=st.integers(0, 30),
        state=st.sampled_from(["idle", "running", "draining", "stuck"]),
        busy=st.integers(0, 4),
        ours=st.booleans(),
        session=st.sampled_from(["s-w", "other"]),
    )
    def hear(self, number: int, state: str, busy: int, ours: bool, session: str) -> None:
        self.now += 0.5
        before, known = self.worker.silence_s, self.worker.beat.beat
        mid = self.worker.mid if ours else "another"
        said = replace(
            self.worker.beat, beat=number, state=state, busy=busy, membership=mid, session=session
        )
        heard = self.worker.hear(said, 0.5, self.now)
        assert heard == (number > known and ours and session == "s-w")
        if number <= known:
            assert self.worker.silence_s == before + 0.5

    @rule()
    def hear_nothing(self) -> None:
        self.now += 0.5
        self.worker.hear(None, 0.5, self.now)

    @rule()
    def unreadable(self) -> None:
        self.worker.unreadable()

    @rule()
    def unreachable(self) -> None:
        self.worker.unreachable()

    @rule(workload=st.integers(0, 3), readiness=st.sampled_from(Readiness))
    def prepare(self, workload: int, readiness: Readiness) -> None:
        if self.worker.present:
            self.worker.begin(workload)
            self.worker.readiness = readiness

    @rule(users=st.integers(0, 8))
    def grant(self, users: int) -> None:
        if self.worker.has_users:
            self.worker.user_limit = self.worker.held = users

    @rule()
    def detect(self) -> None:
        if self.worker.present and self.worker.silence_s >= LOST_AFTER_S:
            self.worker.declare_lost()

    @rule()
    def found(self) -> None:
        if not self.worker.silence_s:
            self.worker.found()

    @rule()
    def leave(self) -> None:
        self.worker.mark_left()
        self.left = True

    @invariant()
    def users_belong_to_those_who_are_heard(self) -> None:
        if not self.worker.present:
            assert self.worker.user_limit == self.worker.held == 0
            assert not self.worker.takes_work(self.now)
            assert self.worker.capacity == 0

    @invariant()
    def who_has_left_never_comes_back(self) -> None:
        assert (self.worker.state is WorkerState.LEFT) == self.left

    @invariant()
    def who_leaves_gets_nothing(self) -> None:
        if self.worker.state is WorkerState.ACTIVE:
            assert self.worker.leave_reason is None
        else:
            assert not self.worker.takes_work(self.now)


TestStates = States.TestCase
