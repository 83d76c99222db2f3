"""A run without its wire: random decisions and blocks, as coordinator and workers make them."""

from __future__ import annotations

import functools
import random
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helpers.result_rows import row_of
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.columns import encode_rows
from osbench.common.protocol.exchanges import OWN, pack_kept
from osbench.common.protocol.messages import Block, Will
from osbench.common.task import Named
from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.load.transport.receiver import Receiver
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.accounting.workload_results import WorkloadResults
from osbench.coordinator.results.storage.run_directory import RunDirectory

RUN = "r"
CLOSED, OPEN = 0, 1
MS = 10**6
SLA = (
    Named(name="failure_rate", config={"max": 50}),
    Named(name="max_seconds_per_iteration", config=0.02),
    Named(name="outliers", config={"max": 3, "min_iterations": 5}),
)


@functools.cache
def _plugins() -> Plugins:
    return Plugins()


def register(accounts: Accounts) -> None:
    """A closed, idempotent workload and an open one with a warm-up."""
    plugins = _plugins()
    for workload in (CLOSED, OPEN):
        results = WorkloadResults(
            idempotent=workload == CLOSED,
            sla=SlaEvaluator(SLA, plugins),
            warmup_s=0.01 * workload,
        )
        accounts.register(workload, results)


class Bag:
    """Entries that come in any order, and repeatedly."""

    def __init__(self) -> None:
        self.run_id = RUN
        self.refused = 0
        self.entries: dict[str, Block | Will] = {}
        self._next = 0
        self.size = 1

    def put(self, message: Block | Will) -> None:
        self._next += 1
        self.entries[str(self._next)] = message

    def refuse(self, reason: str) -> None:
        self.refused += 1

    def read(self, wait_s: float) -> list[tuple[str, Block | Will | None]]:
        return list(self.entries.items())[: self.size]

    def delete(self, ids: Sequence[str]) -> None:
        for one in ids:
            self.entries.pop(one, None)


class Stay:
    """The worker's side of one membership."""

    def __init__(self, mid: str, incarnation: str) -> None:
        self.mid, self.incarnation = mid, incarnation
        self.number = 0
        self.failures = 0
        #: (workload, batch, number), in their order.
        self.stock: list[tuple[int, int, int]] = []
        self.taken: dict[int, tuple[int, int]] = {}
        self.left = False

    def block(self, chance: random.Random) -> Block:
        """The results of some of its stock."""
        self.number += 1
        workload = chance.choice((CLOSED, OPEN))
        mine = [one for one in self.stock if one[0] == workload]
        run = mine[: chance.randrange(len(mine) + 1)]
        rest = mine[len(run) :]
        back = chance.sample(rest, chance.randrange(len(rest) + 1)) if chance.random() < 0.3 else []
        gone = {*run, *back}
        self.stock = [one for one in self.stock if one not in gone]
        if run:
            self.taken[workload] = run[-1][1:]
        failures: list[list[Any]] = []
        rows = [self._row(one[2], chance, failures) for one in run]
        columns: dict[str, Any] = encode_rows(rows, ("outer", "inner")[: 1 + self.number], 3)
        if chance.random() < 0.03:
            columns = {"rows": 1}
        return Block(
            run=RUN,
            incarnation=self.incarnation,
            membership=self.mid,
            number=self.number,
            workload=workload,
            columns=columns if rows else {},
            returned=[[one[2], one[2] + 1] for one in back],
            failures=failures,
            want_ns=chance.randrange(1000),
            cut=chance.randrange(2),
            lags=array("q", [chance.randrange(MS)] * 3).tobytes() if rows else b"",
        )

    def _row(self, number: int, chance: random.Random, failures: list[list[Any]]) -> Any:
        outcome = int(chance.choice((1, 1, 1, 2, 3, Outcome.DROPPED_LATE)))
        failure = 0
        if outcome == Outcome.FAILED:
            if chance.random() < 0.5 or not self.failures:
                self.failures += 1
                failures.append([self.failures, "ValueError", f"no {number % 3}", "Traceback"])
            failure = chance.randint(1, self.failures)
        began = number * MS
        ended = began + chance.randrange(1, 40) * MS
        ran = outcome <= Outcome.TIMED_OUT
        trace = chance.randbytes(16) if ran and chance.random() < 0.2 else b""
        request = (
            pack_kept(0, chance.choice((OWN, 0)), 5 * MS, MS, 100, number, 200) if ran else b""
        )
        extra = (trace, None, request) if ran else None
        actions = [0, -1, began, ended, 0] if ran else []
        return row_of(number, outcome, began - 5, began, ended, 0, failure, actions, extra)

    def last(self) -> Block:
        """The final block."""
        self.number += 1
        self.left = True
        back = [[one[2], one[2] + 1] for one in self.stock if one[0] == CLOSED]
        self.stock = [one for one in self.stock if one[0] != CLOSED]
        return Block(
            run=RUN,
            incarnation=self.incarnation,
            membership=self.mid,
            number=self.number,
            workload=CLOSED if back else -1,
            returned=back,
            final=True,
        )

    def will(self, workload: int) -> Will:
        """What its supervisor signs once it is dead."""
        seq, number = self.taken.get(workload, (0, 0))
        fields = {"run": RUN, "incarnation": self.incarnation, "membership": self.mid}
        if workload == OPEN:
            return Will(**fields, workload=OPEN, due_ns=number * MS)
        return Will(**fields, workload=CLOSED, seq=seq, number=number)


class LiveAccounts:
    """Decides and receives at random; every decision is on disk before it is applied."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.directory = RunDirectory.create(str(folder), RUN)
        self.accounts = Accounts()
        register(self.accounts)
        self.bag = Bag()
        self.receiver = Receiver(self.bag, self.accounts, self.directory)
        self.stays: list[Stay] = []
        #: All that was ever sent.
        self.sent: list[Block] = []
        self.decide({"do": "open", "epoch": 1})
        for workload in (CLOSED, OPEN):
            self.decide({"do": "start", "workload": workload, "t0_at": 1000.0 + workload})
        self.join()

    def decide(self, record: dict[str, Any]) -> None:
        self.directory.decide([record])
        self.accounts.apply(record)

    def join(self) -> None:
        number = len(self.stays)
        stay = Stay(f"{number:032x}", f"w{number % 2}")
        self.stays.append(stay)
        # sometimes its first block is what tells of it
        if self.chance.random() < 0.8:
            self.decide(self.accounts.enrolment(stay.mid, stay.incarnation))

    def step(self) -> None:
        """One thing that happens."""
        happen = self.chance.choices(
            (self.grant, self.work, self.receive, self.judge, self.drop, self.join, self.wander),
            (6, 6, 6, 3, 0.5, 0.4, 0.4),
        )[0]
        happen()

    def grant(self) -> None:
        stay = self.chance.choice(self.stays)
        member = self.accounts.memberships.get(stay.mid)
        workload = self.chance.choice((CLOSED, OPEN))
        ledger = self.accounts.results[workload].ledger
        if member is None or stay.left or ledger.closed:
            return
        numbers = ledger.allot(self.chance.randint(1, 8), None, member.name)
        found = numbers.members()
        record = {
            "do": "cut",
            "mid": stay.mid,
            "seq": member.seq + 1,
            "workload": workload,
            "intervals": list(numbers),
            "dues": (found * MS).astype("<i8").tobytes() if workload == OPEN else b"",
        }
        self.decide(record)
        stay.stock += [(workload, member.seq, number) for number in found.tolist()]

    def work(self) -> None:
        stay = self.chance.choice(self.stays)
        if stay.left:
            return
        block = stay.last() if self.chance.random() < 0.03 else stay.block(self.chance)
        self.sent.append(block)
        # some are lost on their way, and sent again
        if self.chance.random() < 0.8:
            self.bag.put(block)

    def receive(self) -> None:
        if self.sent and self.chance.random() < 0.4:
            self.bag.put(self.chance.choice(self.sent))
        order = list(self.bag.entries.items())
        self.chance.shuffle(order)
        self.bag.entries = dict(order)
        self.bag.size = self.chance.randint(1, 6)
        self.receiver.receive(0)

    def judge(self) -> None:
        """Something happens to a membership."""
        stay = self.chance.choice(self.stays)
        if stay.mid not in self.accounts.memberships:
            return
        if stay.left and self.chance.random() < 0.7:
            return
        what = self.chance.choice(("lost", "heard", "again", "again", "again", "will", "strange"))
        if what == "will":
            stay.left = True
            self.bag.put(stay.will(self.chance.choice((CLOSED, OPEN))))
        else:
            self.decide({"do": what, "mid": stay.mid})

    def wander(self) -> None:
        """Arrivals of which no worker has heard yet."""
        ledger = self.accounts.results[OPEN].ledger
        if not ledger.closed:
            ledger.pool.update(ledger.allot_new(3))

    def drop(self) -> None:
        workload = self.chance.choice((CLOSED, OPEN, OPEN, OPEN))
        ledger = self.accounts.results[workload].ledger
        pool = ledger.pool.members()
        if not len(pool) or ledger.closed:
            return
        numbers = Intervals.of(pool[: self.chance.randint(1, len(pool))])
        record = {"do": "drop", "workload": workload, "numbers": list(numbers)}
        record |= {"why": "coordinator_gone", "dues": bytes(8 * len(numbers))}
        self.decide(record)

    def close(self) -> None:
        """End all loads."""
        for workload in (CLOSED, OPEN):
            budget = 500 if workload == OPEN else None
            self.decide(self.accounts.closing(workload, budget, unused=workload == CLOSED))
