"""Engines with scenarios made on the spot, for tests that run them in this process."""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic_ns
from typing import Any

import numpy as np

from osbench.common.intervals import Intervals
from osbench.common.outcomes import Outcome
from osbench.common.plugin.scenario import Scenario
from osbench.common.protocol.blocks import Row
from osbench.common.protocol.messages import Batch
from osbench.worker.engine.body import Body
from osbench.worker.engine.closed_engine import ClosedEngine
from osbench.worker.engine.engine import NEVER, Engine
from osbench.worker.engine.open_engine import OpenEngine
from osbench.worker.engine.will_page import WillPage

MS = 1_000_000
S = 1000 * MS


def body(work: Callable[[Scenario], Any], *, timeout_s: float = 0.0, **more: Any) -> Body:
    """What iterations do: call `work` with the scenario."""

    class Made(Scenario):
        def run(self) -> None:
            work(self)

    return Body(
        cls=Made,
        function=Made.run,
        arguments=lambda iteration: {},
        context={"run": "r", "task": {"uuid": "t"}},
        timeout_ns=int(timeout_s * S),
        **more,
    )


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


def until(met: Callable[[], Any], limit_s: float = 20.0) -> None:
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
    **more: Any,
) -> Iterator[ClosedEngine]:
    """A closed engine, ended when the block is left."""
    engine = ClosedEngine(
        body(work, timeout_s=timeout_s, **more),
        monotonic_ns() + t0_in_ns,
        NEVER,
        request_work,
        page,
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
    **more: Any,
) -> Iterator[OpenEngine]:
    """An open engine, ended when the block is left."""
    engine = OpenEngine(
        body(work, timeout_s=timeout_s, **more),
        monotonic_ns() + t0_in_ns,
        NEVER,
        request_work,
        max_lag_ns=max_lag_ns,
        at_limit=at_limit,
        page=page,
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
    """How many are within at once, now and at most."""

    def __init__(self) -> None:
        self._inside: list[None] = []
        self.most = 0

    def __enter__(self) -> None:
        self._inside.append(None)
        self.most = max(self.most, len(self._inside))

    def __exit__(self, *_: object) -> None:
        self._inside.pop()

    @property
    def now(self) -> int:
        return len(self._inside)
