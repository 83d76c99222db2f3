"""Rows by the number of the group that they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def grouped(group: Ints) -> Iterator[tuple[int, Any]]:
    """Each number of a group, with what selects its rows."""
    counts = np.bincount(group)
    present = np.flatnonzero(counts).tolist()
    if len(present) == 1:
        yield present[0], slice(None)
    elif len(present) <= 8:
        for number in present:
            yield number, np.flatnonzero(group == number)
    else:
        order = np.argsort(group, kind="stable")
        ends = np.cumsum(counts[present]).tolist()
        for number, begin, end in zip(present, [0, *ends], ends, strict=False):
            yield number, order[begin:end]
