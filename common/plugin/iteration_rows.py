"""The interface of files with a row of arguments for each iteration; batches carry the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from osbench.common.intervals import Intervals

if TYPE_CHECKING:
    from osbench.common.plugin.runner import Step, Totals

#: The argument that gets the name of what an arrival requests.
BRANCH = "branch"


class IterationRows(Protocol):
    """A row of arguments for each iteration, from a file; row 1 is for iteration 1."""

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
        """Return the column headers that workers read the rows with (`RowReader`)."""

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the file, in hex."""

    @property
    def arguments(self) -> Sequence[str]:
        """Return the names of the arguments that rows give."""

    @property
    def first(self) -> dict[str, Any]:
        """Return the arguments of the first row, by name."""

    @property
    def batch_limit(self) -> int:
        """Return how many rows a batch carries at most."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the arguments of the rows, for checks; equal rows may be left out."""

    def encrypted(self, numbers: Intervals) -> bytes:
        """Return the rows of the iterations `numbers`, in their order, encrypted for a batch."""

    def within(self, step: Step, totals: Totals) -> Step:
        """Return the step of a runner without iterations that have no row."""
