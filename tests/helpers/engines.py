"""Engines with scenarios made on the spot, for tests that run them in this process."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic_ns
from typing import Any

import numpy as np

from osbench.common.plugin.scenario import Scenario
from osbench.common.protocol.columns import Row
from osbench.common.protocol.messages import Batch
from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import Outcome
from osbench.worker.engine.body import Body
from osbench.worker.engine.closed_coroutines import ClosedCoroutines
from osbench.worker.engine.closed_engine import ClosedEngine
from osbench.worker.engine.engine import Engine, EngineSetup
from osbench.worker.engine.granted_arrivals import ArrivalSetup
from osbench.worker.engine.open_coroutines import OpenCoroutines
from osbench.worker.engine.open_engine import OpenEngine
from osbench.worker.engine.precise_sleep import IdleCores, PreciseSleep
from osbench.worker.engine.users.user_plan import UserPlan
from osbench.worker.engine.will_page import WillPage
from servers.child import PATIENCE_S

#: Kinds of virtual users.
THREADS, COROUTINES = "threads", "coroutines"

MS = 1_000_000
S = 1000 * MS


def body(
    work: Callable[[Scenario], Any],
    *,
    timeout_s: float = 0.0,
    on_start: Callable[[Scenario], Any] | None = None,
    on_stop: Callable[[Scenario], Any] | None = None,
    plan: Mapping[str, Any] | None = None,
    **more: Any,
) -> Body:
    """What iterations do: call `work` with the scenario; await it where it is `async def`.

    `plan` are fields of `UserPlan`.
    """

    class Made(Scenario):
        def run(self) -> Any:
            return work(self)

    class MadeAsync(Scenario):
        async def run(self) -> Any:
            return await work(self)

    cls = MadeAsync if inspect.iscoroutinefunction(work) else Made
    for name, method in (("on_start", on_start), ("on_stop", on_stop)):
        if method is not None:
            setattr(cls, name, method)
    return Body(
        users=UserPlan.of(cls, **(plan or {})),
        cls=cls,
        function=cls.run,
        arguments=lambda iteration: {},
        context={"run": "r", "task": {"uuid": "t"}},
        timeout_ns=int(timeout_s * S),
        **more,
    )


class Cores(IdleCores):
    """As many idle cores as a test says."""

    def __init__(self, idle: float | None) -> None:
        super().__init__()
        self.idle = idle
        self.asked = 0

    def measure(self, now_s: float) -> float | None:
        self.asked += 1
        return self.idle


def adapted(work: Callable[[Scenario], Any], users: str) -> Callable[[Scenario], Any]:
    """The same for the users of an engine: an `async def` body is written once for both kinds."""
    if inspect.iscoroutinefunction(work) == (users == COROUTINES):
        return work

    def in_thread(scenario: Scenario) -> None:
        # `nap` and `waited_for` block where there is no loop
        with contextlib.suppress(StopIteration):
            work(scenario).send(None)

    async def in_loop(scenario: Scenario) -> None:
        work(scenario)

    return in_thread if users == THREADS else in_loop


async def nap(sleep_s: float) -> None:
    """Sleep, whatever kind of user this is."""
    if asyncio._get_running_loop() is None:
        time.sleep(sleep_s)
    else:
        await asyncio.sleep(sleep_s)


async def waited_for(event: threading.Event, limit_s: float = PATIENCE_S) -> None:
    """Wait for an event, whatever kind of user this is."""
    if asyncio._get_running_loop() is None:
        event.wait(limit_s)
        return
    end = time.monotonic() + limit_s
    while not event.is_set() and time.monotonic() < end:
        await asyncio.sleep(0.001)


def napping(sleep_s: float) -> Callable[[Scenario], Any]:
    """A body that sleeps."""

    async def work(scenario: Scenario) -> None:
        await nap(sleep_s)

    return work


def waiting(event: threading.Event) -> Callable[[Scenario], Any]:
    """A body that waits for an event."""

    async def work(scenario: Scenario) -> None:
        await waited_for(event)

    return work


async def think(scenario: Scenario, sleep_s: float) -> None:
    """Sleep between two parts of an iteration, whatever kind of user this is."""
    if asyncio._get_running_loop() is None:
        scenario.sleep_between(sleep_s)
    else:
        await scenario.think(sleep_s)


def batch(*intervals: tuple[int, int], number: int = 1, workload: int = 0, **more: Any) -> Batch:
    """A batch of iteration numbers, half-open intervals."""
    return Batch(
        run="r",
        incarnation="w",
        session="s",
        workload=workload,
        seq=number,
        intervals=list(intervals),
        **more,
    )


def arrivals(dues_ns: Sequence[int], first: int = 1, number: int = 1, workload: int = 0) -> Batch:
    """A batch of arrivals, due nanoseconds after t0."""
    dues = np.array(dues_ns, "<i8").tobytes()
    return batch((first, first + len(dues_ns)), number=number, workload=workload, dues=dues)


def until(met: Callable[[], Any], limit_s: float = PATIENCE_S) -> None:
    """Wait for a condition; fails where it is not met within a long time."""
    end = time.monotonic() + limit_s
    while not met():
        assert time.monotonic() < end, "the condition was not met"
        time.sleep(0.002)


@contextmanager
def closed(
    work: Callable[[Scenario], Any] = lambda scenario: None,
    *,
    t0_in_ns: int = 0,
    timeout_s: float = 0.0,
    request_work: Callable[[], None] = lambda: None,
    page: WillPage | None = None,
    users: str = THREADS,
    **more: Any,
) -> Iterator[ClosedEngine | ClosedCoroutines]:
    """A closed engine, ended when the block is left."""
    kind = ClosedEngine if users == THREADS else ClosedCoroutines
    engine = kind(
        EngineSetup(
            body=body(adapted(work, users), timeout_s=timeout_s, **more),
            t0_ns=monotonic_ns() + t0_in_ns,
            request_work=request_work,
            page=page,
        )
    )
    try:
        yield engine
    finally:
        engine.close()


@contextmanager
def opened(
    work: Callable[[Scenario], Any] = lambda scenario: None,
    *,
    t0_in_ns: int = 100 * MS,
    max_lag_ns: int = 1 * S,
    at_limit: Outcome = Outcome.DROPPED_MAX_CONCURRENCY,
    timeout_s: float = 0.0,
    request_work: Callable[[], None] = lambda: None,
    page: WillPage | None = None,
    users: str = THREADS,
    **more: Any,
) -> Iterator[OpenEngine | OpenCoroutines]:
    """An open engine, ended when the block is left."""
    kind = OpenEngine if users == THREADS else OpenCoroutines
    engine = kind(
        ArrivalSetup(
            body=body(adapted(work, users), timeout_s=timeout_s, **more),
            t0_ns=monotonic_ns() + t0_in_ns,
            request_work=request_work,
            page=page,
            max_lag_ns=max_lag_ns,
            at_limit=at_limit,
            sleep=PreciseSleep(0.0),
        )
    )
    try:
        yield engine
    finally:
        engine.close()


def steps(row: Row) -> list[tuple[int, ...]]:
    """The actions of a row: name id, parent, start, end, failed."""
    return list(struct.iter_unpack("<5q", row[7]))


@dataclass
class Books:
    """Where each number of an engine went, as a shipper would see it."""

    engine: Engine
    returned: Intervals = field(default_factory=Intervals)

    def settled(self) -> Counter[int]:
        """How often each number was reported or given back so far."""
        count = Counter(row[0] for row in self.engine.rows)
        self.returned.update(self.engine.returned())
        count.update(self.returned.members().tolist())
        return count

    def complete(self, numbers: range) -> bool:
        """Each of `numbers` has come back, at least once."""
        return len(self.settled()) == len(numbers)


class Gauge:
    """How many are within at once, now and at most since the last `reset`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now = 0
        self.most = 0

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1

    def reset(self) -> None:
        """Forget how many there were at most before now."""
        with self._lock:
            self.most = self.now
