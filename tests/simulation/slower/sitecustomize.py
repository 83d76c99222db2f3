"""Slows the time of coordinators and simulated workers; Python imports this from PYTHONPATH.

OSBENCH_SIMULATION_SLOWER  a second of the protocol takes so many seconds. Two cores then carry as
                           many times the workers: processes and Redis act as on a machine that is
                           so much faster, and CPU time of a second of the protocol is the same.
"""

import os
import sys
import threading
import time

SLOWER = float(os.environ.get("OSBENCH_SIMULATION_SLOWER") or 1)
#: The instant at which both times are the same, seconds since 1970.
_ZERO_S = 1_700_000_000


def _limit(seconds: float | None) -> float | None:
    return None if seconds is None else min(seconds * SLOWER, threading.TIMEOUT_MAX)


class Event(threading.Event):
    """An event whose waits take longer."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, for so many slow seconds."""
        return super().wait(_limit(timeout))


class Condition(threading.Condition):
    """A condition whose waits take longer."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is notified, for so many slow seconds."""
        return super().wait(_limit(timeout))


class Thread(threading.Thread):
    """A thread that is waited for longer."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, for so many slow seconds."""
        super().join(_limit(timeout))


def _redis_us(micros: int) -> int:
    zero = _ZERO_S * 1_000_000
    return zero + round((micros - zero) / SLOWER)


def _slow_down() -> None:
    from osbench.common.ports import clock, threads

    def monotonic_ns() -> int:
        return int(time.monotonic_ns() / SLOWER)

    def time_ns() -> int:
        return _redis_us(time.time_ns() // 1000) * 1000

    vars(clock).update(
        monotonic_ns=monotonic_ns,
        monotonic=lambda: monotonic_ns() / 1e9,
        time_ns=time_ns,
        time=lambda: time_ns() / 1e9,
        sleep=lambda seconds: time.sleep(seconds * SLOWER),
        process_time=lambda: time.process_time() / SLOWER,
        process_time_ns=lambda: int(time.process_time_ns() / SLOWER),
    )
    # `Condition.wait_for` reads the true clock
    vars(threads).update(Event=Event, Condition=Condition, Thread=Thread)

    from osbench.common.protocol import redis_keys, store, wire

    # Redis has the true time
    for name in ("WORKER_TTL_S", "OFFER_TTL_S"):
        setattr(redis_keys, name, round(getattr(redis_keys, name) * SLOWER))
    redis_time_us = wire.Wire.time_us
    wire.Wire.time_us = lambda self: _redis_us(redis_time_us(self))  # type: ignore[method-assign]
    read = store.Store.read
    store.Store.read = lambda self, wait_s, limit: read(self, wait_s * SLOWER, limit)  # type: ignore[method-assign]


if SLOWER != 1 and any(name in " ".join(sys.orig_argv) for name in ("osbench-coord", "simulation")):
    _slow_down()
