"""Sets of iteration numbers as sorted, disjoint, half-open intervals."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

Interval = tuple[int, int]


class Intervals:
    """A mutable set of integers, stored as disjoint half-open intervals.

    Time and memory depend on the number of intervals, not of members.
    """

    __slots__ = ("_ends", "_starts")

    def __init__(self, intervals: Iterable[Interval] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for low, high in intervals:
            self.add(low, high)

    @classmethod
    def of(cls, numbers: NDArray[np.int64]) -> Intervals:
        """Return the set of the numbers in an array of any order; duplicates count once."""
        found = cls()
        if len(numbers):
            # np.unique costs three times as much for a small array
            ordered = np.sort(numbers)
            # without sign, so that a distance beyond an int64 is not taken for a small one
            breaks = np.flatnonzero((ordered[1:] - ordered[:-1]).view(np.uint64) > 1)
            found._starts = [int(ordered[0]), *ordered[breaks + 1].tolist()]
            found._ends = [*(ordered[breaks] + 1).tolist(), int(ordered[-1]) + 1]
        return found

    def __iter__(self) -> Iterator[Interval]:
        return zip(self._starts, self._ends, strict=True)

    def __len__(self) -> int:
        return sum(self._ends) - sum(self._starts)

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._starts, number) - 1
        return at >= 0 and number < self._ends[at]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Intervals):
            return NotImplemented
        return self._starts == other._starts and self._ends == other._ends

    def __hash__(self) -> int:
        raise TypeError("a set of intervals changes and cannot be a key")

    def __repr__(self) -> str:
        return f"Intervals({list(self)})"

    @property
    def pieces(self) -> int:
        """Return the number of disjoint intervals that the set consists of."""
        return len(self._starts)

    def copy(self) -> Intervals:
        """Return an independent set with the same members."""
        twin = Intervals()
        twin._starts, twin._ends = self._starts.copy(), self._ends.copy()
        return twin

    def add(self, low: int, high: int) -> None:
        """Add the integers from `low` to `high` - 1; none if `low` >= `high`."""
        if low >= high:
            return
        first = bisect_left(self._ends, low)
        last = bisect_right(self._starts, high)
        if first < last:
            low = min(low, self._starts[first])
            high = max(high, self._ends[last - 1])
        self._starts[first:last] = [low]
        self._ends[first:last] = [high]

    def remove(self, low: int, high: int) -> None:
        """Remove the integers from `low` to `high` - 1; missing ones are ignored."""
        if low >= high:
            return
        first = bisect_right(self._ends, low)
        last = bisect_left(self._starts, high)
        if first >= last:
            return
        starts, ends = [], []
        if self._starts[first] < low:
            starts.append(self._starts[first])
            ends.append(low)
        if self._ends[last - 1] > high:
            starts.append(high)
            ends.append(self._ends[last - 1])
        self._starts[first:last] = starts
        self._ends[first:last] = ends

    def update(self, other: Iterable[Interval]) -> None:
        """Add all integers of `other`, half-open intervals in any order."""
        for low, high in other:
            self.add(low, high)

    def subtract(self, other: Iterable[Interval]) -> None:
        """Remove all integers of `other`, half-open intervals; missing ones are ignored."""
        for low, high in other:
            self.remove(low, high)

    def within(self, low: int, high: int) -> Intervals:
        """Return a new set of the members from `low` to `high` - 1."""
        found = Intervals()
        first = bisect_right(self._ends, low)
        for at in range(first, len(self._starts)):
            if self._starts[at] >= high:
                break
            found._starts.append(max(low, self._starts[at]))
            found._ends.append(min(high, self._ends[at]))
        return found

    def meets(self, other: Iterable[Interval]) -> bool:
        """Return whether the set has a member in `other`, half-open intervals."""
        starts, ends = self._starts, self._ends
        for low, high in other:
            first = bisect_right(ends, low)
            if first < len(starts) and starts[first] < high and low < high:
                return True
        return False

    def intersection(self, other: Iterable[Interval]) -> Intervals:
        """Return a new set of the members that are also in `other`, half-open intervals."""
        found = Intervals()
        for low, high in other:
            found.update(self.within(low, high))
        return found

    def take(self, count: int) -> Intervals:
        """Remove the `count` smallest members, all if there are fewer; return them as a new set."""
        taken = Intervals()
        while count > 0 and self._starts:
            low, high = self._starts[0], self._ends[0]
            cut = min(high, low + count)
            taken._starts.append(low)
            taken._ends.append(cut)
            count -= cut - low
            if cut == high:
                del self._starts[0], self._ends[0]
            else:
                self._starts[0] = cut
        return taken

    def members(self) -> NDArray[np.int64]:
        """Return all members in ascending order as an array."""
        if not self._starts:
            return np.empty(0, np.int64)
        return np.concatenate([np.arange(low, high, dtype=np.int64) for low, high in self])
