"""Fills the ports of osbench with what fibers need. Import it before any other module of osbench.

What runs in no fiber reads the true time of the world. A module of osbench that looks at a real
clock, sleeps or starts a real thread while a world is played has failed it.
"""

from __future__ import annotations

import os
import sys
import threading as real_threading
import time as real_time
from collections.abc import Callable
from typing import Any

from osbench.common.ports import chance, clock, disk
from osbench.common.ports import threads as port
from world import present, threads
from world.fibers import EPOCH_S, S, Scheduler

_EARLY = [
    name
    for name in sys.modules
    if name.startswith("osbench.") and not name.startswith("osbench.common.ports")
]
assert _EARLY == ["osbench.common"], f"world.ports comes before {_EARLY}"

_urandom = os.urandom
# modules look at the clock while they are imported
present.begin(Scheduler(0))


def monotonic_ns() -> int:
    """The monotonic clock of the process that asks."""
    scheduler = present.scheduler()
    fiber = scheduler.current
    if fiber is None:
        return scheduler.now
    # what was read may be old by the time it is used
    found = fiber.process.monotonic_ns(scheduler.now)
    if scheduler.preempt:
        scheduler.perhaps_aside()
    return found


def time_ns() -> int:
    """The wall clock of the process that asks."""
    scheduler = present.scheduler()
    fiber = scheduler.current
    return EPOCH_S * S + scheduler.now if fiber is None else fiber.process.time_ns(scheduler.now)


def sleep(seconds: float) -> None:
    """Wait."""
    present.scheduler().wait(max(0.0, seconds))


def random_bytes(count: int = 32) -> bytes:
    """From the chance of the process that asks."""
    fiber = present.fiber()
    return _urandom(count) if fiber is None else fiber.process.chance.randbytes(count)


def _sync(descriptor: int) -> None:
    if present.fiber() is not None:
        present.world().disk.sync(descriptor)


vars(clock).update(
    monotonic_ns=monotonic_ns,
    monotonic=lambda: monotonic_ns() / S,
    time_ns=time_ns,
    time=lambda: time_ns() / S,
    sleep=sleep,
    # measurements that decide nothing, and differ each time
    process_time=lambda: 0.0,
    process_time_ns=lambda: 0,
    clock_gettime_ns=lambda _: 0,
    pthread_getcpuclockid=lambda _: 0,
)
vars(chance).update(token_bytes=random_bytes, token_hex=lambda count=32: random_bytes(count).hex())
vars(disk).update(fsync=_sync, fdatasync=_sync)
vars(port).update({name: vars(threads)[name] for name in port.__all__ if name in vars(threads)})
# of signed messages: cryptography takes it by its name
os.urandom = random_bytes


def _guarded(owner: Any, name: str) -> None:
    real: Callable[..., Any] = getattr(owner, name)

    def guard(*args: Any, **named: Any) -> Any:
        asks = sys._getframe(1).f_globals.get("__name__", "")
        if present.fiber() is not None and asks.startswith("osbench."):
            error = AssertionError(f"{asks} uses the real {name}")
            present.scheduler().failures.append((asks, error))
            raise error
        return real(*args, **named)

    setattr(owner, name, guard)


for _name in ("monotonic", "monotonic_ns", "time", "time_ns", "sleep"):
    _guarded(real_time, _name)
_guarded(real_threading.Thread, "start")
