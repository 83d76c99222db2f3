"""Which virtual users each membership has, by number: no two that run have the same."""

from __future__ import annotations

from osbench.common.intervals import Interval, Intervals


class UserRegister:
    """Gives numbers to memberships; a workload has one. Pure."""

    def __init__(self) -> None:
        self._of: dict[str, list[Interval]] = {}
        self._last = 0
        #: Numbers of memberships whose users certainly do not run any more.
        self._free = Intervals()
        #: Memberships that are over, perhaps before anybody sees that they are silent.
        self._over: set[str] = set()

    def of(self, mid: str) -> list[Interval]:
        """The numbers of a membership, in the order of its users; half-open intervals."""
        return self._of.get(mid, [])

    def wanted(self, mid: str, count: int) -> list[Interval]:
        """Numbers that a membership lacks for so many users; pass them to `give`.

        None for one that is over: its numbers are for others.
        """
        if mid in self._over:
            return []
        lack = count - sum(high - low for low, high in self.of(mid))
        found: list[Interval] = []
        for low, high in self._free:
            if lack <= 0:
                break
            part = min(high - low, lack)
            found.append((low, low + part))
            lack -= part
        if lack > 0:
            found.append((self._last + 1, self._last + 1 + lack))
        return found

    def give(self, mid: str, numbers: list[Interval]) -> None:
        """A membership has these numbers from now on, in addition to those that it has."""
        self._of.setdefault(mid, []).extend(numbers)
        for low, high in numbers:
            self._free = Intervals(_without(self._free, low, high))
            self._last = max(self._last, high - 1)

    def free(self, mid: str) -> None:
        """No user of a membership runs any more: others may have their numbers."""
        self._over.add(mid)
        for low, high in self._of.pop(mid, []):
            self._free.add(low, high)


def _without(numbers: Intervals, low: int, high: int) -> list[Interval]:
    found = []
    for begin, end in numbers:
        found += [(begin, min(end, low)), (max(begin, high), end)]
    return [(begin, end) for begin, end in found if begin < end]
