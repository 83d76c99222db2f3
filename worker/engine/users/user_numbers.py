"""The numbers of the virtual users of a process, which no other process has."""

from __future__ import annotations

from collections.abc import Sequence

from osbench.common.intervals import Interval


class UserNumbers:
    """Numbers by position in this process; replaced as a whole when more come."""

    def __init__(self, numbers: Sequence[Interval] = ()) -> None:
        """Half-open intervals of numbers; what is beyond them counts on from 1."""
        self._numbers = tuple((low, high) for low, high in numbers)

    def at(self, position: int) -> int:
        """The number of the user at a position, from 0."""
        left = position
        for low, high in self._numbers:
            if left < high - low:
                return low + left
            left -= high - low
        return position + 1
