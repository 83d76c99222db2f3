"""Samples of processes and of Redis while a run goes on."""

from __future__ import annotations

import contextlib
import csv
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import psutil
import redis

#: What is noted of a process, and the most that each may grow over a run. Virtual
#: users of open loads are threads that begin when arrivals overlap. Not judged is CPU: on a machine
#: with other work it says how much that left.
PROCESS_LIMITS = {"memory MB": 4.0, "descriptors": 2.0, "threads": 8.0, "cpu %": math.inf}
#: Of the coordinator's memory: its tables of latency over time have 600 bins of time, which fill,
#: and as many buckets as latencies differ, up to about 10 MB for each of two workloads.
COORDINATOR_MB = 24.0
#: The same of Redis.
REDIS_LIMITS = {"keys": 2.0, "data MB": 1.0, "stream": 50.0, "clients": 2.0}


@dataclass(slots=True)
class Series:
    """What was sampled, by name."""

    times_s: list[float] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, at_s: float, found: Mapping[str, float]) -> None:
        """One sample. A name that is new begins with its first value, one that is gone ends."""
        self.times_s.append(at_s)
        for name, value in found.items():
            earlier = self.values.setdefault(name, [])
            earlier.extend([value] * (len(self.times_s) - 1 - len(earlier)))
            earlier.append(value)

    def whole(self) -> Iterator[tuple[str, list[float]]]:
        """The series that were there to the end."""
        for name, values in self.values.items():
            if len(values) == len(self.times_s):
                yield name, values

    def write(self, path: Path) -> None:
        """Write a table with a line for each sample."""
        names = list(self.values)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["seconds", *names])
            for at, seconds in enumerate(self.times_s):
                cells = [self.values[name][at : at + 1] for name in names]
                writer.writerow(
                    [f"{seconds:.1f}", *(f"{one[0]:g}" if one else "" for one in cells)]
                )


class Sampler:
    """Looks at processes, by the names that a reader knows them by, and at a Redis."""

    def __init__(self, processes: Mapping[str, int], client: redis.Redis, stream: str) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in processes.items()}
        self._client = client
        self._stream = stream
        self._used: dict[str, tuple[float, float]] = {}
        self._begun = time.monotonic()
        self.series = Series()

    def sample(self) -> None:
        """Take one sample."""
        found: dict[str, float] = {}
        for name, process in self._processes.items():
            with contextlib.suppress(psutil.NoSuchProcess):
                found |= {f"{name}: {what}": value for what, value in self._of(name, process)}
        found |= {f"Redis: {what}": value for what, value in self._of_redis()}
        self.series.add(time.monotonic() - self._begun, found)

    def _of(self, name: str, process: psutil.Process) -> Iterator[tuple[str, float]]:
        with process.oneshot():
            times = process.cpu_times()
            yield "memory MB", process.memory_info().rss / 1e6
            yield "threads", process.num_threads()
        yield "descriptors", process.num_fds()
        now, used = time.monotonic(), times.user + times.system
        at, before = self._used.get(name, (now, used))
        self._used[name] = (now, used)
        if now > at:
            yield "cpu %", 100 * (used - before) / (now - at)

    def _of_redis(self) -> Iterator[tuple[str, float]]:
        info = cast(dict[str, float], self._client.info())
        yield "keys", cast(int, self._client.dbsize())
        # buffers of clients come and go
        yield "data MB", info["used_memory_dataset"] / 1e6
        yield "clients", info["connected_clients"]
        yield "stream", cast(int, self._client.xlen(self._stream))


def limit_of(name: str) -> float:
    """How much a series may grow over a run."""
    if name == "coordinator: memory MB":
        return COORDINATOR_MB
    whose, _, what = name.partition(": ")
    return (REDIS_LIMITS if whose == "Redis" else PROCESS_LIMITS).get(what, 0.0)
