"""The settings and numbers of the virtual users of a workload."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from osbench.common.intervals import Interval
from osbench.common.plugin.scenario import NO_DATA, Scenario, VirtualUser

#: Pauses between attempts to start a user: the first, and the longest, nanoseconds.
FIRST_PAUSE_NS = 1_000_000_000
LONGEST_PAUSE_NS = 30_000_000_000


class NoRow(LookupError):
    """The data file of `users` has no row for a virtual user."""


@dataclass(frozen=True, kw_only=True)
class UserPlan:
    """The settings of virtual users: how they begin, think and end."""

    #: The scenario has an `on_start`, an `on_stop`.
    begins: bool = False
    ends: bool = False
    #: Rows of the data file of `users`, and how users take them.
    rows: Sequence[Mapping[str, Any]] = ()
    order: str = "sequential"
    unique: bool = False
    #: Seed of random rows, the same on all workers.
    seed: str = ""
    #: Opens the HTTP session of a user.
    open_http: Callable[[VirtualUser], Any] | None = None
    #: Draws the time between two iterations, nanoseconds.
    think: Callable[[], int] | None = None

    @classmethod
    def of(cls, scenario: type[Scenario], **more: Any) -> UserPlan:
        """Return the plan of a scenario class."""
        return cls(
            begins=scenario.on_start is not Scenario.on_start,
            ends=scenario.on_stop is not Scenario.on_stop,
            **more,
        )

    @property
    def has_life(self) -> bool:
        """Return whether a user has to begin before its first iteration."""
        return self.begins or self.ends or bool(self.rows)

    def user(self, number: int) -> VirtualUser:
        """Return the virtual user of a number, from 1. Raises NoRow."""
        return VirtualUser(number, self._row(number) if self.rows else NO_DATA, self.open_http)

    def _row(self, number: int) -> Mapping[str, Any]:
        count = len(self.rows)
        if self.unique or self.order == "sequential":
            if number > count:
                raise NoRow(
                    f"virtual user {number} has no row: the data file of users has {count}; "
                    "give more rows, have fewer users, or set order: cycle"
                )
            return self.rows[self._shuffled[number - 1]]
        if self.order == "random":
            choice = random.Random(f"{self.seed}/{number}")  # noqa: S311 - load, not secrets
            return self.rows[choice.randrange(count)]
        return self.rows[(number - 1) % count]

    @cached_property
    def _shuffled(self) -> Sequence[int]:
        places: Sequence[int] = range(len(self.rows))
        if self.order == "random":
            places = list(places)
            random.Random(self.seed).shuffle(places)  # noqa: S311 - load, not secrets
        return places


def pause_ns(tries: int) -> int:
    """Return the pause after so many failed attempts to start a user, nanoseconds."""
    return min(FIRST_PAUSE_NS << min(tries - 1, 10), LONGEST_PAUSE_NS)


class UserNumbers:
    """Numbers by position in this process; replaced as a whole when more come."""

    def __init__(self, numbers: Sequence[Interval] = ()) -> None:
        """`numbers` are half-open intervals; positions beyond them count on from 1."""
        self._numbers = tuple((low, high) for low, high in numbers)

    def at(self, position: int) -> int:
        """Return the number of the user at a position, from 0."""
        left = position
        for low, high in self._numbers:
            if left < high - low:
                return low + left
            left -= high - low
        return position + 1
