"""The interface of files with a row of arguments for each iteration; batches carry the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from osbench.common.plugin.load_step import Step, Totals
from osbench.common.values.intervals import Intervals

#: The argument that gets the name of what an arrival requests.
BRANCH = "branch"


class IterationRows(Protocol):
    """A file with a row of arguments for each iteration: row 1 is for iteration 1, and so on."""

    #: Encrypts the rows of this run's batches.
    key: bytes

    def __len__(self) -> int: ...

    @property
    def path(self) -> Path:
        """Return the path of the file."""

    @property
    def name(self) -> str:
        """Return the name of the file, for messages."""

    @property
    def header(self) -> list[str]:
        """Return the column headers, by which workers decode the rows (`RowReader`)."""

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the file, in hex."""

    @property
    def arguments(self) -> Sequence[str]:
        """Return the names of the scenario's arguments that rows set."""

    @property
    def first(self) -> dict[str, Any]:
        """Return the arguments of the first row, by name."""

    @property
    def batch_limit(self) -> int:
        """Return how many rows a batch carries at most."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the arguments of each row, for checks before a run; may skip equal rows."""

    def encrypt(self, numbers: Intervals, ranks: Sequence[int]) -> bytes:
        """Return the rows of the iterations in `numbers`, encrypted for a batch.

        `numbers`: half-open intervals; their order is kept. `ranks`: the rank of each by its due
        time, from 1, for rows that belong to a time.
        """

    def within(self, step: Step, totals: Totals) -> Step:
        """Return a runner's `step`, limited to the iterations for which the file has a row.

        `totals` says how many iterations were planned before.
        """
