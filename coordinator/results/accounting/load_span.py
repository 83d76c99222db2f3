"""When the load of a workload began, and how long it lasted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from osbench.coordinator.results.accounting.outcome import WorkloadOutcome


@dataclass(frozen=True, kw_only=True)
class LoadSpan:
    """The load of one workload: its begin in Redis time, and how many seconds it lasted."""

    #: Redis time, seconds since 1970.
    t0_at: float
    #: Seconds; so far, if the load goes on.
    elapsed_s: float


def load_spans(outcomes: Sequence[WorkloadOutcome]) -> dict[int, LoadSpan]:
    """Return the span of each load by number of its workload; a workload without load has none."""
    return {
        number: LoadSpan(t0_at=one.t0_at, elapsed_s=one.elapsed_s)
        for number, one in enumerate(outcomes)
        if one.t0_at
    }
