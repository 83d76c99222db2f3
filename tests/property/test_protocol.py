"""Every planned iteration is accounted for exactly once, whatever is lost, late or ended.

The real ledger, dispatch, intake, outbox and store (in memory) go through many random
interleavings of what coordinator, workers and network can do. The invariants are held after
every step.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgpack
import numpy as np
import pytest

from helpers.simulation import BOOT, EPOCH, RUN, SimulatedWorker, Truth, Unreliable
from osbench.common.errors import StoreAway
from osbench.common.intervals import Intervals
from osbench.common.outcomes import Outcome
from osbench.common.plugin.runner import Step
from osbench.common.protocol.messages import Batch
from osbench.common.protocol.store import MemoryStore
from osbench.coordinator.dispatch.dispatcher import Dispatcher
from osbench.coordinator.dispatch.port import PlannedBatch
from osbench.coordinator.fleet.worker import WorkerHandle
from osbench.coordinator.results.ledger import Ledger

INTERLEAVINGS = 500
STEPS = 220


def seal(worker, rows, returned):
    return msgpack.packb(["block", worker.name, worker.outbox.number(), rows, returned])


class World:
    """One run: a coordinator that decides at random, its workers, and the network."""

    def __init__(self, seed: int, folder: Path, *, idempotent: bool, budget: int | None) -> None:
        self.chance = random.Random(seed)
        self.idempotent = idempotent
        self.budget = budget
        self.store = MemoryStore()
        self.store.open({"epoch": EPOCH, "boot": BOOT})
        self.truth = Truth(self.store)
        self.wire = Unreliable(self.store, self.chance, self.chance.choice([0.0, 0.1, 0.2]))
        self.ledger = Ledger(idempotent=idempotent)
        self.dispatcher = Dispatcher(self, self.ledger, 0, is_open=False, max_lag_s=1.0)
        self._ids = itertools.count(1)
        self.handles: dict[str, WorkerHandle] = {}
        self.workers: dict[str, SimulatedWorker] = {}
        self.queues: dict[str, list[Batch]] = {}
        self.folder = folder
        for _ in range(self.chance.randint(1, 4)):
            self.add_worker()
        self.position = "0"
        self.on_disk: Counter[str] = Counter()
        self.fencing: set[str] = set()
        self.fenced: set[str] = set()
        #: Outcome by number as the ledger accepted it; rows of blocks that were taken.
        self.accepted: dict[int, int] = {}
        self.reported: dict[int, list[int]] = {}
        self.rows = self.duplicates = 0
        self.closed = False

    def add_worker(self) -> None:
        name = f"w{len(self.workers)}"
        self.queues[name] = []
        self.handles[name] = WorkerHandle(SimpleNamespace(incarnation=name))
        self.workers[name] = SimulatedWorker(
            name, store=self.wire, truth=self.truth, seal=seal, spool=self.folder / name
        )

    def some_worker(self) -> SimulatedWorker:
        return self.chance.choice(list(self.workers.values()))

    def alive(self) -> SimulatedWorker | None:
        found = [worker for worker in self.workers.values() if not worker.dead]
        return self.chance.choice(found) if found else None

    def heard(self) -> SimulatedWorker | None:
        found = [worker for worker in self.workers.values() if worker.reachable]
        return self.chance.choice(found) if found else None

    # what the coordinator does

    def place(self) -> None:
        """Cut and send batches, as many and as large as by chance the workers' speeds ask for."""
        takers = [m for name, m in self.handles.items() if name not in self.fenced | self.fencing]
        for member in takers:
            member.share = self.chance.randint(0, 3)
            member.rate = self.chance.choice([0.5, 2.0, 5.0])
            if self.budget is not None and self.chance.random() < 0.2:
                member.rate = 0.0
        self.chance.shuffle(takers)
        self.dispatcher.place(Step(budget=self.budget), takers, 0.0, None)

    # the port of the dispatcher

    def next_batch_id(self) -> int:
        return next(self._ids)

    def revoke(self, batches: Sequence[int]) -> list[bool]:
        return self.wire.take_away(batches)

    def journal(self, records: Iterable[dict[str, Any]]) -> None:
        """The journal: what is cut is noted here before it is sent."""
        for record in records:
            if record["do"] == "cut":
                numbers = Intervals(record["intervals"]).members().tolist()
                for number in numbers:
                    self.may_move(number)
                self.truth.cut[record["batch"]] = set(numbers)

    def publish(self, planned: PlannedBatch) -> None:
        batch = Batch(
            run=RUN,
            epoch=EPOCH,
            incarnation=planned.worker,
            workload=planned.workload,
            batch=planned.batch,
            intervals=planned.intervals,
        )
        fate = self.chance.random()
        if fate >= self.wire.rate / 2:
            self.queues[batch.incarnation].append(batch)
        if fate < self.wire.rate:
            raise StoreAway("whether it was sent is not known")

    def may_move(self, number: int) -> None:
        """Nobody else may start a number that is placed, nor may it have started."""
        for batch in self.truth.live(number):
            owner = self.truth.owner(batch)
            assert self.idempotent, f"{number} moves, yet {owner} may start batch {batch}"
            assert owner in self.fenced, f"{number} is run again, yet {owner} was not given up"

    def take_some(self) -> None:
        batches = self.ledger.open_batches(self.some_worker().name)
        some = self.chance.sample(batches, self.chance.randint(0, len(batches)))
        self.dispatcher._batches.revoke(some)

    def read(self) -> None:
        entries = self.wire.read(self.position, 0, self.chance.randint(1, 8))
        for position, data in entries:
            self.position = position
            kind, name, *parts = msgpack.unpackb(data)
            if kind == "fence":
                self.fenced.add(name)
                self.fencing.discard(name)
                self.ledger.fence(name)
            elif parts[0] <= self.on_disk[name]:
                self.duplicates += 1
            else:
                assert parts[0] == self.on_disk[name] + 1, "a block is missing"
                self.on_disk[name] += 1
                self.count(name, *parts[1:])
        if entries:
            self.wire.trim(self.position)

    def count(self, name: str, rows: list, returned: list) -> None:
        if rows:
            numbers = np.array([row[0] for row in rows], np.int64)
            outcomes = np.array([row[1] for row in rows], np.uint8)
            taken = self.ledger.report(name, numbers, outcomes)
            self.rows += len(rows)
            for (number, outcome), mine in zip(rows, taken.tolist(), strict=True):
                self.reported.setdefault(number, []).append(outcome)
                if mine:
                    assert number not in self.accepted, f"{number} is counted twice"
                    self.accepted[number] = outcome
        self.ledger.give_back(name, [(low, high) for low, high in returned])

    def suspect(self) -> None:
        """Declare a worker lost, mostly a silent one, sometimes one that is well."""
        worker = self.some_worker()
        if worker.reachable and self.chance.random() < 0.9:
            return
        if worker.name not in self.fenced | self.fencing:
            self.fence(worker.name)

    def fence(self, name: str) -> None:
        self.fencing.add(name)
        try:
            self.wire.append(msgpack.packb(["fence", name]))
        except StoreAway:
            # it may be there or not: another one is sent later, the first that is read counts
            self.fencing.discard(name)

    def reclaim(self) -> None:
        for name in self.fenced:
            self.dispatcher.reclaim(name)

    # what happens to workers

    def deliver(self) -> None:
        worker = self.heard()
        if worker and self.queues[worker.name]:
            batch = self.queues[worker.name].pop(0)
            worker.offer(batch)
            if self.chance.random() < 0.1:
                worker.offer(batch)

    def claim(self) -> None:
        if worker := self.heard():
            worker.claim(self.chance.randint(0, 8))

    def run(self) -> None:
        if worker := self.alive():
            for _ in range(self.chance.randint(1, 4)):
                self.chance.choice([worker.start, lambda: worker.finish(self.chance)])()

    def ship(self) -> None:
        if worker := self.heard():
            worker.ship()

    def reconnect(self) -> None:
        """All that is not acknowledged is sent again."""
        if worker := self.heard():
            worker.send_again()

    def acknowledge(self) -> None:
        if worker := self.heard():
            worker.outbox.acknowledge(self.on_disk[worker.name])

    def lower_share(self) -> None:
        if worker := self.alive():
            worker.give_back(1)

    def trouble(self) -> None:
        """A worker dies, falls silent, comes back, or drains; another one comes."""
        worker = self.some_worker()
        fate = self.chance.random()
        if fate < 0.1:
            worker.dead = True
        elif fate < 0.4:
            worker.silent = True
        elif fate < 0.7:
            worker.silent = False
        elif fate < 0.75 and not worker.dead:
            worker.stop()
        elif len(self.workers) < 8:
            self.add_worker()

    def stop_instant(self) -> None:
        for worker in self.workers.values():
            if worker.reachable:
                worker.stop()

    def step(self) -> None:
        decisions = [self.place, self.take_some, self.read, self.reclaim]
        happenings = [self.deliver, self.claim, self.run, self.ship, self.reconnect]
        happenings += [self.acknowledge, self.lower_share, self.trouble, self.suspect]
        weights = [6, 1, 6, 2, 8, 8, 24, 8, 1, 2, 1, 2, 3]
        event = self.chance.choices(decisions + happenings, weights)[0]
        with contextlib.suppress(StoreAway):
            event()
        if event in decisions:
            self.check()
        elif event == self.run:
            self.check_starts()

    # what must hold

    def check(self) -> None:
        ledger = self.ledger
        everywhere = [ledger.pool, ledger._suspect, ledger._settled]
        if not self.closed:
            assert_disjoint(everywhere)
            outstanding = list(ledger._outstanding.values())
            assert_disjoint([*outstanding, ledger.pool, ledger._suspect])
            if not self.idempotent:
                assert_disjoint([*outstanding, ledger._settled])
            known = Intervals()
            for numbers in [*everywhere, *outstanding]:
                known.update(numbers)
            assert len(known) == ledger.allotted == max((b for _, b in known), default=1) - 1
            assert_disjoint(
                [b.numbers.intersection(ledger._outstanding[b.worker]) for b in open_of(ledger)]
            )
        self.check_starts()
        self.check_counts()

    def check_starts(self) -> None:
        for number, starts in self.truth.starts.items():
            if len(starts) > 1:
                assert self.idempotent, f"{number} was started twice: {starts}"
                again = [worker for worker, _ in starts if worker not in self.fenced]
                assert len(again) <= 1, f"{number} was started again: {starts}"

    def check_counts(self) -> None:
        sums = self.ledger.accounting()
        counts = Counter(self.accepted.values())
        assert (sums.ok, sums.failed, sums.timed_out) == (
            counts[Outcome.OK],
            counts[Outcome.FAILED],
            counts[Outcome.TIMED_OUT],
        )
        # a reported iteration has its own state, whichever worker reported it and when
        assert self.reported.keys() == self.accepted.keys()
        # what reads the blocks again relies on it: the first row is the one that counted
        assert {at: rows[0] for at, rows in self.reported.items()} == self.accepted
        assert self.rows == len(self.accepted) + sums.stale
        assert 0 <= sums.late <= len(self.accepted)
        assert sums.reruns >= sum(len(s) - 1 for s in self.truth.starts.values())
        if self.closed:
            assert sums.settled == sums.planned, sums

    # the end

    def end(self, *, orderly: bool) -> None:
        """Close the run: when all is quiet, or at once."""
        if orderly:
            self.quieten()
        if self.budget is None:
            self.ledger.release_unused()
        unplaced = Intervals(self.ledger.pool)
        self.ledger.close(self.budget)
        self.closed = True
        self.check()
        sums = self.ledger.accounting()
        for number in Intervals(self.ledger.pool).members().tolist():
            assert number in unplaced
            assert not self.truth.starts[number], f"{number} started, and counts as not started"
        for number in self.ledger._suspect.members().tolist():
            owners = {self.truth.owner(b) for b, held in self.truth.cut.items() if number in held}
            assert not orderly or owners & self.fenced, f"{number} is lost for no reason"
        if orderly and not self.fenced:
            assert sums.lost == 0

    def quieten(self) -> None:
        """The network works again; silent workers are given up; the rest is collected."""
        self.wire.rate = 0.0
        for worker in self.workers.values():
            if not worker.reachable and worker.name not in self.fenced:
                self.fence(worker.name)
        for _ in range(200):
            if not self.ledger.open and not self.fencing:
                return
            self.dispatcher.take_back_unclaimed(list(self.handles.values()))
            for worker in self.workers.values():
                if worker.reachable:
                    self.go_on(worker)
            self.read()
            self.reclaim()
            self.check()
        raise AssertionError("the run does not end")

    def go_on(self, worker: SimulatedWorker) -> None:
        while self.queues[worker.name]:
            worker.offer(self.queues[worker.name].pop(0))
        worker.claim(100)
        while worker.waiting or worker.running:
            worker.start()
            worker.finish(self.chance)
        worker.ship()

    def come_back(self) -> None:
        """Workers that were silent report behind the fence, and after the close."""
        self.wire.rate = 0.0
        for worker in self.workers.values():
            worker.silent = False
            if not worker.dead:
                worker.stop()
                while worker.running:
                    worker.finish(self.chance)
                worker.ship()
        for _ in range(100):
            self.read()
            self.check()


def open_of(ledger: Ledger) -> list:
    return list(ledger.batches.values())


def assert_disjoint(sets: list[Intervals]) -> None:
    union = Intervals()
    for numbers in sets:
        union.update(numbers)
    assert len(union) == sum(len(numbers) for numbers in sets)


@pytest.mark.parametrize("budget", [15, None], ids=["times", "duration"])
@pytest.mark.parametrize("idempotent", [False, True], ids=["once", "idempotent"])
def test_every_iteration_has_one_state_in_any_interleaving(tmp_path, idempotent, budget):
    for seed in range(INTERLEAVINGS):
        world = World(seed, tmp_path / str(seed), idempotent=idempotent, budget=budget)
        try:
            stop = world.chance.randrange(4 * STEPS)
            for at in range(STEPS):
                if at == stop:
                    world.stop_instant()
                world.step()
            world.end(orderly=bool(seed % 3))
            world.come_back()
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise
        finally:
            for worker in world.workers.values():
                worker.outbox.close()
