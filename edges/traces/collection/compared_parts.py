"""Parts of a load whose iterations are compared: in a search, the rate that held and the next
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from osbench.coordinator.results.accounting.outcome import WorkloadOutcome

Ints = NDArray[np.int64]

#: From when to when after t0 its iterations were due, seconds; several times.
LoadPart = Sequence[tuple[float, float]]
LoadParts = tuple[LoadPart, LoadPart]


def compared_parts(outcomes: Sequence[WorkloadOutcome]) -> Mapping[int, LoadParts]:
    """Return (rate that held, next rate) as parts of the load, by number of the workload.

    Workloads that did not search for a capacity, or found no such pair, are missing.
    """
    return {
        number: parts
        for number, one in enumerate(outcomes)
        if one.search is not None and (parts := one.search.parts) is not None
    }


def due_in(iteration: Ints, due: Ints, part: LoadPart) -> Ints:
    """Return those numbers in `iteration` whose `due` time lies in any period of `part`.

    `due` has nanoseconds after t0, an entry per iteration; periods are seconds, their begin
    included, their end not.
    """
    within = np.zeros(len(iteration), bool)
    for from_s, to_s in part:
        within |= (due >= round(from_s * 1e9)) & (due < round(to_s * 1e9))
    found: Ints = iteration[within]
    return found
