"""The command of `make user-search-truth`: searches for users at once, in virtual time.

Each round draws a service (1 to 6 servers), think times, and a limit that a known number of users
just meets. Users of such a closed network think, and then queue for a server: its mean response
time is known exactly. The round searches to the end, and compares its interval with that number.
"""

from __future__ import annotations

import heapq
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import click
import numpy as np
from numpy.typing import NDArray

from osbench.common.plugin.runner import Capacity, Trial
from osbench.edges.capacity.search import Search

Floats = NDArray[np.float64]

#: Seconds of a trial, and its part that is not judged; the mean service time is a second.
TRIAL_S, SETTLE_S = 480.0, 80.0


def searched(judge: Callable[[int], bool], **config: Any) -> tuple[Capacity, list[float]]:
    """Search to the end; the capacity, and the numbers that were tried."""
    runner = Search({"users": {"low": 1, "high": 500}, **config})
    trials: list[Trial] = []
    while (users := runner.next_rate(trials)) is not None:
        trials.append(Trial(rate=users, held=judge(int(users))))
    return runner.found(trials), [trial.rate for trial in trials]


def response_times(
    generator: np.random.Generator, users: int, servers: int, think_s: float, length_s: float
) -> tuple[Floats, Floats]:
    """Instants of requests and their response times; the mean service time is 1 s.

    Users think for exponential times, then queue for one of the servers in one line.
    """
    ready = [(at, user) for user, at in enumerate(generator.exponential(think_s, users))]
    heapq.heapify(ready)
    free = [0.0] * servers
    begun, times = [], []
    while ready[0][0] < length_s:
        at, user = heapq.heappop(ready)
        done = max(heapq.heappop(free), at) + generator.exponential(1.0)
        heapq.heappush(free, done)
        begun.append(at)
        times.append(done - at)
        heapq.heappush(ready, (done + generator.exponential(think_s), user))
    return np.array(begun), np.array(times)


def mean_time(users: int, servers: int, think_s: float) -> float:
    """The exact mean response time of the machine repairman's queue (Kleinrock 1975, 3.8)."""
    weights = [1.0]
    for waiting in range(1, users + 1):
        birth = (users - waiting + 1) / think_s
        weights.append(weights[-1] * birth / min(waiting, servers))
    total = sum(weights)
    at_servers = sum(n * weight for n, weight in enumerate(weights)) / total
    rate = sum((users - n) * weight for n, weight in enumerate(weights)) / total / think_s
    return at_servers / rate


@dataclass(frozen=True, kw_only=True)
class UserSearchRound:
    """A search of a drawn service: its parameters, the most users it bears, and the result."""

    seed: int
    servers: int
    think_s: float
    most: int
    found: Capacity

    @classmethod
    def of(cls, seed: int) -> Self:
        """Draw a service by a seed, and search its users to the end."""
        generator = np.random.default_rng(seed)
        servers, think_s = int(generator.integers(1, 7)), float(generator.uniform(1, 20))
        # from the users that fill the servers on: below, no limit tells two numbers apart
        most = int(generator.uniform(1, 2) * servers * (think_s + 1))
        # between two numbers of users, so that one of them is the most by some margin
        limit_s = (mean_time(most, servers, think_s) + mean_time(most + 1, servers, think_s)) / 2

        def judge(users: int) -> bool:
            begun, times = response_times(generator, users, servers, think_s, TRIAL_S)
            return float(np.mean(times[begun >= SETTLE_S])) <= limit_s

        found, _ = searched(judge, users={"low": max(1, most // 7), "high": 3 * most})
        return cls(seed=seed, servers=servers, think_s=think_s, most=most, found=found)

    @property
    def is_bracketed(self) -> bool:
        """Whether the interval has the most users."""
        low, high = self.found.low, self.found.high
        return low is not None and high is not None and low <= self.most <= high

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.servers} servers, think time {self.think_s:.1f} s, at most"
            f" {self.most} users; found {self.found.low} to {self.found.high}"
        )


@click.command(context_settings={"show_default": True})
@click.option("--rounds", type=click.IntRange(1), default=400, help="Services.")
@click.option("--first", default=0, help="Seed of the first one.")
def main(rounds: int, first: int) -> None:
    """Search the users of drawn services, and count the intervals with the right number.

    Exit code 1 if fewer than 95 % have it.
    """
    begun = time.monotonic()
    right = wide = 0
    for number in range(rounds):
        one = UserSearchRound.of(first + number)
        right += one.is_bracketed
        wide += not one.found.precise
        if not one.is_bracketed:
            click.echo(f"MISSED, {one}")
        if (number + 1) % 50 == 0:
            click.echo(f"{right} of {number + 1} bracketed")
    click.echo(
        f"{right} of {rounds} bracketed, {wide} of them after all trials without the precision;"
        f" seeds {first} to {first + rounds - 1}, {time.monotonic() - begun:.0f} s"
    )
    sys.exit(1 if right < 0.95 * rounds else 0)


if __name__ == "__main__":
    main()
