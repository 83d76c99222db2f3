"""Arguments of single iterations, which go to workers with batches."""

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
    """A row of arguments for each iteration, from a file; rows count from 1."""

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
        """Return the columns, as `RowReader` takes them."""

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the file, in hex."""

    @property
    def arguments(self) -> Sequence[str]:
        """Return the arguments that rows give."""

    @property
    def first(self) -> dict[str, Any]:
        """Return the arguments of one row."""

    @property
    def batch_limit(self) -> int:
        """Return how many rows a batch should carry at most."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the arguments of the rows to check; equal ones may be left out."""

    def encrypted(self, numbers: Intervals) -> bytes:
        """Return the rows of some iterations, in their order, as a batch carries them."""

    def within(self, step: Step, totals: Totals) -> Step:
        """Return the step, without iterations that have no row."""
