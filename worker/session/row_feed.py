"""Adds the rows of a data file, which come with batches, to the arguments of iterations."""

from __future__ import annotations

import csv
import logging
from collections.abc import Callable, Sequence
from typing import Any

from osbench.common.errors import Untrusted
from osbench.common.protocol.data_rows import RowReader, decrypt
from osbench.common.protocol.messages import Batch
from osbench.common.values.intervals import Intervals

LOG = logging.getLogger(__name__)


class RowFeed:
    """Rows of a data file by iteration number, from batches; each iteration removes its row."""

    def __init__(self, header: Sequence[str], key: bytes) -> None:
        self._reader = RowReader(header)
        self._key = key
        self._rows: dict[int, dict[str, Any]] = {}

    def add(self, batch: Batch) -> None:
        """Decrypt the rows of a batch and store them by iteration, before its iterations can start.

        If they cannot be read, that is logged as an error, and iterations without a row fail.
        """
        numbers = Intervals(batch.intervals).members().tolist()
        try:
            rows = self._reader.read(decrypt(batch.rows, self._key))
            self._rows.update(zip(numbers, rows, strict=True))
        except (Untrusted, csv.Error, ValueError) as error:
            # its iterations must run, and fail, so that they are settled
            LOG.error("the rows of batch %d cannot be read: %s", batch.seq, error)

    def over(self, arguments: Callable[[int], dict[str, Any]]) -> Callable[[int], dict[str, Any]]:
        """Return a function of an iteration's number that returns its arguments.

        The values of the iteration's row win over `arguments(number)`. The function removes the
        row; it raises KeyError if there is none, which fails the iteration.
        """
        take = self._rows.pop

        def fed(iteration: int) -> dict[str, Any]:
            return arguments(iteration) | take(iteration)

        return fed
