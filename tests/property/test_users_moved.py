"""Virtual users move between workers and are never more than asked for."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from helpers.memberships import handle as joined
from osbench.common.plugin.runner import split
from osbench.coordinator.load.dispatch.moved_users import regrant
from osbench.coordinator.load.fleet.worker import Readiness, WorkerHandle


def handle(name: int, capacity: int) -> WorkerHandle:
    return joined(f"w{name}", beat=0, capacity=capacity)


class Worker:
    """What a worker does within its user limit: it lets go of users when their iterations end."""

    def __init__(self, handle: WorkerHandle) -> None:
        self.handle = handle
        self.generation = self.user_limit = self.busy = 0

    def follow(self) -> None:
        """Read the control record; users that are asked for become busy at once."""
        self.generation, self.user_limit = self.handle.generation, self.handle.user_limit
        self.busy = max(self.busy, self.user_limit)

    def finish(self, count: int) -> None:
        self.busy = max(self.user_limit, self.busy - count)

    def beat(self) -> None:
        beat = self.handle.beat
        surplus = self.busy - self.user_limit
        said = replace(beat, beat=beat.beat + 1, generation=self.generation, surplus=surplus)
        self.handle.hear(said, 0.5, 0.0)


class Sharing(RuleBasedStateMachine):
    """Workers come, lose capacity and lag behind; the users asked for change."""

    @initialize(asked=st.integers(1, 30), capacities=st.lists(st.integers(1, 20), min_size=1))
    def begin(self, asked: int, capacities: list[int]) -> None:
        self.asked = self.bound = asked
        self.workers = [Worker(handle(at, size)) for at, size in enumerate(capacities[:5])]

    @property
    def handles(self) -> list[WorkerHandle]:
        return [worker.handle for worker in self.workers]

    def grant(self) -> list[WorkerHandle]:
        before = {m: (m.user_limit, m.generation) for m in self.handles}
        targets = split(self.asked, [m.capacity for m in self.handles])
        changed = regrant(self.handles, targets)
        for m in self.handles:
            assert (m in changed) == (m.user_limit != before[m][0])
            assert m.generation == before[m][1] + (m in changed)
            assert changed.count(m) <= 1
        return changed

    @rule()
    def ask(self) -> None:
        self.grant()

    @rule(size=st.integers(1, 20))
    def join(self, size: int) -> None:
        if len(self.workers) < 6:
            self.workers.append(Worker(handle(len(self.workers), size)))

    @rule(asked=st.integers(1, 30))
    def change(self, asked: int) -> None:
        # what was granted for more may be held for a while
        self.bound = max(self.bound, asked) if asked < self.asked else asked
        self.bound = max(self.bound, sum(max(m.user_limit, m.held) for m in self.handles))
        self.asked = asked

    @rule(at=st.integers(0, 5), leaving=st.booleans())
    def lose_capacity(self, at: int, leaving: bool) -> None:
        readiness = Readiness.FAILED if leaving else Readiness.READY
        self.workers[at % len(self.workers)].handle.readiness = readiness

    @rule(at=st.integers(0, 5), count=st.integers(0, 5), reads=st.booleans())
    def work(self, at: int, count: int, reads: bool) -> None:
        worker = self.workers[at % len(self.workers)]
        if reads:
            worker.follow()
        worker.finish(count)
        worker.beat()

    @invariant()
    def never_more_than_asked(self) -> None:
        if not hasattr(self, "workers"):
            return
        assert sum(max(m.user_limit, m.held) for m in self.handles) <= self.bound
        # the truth behind it: users that really have an iteration
        assert sum(worker.busy for worker in self.workers) <= self.bound
        assert all(
            m.user_limit <= m.target <= m.beat.capacity for m in self.handles if m.user_limit
        )

    def teardown(self) -> None:
        if not hasattr(self, "workers"):
            return
        for worker in self.workers:
            worker.handle.readiness = Readiness.READY
        for _ in range(len(self.workers) + 2):
            self.grant()
            for worker in self.workers:
                worker.follow()
                worker.finish(99)
                worker.beat()
        assert [m.user_limit for m in self.handles] == list(
            split(self.asked, [m.capacity for m in self.handles])
        )
        assert not self.grant()


TestSharing = Sharing.TestCase


@given(st.lists(st.integers(0, 10), min_size=1, max_size=6))
def test_new_workers_get_all_of_their_targets_at_once(targets: list[int]) -> None:
    handles = [handle(at, 10) for at in range(len(targets))]

    changed = regrant(handles, targets)

    assert [m.user_limit for m in handles] == targets
    assert changed == [m for m, target in zip(handles, targets, strict=True) if target]
