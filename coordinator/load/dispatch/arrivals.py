"""Due times of arrivals by iteration number. Does no I/O."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
#: Instants older than this before the last are forgotten, nanoseconds.
KEPT_NS = 120_000_000_000
#: Longest span of the arrivals of a batch, nanoseconds.
SLICE_NS = 2_000_000_000


class Dues:
    """Due times of arrivals that were granted or dropped lately, nanoseconds after t0, by number.

    Parts due more than `KEPT_NS` before the newest are forgotten: they are not granted again.
    """

    def __init__(self) -> None:
        self._first: list[int] = []
        self._dues: list[Ints] = []
        #: Ranks of the arrivals by time, from 1; None for parts that are not ranked yet.
        self._ranks: list[Ints | None] = []

    def add(self, first: int, dues: Ints, *, whole: bool = True) -> None:
        """Add the due times of numbers `first`, `first` + 1 and so on; forget old ones.

        `first` grows with every call; `dues` must not be empty. Not `whole`: arrivals of other
        parts may be due between these.
        """
        self._first.append(first)
        self._dues.append(dues)
        self._ranks.append(
            _ranks_by_time(np.arange(first, first + len(dues)), dues) if whole else None
        )
        while len(self._dues) > 1 and self._dues[0][-1] < dues[-1] - KEPT_NS:
            del self._first[0], self._dues[0], self._ranks[0]

    def of(self, numbers: Ints) -> Ints:
        """Return the due times of `numbers`, in their order, nanoseconds after t0.

        For forgotten or unknown numbers a time long past.
        """
        return self._found(numbers, self._dues, -(1 << 60))

    def ranks_of(self, numbers: Ints) -> Ints:
        """Return the ranks of `numbers` among all arrivals by their due times, from 1.

        Numbers of equal times are in their order. A forgotten or unknown number is its own rank.
        """
        parts = [at for at, ranks in enumerate(self._ranks) if ranks is None]
        if parts:
            sizes = [len(self._dues[at]) for at in parts]
            known = [
                np.arange(self._first[at], self._first[at] + len(self._dues[at])) for at in parts
            ]
            ranks = _ranks_by_time(
                np.concatenate(known), np.concatenate([self._dues[at] for at in parts])
            )
            for at, part in zip(parts, np.split(ranks, np.cumsum(sizes)[:-1]), strict=True):
                self._ranks[at] = part
        found = self._found(numbers, [one for one in self._ranks if one is not None], 0)
        return np.where(found > 0, found, numbers)

    def _found(self, numbers: Ints, values: Sequence[Ints], missing: int) -> Ints:
        found = np.full(len(numbers), missing, np.int64)
        if not len(numbers):
            return found
        # two minutes of parts are some hundreds, of which a grant needs one
        begin = max(0, bisect.bisect_right(self._first, int(numbers.min())) - 1)
        end = bisect.bisect_right(self._first, int(numbers.max()))
        for first, part in zip(self._first[begin:end], values[begin:end], strict=True):
            inside = (numbers >= first) & (numbers < first + len(part))
            found[inside] = part[numbers[inside] - first]
        return found


def _ranks_by_time(numbers: Ints, dues: Ints) -> Ints:
    """Return `numbers`, ascending, in the order of due times: the rank of each arrival by time."""
    found = np.empty(len(numbers), np.int64)
    found[np.argsort(dues, kind="stable")] = numbers
    return found


def slices(dues: Ints, width_ns: int = SLICE_NS) -> list[Ints]:
    """Split ascending times (ns) into consecutive parts that each span at most `width_ns`."""
    found = []
    while len(dues):
        end = int(np.searchsorted(dues, dues[0] + width_ns, side="right"))
        found.append(dues[:end])
        dues = dues[end:]
    return found


def nanoseconds(seconds: Sequence[float]) -> Ints:
    """Convert times in seconds to an array of integer nanoseconds, rounded."""
    return np.rint(np.asarray(seconds, np.float64) * 1e9).astype(np.int64)
