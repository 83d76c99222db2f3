"""The settings of a workload's virtual users, and their numbers in this process."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from osbench.common.plugin.scenario import NO_DATA, Scenario, UserData, VirtualUser
from osbench.common.values.intervals import Interval

#: Pauses between attempts to start a user: the first, and the longest, nanoseconds.
FIRST_PAUSE_NS = 1_000_000_000
LONGEST_PAUSE_NS = 30_000_000_000


class NoRow(LookupError):
    """Error of a virtual user for which the data file of `users` has no row."""


@dataclass(frozen=True, kw_only=True)
class UserPlan:
    """The settings of a workload's virtual users: data, HTTP session, begin, think time and end."""

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
        """Return the plan of a scenario class, with `more` fields.

        It notes whether the class has an `on_start` and an `on_stop`.
        """
        return cls(
            begins=scenario.on_start is not Scenario.on_start,
            ends=scenario.on_stop is not Scenario.on_stop,
            **more,
        )

    @property
    def has_life(self) -> bool:
        """Return whether users must begin first: there is an `on_start`, an `on_stop` or rows."""
        return self.begins or self.ends or bool(self.rows)

    def user(self, number: int) -> VirtualUser:
        """Return a new virtual user `number`, from 1, with its row; empty without a data file.

        Raises NoRow if each row has one user (`order: sequential`, `unique`) and none is left.
        """
        data = UserData(self._row(number)) if self.rows else NO_DATA
        return VirtualUser(number, data, self.open_http)

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
    """Return the pause, ns, after `tries` failed starts of a user: 1 s, doubled to 30 s at most."""
    return min(FIRST_PAUSE_NS << min(tries - 1, 10), LONGEST_PAUSE_NS)


class UserNumbers:
    """Numbers of virtual users in the whole load, by their positions in this process. Immutable."""

    def __init__(self, numbers: Sequence[Interval] = ()) -> None:
        """`numbers` are half-open intervals, in the order of positions."""
        self._numbers = tuple((low, high) for low, high in numbers)

    def __len__(self) -> int:
        return sum(high - low for low, high in self._numbers)

    def begins_with(self, others: UserNumbers) -> bool:
        """Return whether `others`, not empty, are the first of these numbers."""
        mine, theirs = self._numbers, others._numbers
        last = len(theirs) - 1
        if not 0 <= last < len(mine) or mine[:last] != theirs[:last]:
            return False
        return mine[last][0] == theirs[last][0] and theirs[last][1] <= mine[last][1]

    def at(self, position: int) -> int:
        """Return the number of the user at `position`, from 0; `position` + 1 beyond intervals."""
        left = position
        for low, high in self._numbers:
            if left < high - low:
                return low + left
            left -= high - low
        return position + 1
