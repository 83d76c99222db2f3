"""Arguments of iterations that come with their arrivals: the name of each one's request."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.fernet import Fernet

from osbench.common.intervals import Intervals
from osbench.common.plugin.iteration_rows import BRANCH
from osbench.common.plugin.runner import Step, Totals
from osbench.common.protocol import data_rows
from osbench.coordinator.arrivals.arrival_file import ArrivalFile

#: Rows that a batch carries at most; open loads have no such limit.
_BATCH = 1 << 16


class ArrivalRows:
    """Row N has the name of arrival N, from 1, of a part of a file."""

    def __init__(self, file: ArrivalFile, first: int, count: int, key: bytes | None = None) -> None:
        """`first`: the number, from 0, of the first arrival; `key` encrypts rows, or a new one."""
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
        """The file."""
        return self.file.path

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.file.path.name

    @property
    def digest(self) -> str:
        """SHA-256 of the file, in hex."""
        return self.file.digest

    @property
    def arguments(self) -> list[str]:
        """The arguments that rows give."""
        return [BRANCH]

    @property
    def first(self) -> dict[str, Any]:
        """The arguments of the first row."""
        return next(self.rows())

    def rows(self) -> Iterator[dict[str, Any]]:
        """The arguments of all rows, each once."""
        return ({BRANCH: self.file.names[at]} for at in self._used())

    @property
    def batch_limit(self) -> int:
        """Rows that a batch should carry at most."""
        return _BATCH

    def encrypted(self, numbers: Intervals) -> bytes:
        """The rows of some iterations, in their order, as a batch carries them."""
        lines = self._lines
        pieces = [lines[at] for low, high in numbers for at in self._positions(low - 1, high - 1)]
        return data_rows.encrypt(b"".join(pieces), self.key)

    def within(self, step: Step, totals: Totals) -> Step:
        """Return the step unchanged: every iteration has a row."""
        return step

    def _positions(self, low: int, high: int) -> list[int]:
        """Positions of the names of the arrivals from `low` to `high` - 1, from 0."""
        found: list[int] = []
        while low < high:
            # a rate that is raised under load has more iterations: they begin again
            turn, rank = divmod(low, self._count)
            stop = min(high - turn * self._count, self._count)
            found += self.file.positions(self._first + rank, self._first + stop).tolist()
            low += stop - rank
        return found

    def _used(self) -> list[int]:
        """Positions of the names that arrivals have, in order."""
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
