"""The argument of each iteration that comes with a recorded arrival: its request's name."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.fernet import Fernet

from osbench.common.plugin.iteration_rows import BRANCH
from osbench.common.plugin.runner import Step, Totals
from osbench.common.protocol import data_rows
from osbench.common.values.intervals import Intervals
from osbench.edges.recordings.arrival_file import ArrivalFile

#: Rows that a batch carries at most; open loads have no such limit.
_BATCH = 1 << 16


class ArrivalRows:
    """Rows for iterations: row N, from 1, has the name of the Nth arrival of a part of a file.

    Iterations with numbers beyond the part get the names from its first arrival on again.
    """

    def __init__(self, file: ArrivalFile, first: int, count: int, key: bytes | None = None) -> None:
        """Take the `count` arrivals of `file` from number `first` on, which counts from 0.

        `key` encrypts the rows; None makes a new one.
        """
        self.file = file
        self.header: list[str] = [BRANCH]
        self.key = key or Fernet.generate_key()
        self._first = first
        self._count = count
        self._lines = [_line(name) for name in file.names]

    def __len__(self) -> int:
        return self._count

    @property
    def path(self) -> Path:
        """Return the path of the file of arrivals."""
        return self.file.path

    @property
    def name(self) -> str:
        """Return the name of the file, without its folder."""
        return self.file.path.name

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the file, in hex."""
        return self.file.digest

    @property
    def arguments(self) -> list[str]:
        """Return the arguments that rows give: `branch` alone."""
        return [BRANCH]

    @property
    def first(self) -> dict[str, Any]:
        """Return the arguments of one row, the first from `rows`. Raises ArrivalFileError."""
        return next(self.rows())

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each different row as arguments (`branch`: a name), in the order of `file.names`.

        Names without an arrival in the part are left out. Raises ArrivalFileError if the file is
        damaged.
        """
        return ({BRANCH: self.file.names[at]} for at in self._used())

    @property
    def batch_limit(self) -> int:
        """Return the most rows of one batch."""
        return _BATCH

    def encrypted(self, numbers: Intervals, ranks: Sequence[int]) -> bytes:
        """Return the rows of iterations by the `ranks` of their due times, encrypted for a batch.

        Raises ArrivalFileError if the file is damaged.
        """
        low, high = min(ranks, default=1), max(ranks, default=0)
        names = self._positions(low - 1, high)
        return data_rows.encrypt(b"".join(self._lines[names[at - low]] for at in ranks), self.key)

    def within(self, step: Step, totals: Totals) -> Step:
        """Return the step unchanged: every iteration has a row."""
        return step

    def _positions(self, low: int, high: int) -> list[int]:
        """Return for rows `low` to `high` - 1 (from 0 here) the position of the name in the file.

        That is its position in `file.names`. Raises ArrivalFileError if the file is damaged.
        """
        found: list[int] = []
        while low < high:
            # a rate that is raised under load has more iterations: they begin again
            turn, rank = divmod(low, self._count)
            stop = min(high - turn * self._count, self._count)
            found += self.file.positions(self._first + rank, self._first + stop).tolist()
            low += stop - rank
        return found

    def _used(self) -> list[int]:
        """Return the positions in `file.names` of names that an arrival of the part has, ascending.

        May read the part of the file. Raises ArrivalFileError if it is damaged.
        """
        if self._count == self.file.count:
            return [at for at, share in enumerate(self.file.shares) if share]
        found: set[int] = set()
        for start in range(0, self._count, _BATCH):
            stop = min(self._count, start + _BATCH)
            part = self.file.positions(self._first + start, self._first + stop)
            found.update(np.unique(part).tolist())
        return sorted(found)


def _line(name: str) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([name])
    return text.getvalue().encode("utf-8")
