"""Requests to several servers in turn, with the CPU time that each server spends on its own."""

from __future__ import annotations

import contextlib
import http.client
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from osbench.coordinator.results.statistics.percentiles import interval_ranks

#: Makes the request of a turn: method, path, body and headers.
Request = tuple[str, str, bytes | None, Mapping[str, str]]


@dataclass(kw_only=True)
class Side:
    """One server and what was measured of it, a value a turn."""

    pid: int
    port: int
    #: The request of the next turn.
    request: Callable[[], Request]
    cpu_ms: list[float] = field(default_factory=list)
    latency_ms: list[float] = field(default_factory=list)


def take_turns(sides: Sequence[Side], seconds: float, warm_up: int) -> None:
    """One request to each side, again and again; who begins changes with every turn.

    What a server does after its answer counts for the turn before. Raises ConnectionError for an
    answer that is a failure.
    """
    connections = [http.client.HTTPConnection("127.0.0.1", side.port, timeout=60) for side in sides]
    try:
        for _ in range(warm_up):
            for side, connection in zip(sides, connections, strict=True):
                _ask(connection, side.request())
        clocks = [process_clock(side.pid) for side in sides]
        before = [time.clock_gettime(clock) for clock in clocks]
        until = time.monotonic() + seconds
        for first in _turns(len(sides)):
            for at in (*range(first, len(sides)), *range(first)):
                sides[at].latency_ms.append(_ask(connections[at], sides[at].request()))
            after = [time.clock_gettime(clock) for clock in clocks]
            for side, begun, ended in zip(sides, before, after, strict=True):
                side.cpu_ms.append((ended - begun) * 1000)
            before = after
            if time.monotonic() > until:
                return
    finally:
        for connection in connections:
            connection.close()


def ask(port: int, request: Request) -> None:
    """One request on a connection of its own. Raises ConnectionError for a failure."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as one:
        _ask(one, request)


def process_clock(pid: int) -> int:
    """The clock of a process' CPU time, all threads: what clock_getcpuclockid(3) gives on Linux."""
    return ~pid << 3 | 2


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % confidence interval of the median, or None where there are too few values."""
    ranks = interval_ranks(len(values), 50)
    if ranks is None:
        return None
    ordered = sorted(values)
    return ordered[ranks[0] - 1], ordered[ranks[1] - 1]


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """The ratio of each turn."""
    return [one / other for one, other in zip(ours, theirs, strict=True) if other]


def _turns(sides: int) -> Iterator[int]:
    while True:
        yield from range(sides)


def _ask(connection: http.client.HTTPConnection, request: Request) -> float:
    """Milliseconds until the answer was read."""
    method, path, body, headers = request
    begin = time.perf_counter()
    connection.request(method, path, body, dict(headers))
    answer = connection.getresponse()
    answer.read()
    spent_ms = (time.perf_counter() - begin) * 1000
    if answer.status >= 400:
        raise ConnectionError(f"{method} {path} on port {connection.port}: {answer.status}")
    return spent_ms
