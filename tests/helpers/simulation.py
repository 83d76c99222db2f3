"""A run without processes, clocks or threads: workers and a store that tests drive by chance.

The workers hold the real intake and outbox; `Truth` keeps what really happened, which a
coordinator never sees, for tests to hold the ledger against.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from osbench.common.errors import StoreAway
from osbench.common.intervals import Interval, Intervals
from osbench.common.outcomes import Outcome
from osbench.common.protocol.messages import Batch
from osbench.common.protocol.store import MemoryStore, Store
from osbench.worker.session.intake import Intake
from osbench.worker.session.outbox import Outbox

RUN, EPOCH, BOOT = "r1", "e1", "b1"
#: Bytes of blocks that a simulated worker keeps in memory: most lie in the spool.
SPOOL_AFTER = 60

ENDINGS = (Outcome.OK, Outcome.OK, Outcome.OK, Outcome.FAILED, Outcome.TIMED_OUT)


class Truth:
    """What workers really did."""

    def __init__(self, store: MemoryStore) -> None:
        self._claims = store._claims
        #: Worker and batch of each start, by number.
        self.starts: dict[int, list[tuple[str, int]]] = defaultdict(list)
        #: Numbers that workers gave back, by batch.
        self.returned: dict[int, set[int]] = defaultdict(set)
        #: Numbers of every batch that was cut.
        self.cut: dict[int, set[int]] = {}

    def owner(self, batch: int) -> str | None:
        """Who has claimed a batch; "-" where it was revoked."""
        return self._claims.get(batch)

    def start(self, worker: str, batch: int, number: int) -> None:
        """A worker starts a number of a batch: only under its claim."""
        assert self.owner(batch) == worker, f"{number} starts without a claim of batch {batch}"
        assert number not in self.returned[batch], f"{number} starts though it was given back"
        self.starts[number].append((worker, batch))

    def live(self, number: int) -> list[int]:
        """Batches under which a worker may start, or has started, a number."""
        return [
            batch
            for batch, numbers in self.cut.items()
            if number in numbers and self.owner(batch) != "-" and number not in self.returned[batch]
        ]


class Unreliable:
    """A store whose commands fail by chance: before they are done, or with a lost reply."""

    def __init__(self, store: Store, chance: random.Random, rate: float) -> None:
        self._store = store
        self._chance = chance
        #: Part of the commands that fail, half of them done all the same.
        self.rate = rate

    def __getattr__(self, name: str) -> Callable[..., Any]:
        command = getattr(self._store, name)

        def attempt(*arguments: Any) -> Any:
            fate = self._chance.random()
            if fate < self.rate / 2:
                raise StoreAway("not sent")
            answer = command(*arguments)
            if fate < self.rate:
                raise StoreAway("the reply was lost")
            return answer

        return attempt


class SimulatedWorker:
    """One worker process. Every method is something that happens to it at once or not at all."""

    def __init__(
        self,
        name: str,
        *,
        store: Any,
        truth: Truth,
        seal: Callable[[SimulatedWorker, list[tuple[int, int]], list[Interval]], bytes],
        spool: Path,
    ) -> None:
        self.name = name
        self._store = store
        self._truth = truth
        self._seal = seal
        self.intake = Intake(RUN, EPOCH, name)
        self.intake.serve(0)
        self.outbox = Outbox(spool, SPOOL_AFTER)
        #: Claimed and not started, running: (batch, number).
        self.waiting: list[tuple[int, int]] = []
        self.running: list[tuple[int, int]] = []
        #: Finished and not shipped: (number, outcome).
        self.rows: list[tuple[int, int]] = []
        self._returned = Intervals()
        self._resend = False
        self.dead = False
        #: Nothing comes in or goes out.
        self.silent = False
        #: Nothing starts any more.
        self.stopped = False

    @property
    def reachable(self) -> bool:
        """Hears and is heard."""
        return not self.dead and not self.silent

    @property
    def idle(self) -> bool:
        """Has nothing that the coordinator does not have."""
        sent = not (self.rows or self._returned or self._resend)
        return sent and not self.waiting and not self.running and not self.intake.unanswered()

    def claim(self, count: int) -> None:
        """Claim batches of about `count` numbers. Raises StoreAway."""
        fresh = [] if self.stopped else self.intake.first(count)
        wanted = self.intake.unanswered() or fresh
        owners = self._store.claim(EPOCH, BOOT, self.name, self.intake.ask(wanted))
        assert owners is not None
        for batch in self.intake.settle(wanted, owners):
            numbers = Intervals(batch.intervals).members().tolist()
            self.waiting.extend((batch.batch, number) for number in numbers)
        if self.stopped:
            self.give_back(len(self.waiting))

    def offer(self, batch: Batch) -> None:
        """A batch arrives."""
        self.intake.offer(batch)

    def start(self) -> None:
        """A virtual user takes the next number."""
        if self.waiting and not self.stopped:
            batch, number = self.waiting.pop(0)
            self._truth.start(self.name, batch, number)
            self.running.append((batch, number))

    def finish(self, chance: random.Random) -> None:
        """Some running iteration ends, or its time does."""
        if self.running:
            _, number = self.running.pop(chance.randrange(len(self.running)))
            self.rows.append((number, int(chance.choice(ENDINGS))))

    def give_back(self, count: int) -> None:
        """Return the last `count` numbers that were claimed and not started."""
        for _ in range(min(count, len(self.waiting))):
            batch, number = self.waiting.pop()
            self._truth.returned[batch].add(number)
            self._returned.add(number, number + 1)

    def stop(self) -> None:
        """Start nothing more: a stop instant, or a drain."""
        self.stopped = True
        self.intake.clear()
        self.give_back(len(self.waiting))

    def send_again(self) -> None:
        """Take all that is not acknowledged for lost."""
        self._resend = True

    def ship(self) -> None:
        """Send what there is, first again what may not have arrived. Raises StoreAway."""
        if self._resend:
            for data in self.outbox.unacknowledged():
                self._store.append(data)
            self._resend = False
        if not self.rows and not self._returned:
            return
        data = self._seal(self, self.rows, list(self._returned))
        self.rows, self._returned = [], Intervals()
        self.outbox.put(data)
        try:
            self._store.append(data)
        except StoreAway:
            self._resend = True
            raise
