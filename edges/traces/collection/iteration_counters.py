"""Places the iterations of a feature table on the time axis of counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from osbench.common.protocol.columns import select
from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.block_contents import counted_rows
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.analysis.features import Features
from osbench.edges.traces.analysis.resource_causes import IterationCounters
from osbench.edges.traces.collection.traced_iterations import new_rows
from osbench.edges.traces.counters.counter_series import WorkloadCounters

_NONE = np.empty(0, np.int64)


def counters_of(outcomes: Sequence[WorkloadOutcome]) -> dict[int, WorkloadCounters]:
    """Return the counters of the system under test by number of the workload.

    Workloads without counters are left out.
    """
    return {
        number: one.counters
        for number, one in enumerate(outcomes)
        if isinstance(one.counters, WorkloadCounters)
    }


def iteration_counters(
    directory: RunDirectory, features: Features, counters: Mapping[int, WorkloadCounters]
) -> IterationCounters | None:
    """Return `counters` with start and end of each row of `features`, seconds after t0.

    Groups of `features` are workloads. Reads the result blocks of the run, in which the first row
    of an iteration that ran counts. Rows without a result, or of groups without counters, get nan.
    Returns None, without reading, if there are no counters or no rows. Raises DamagedRun.
    """
    if not counters or not len(features):
        return None
    started, ended = np.full(len(features), np.nan), np.full(len(features), np.nan)
    rows = {}
    for number in counters:
        mine = np.flatnonzero(features.group == number)
        rows[number] = mine[np.argsort(features.iteration[mine], kind="stable")]
    seen = {number: Intervals() for number in counters}
    for number, _, block in counted_rows(directory):
        mine = rows.get(number, _NONE)
        if not len(mine) or not len(block):
            continue
        fresh = new_rows(block, seen[number])
        columns = select(fresh, fresh.outcome <= Outcome.TIMED_OUT)
        numbers = features.iteration[mine]
        place = np.minimum(np.searchsorted(numbers, columns.iteration), len(mine) - 1)
        found = numbers[place] == columns.iteration
        at = mine[place[found]]
        started[at] = columns.started[found] / 1e9
        ended[at] = columns.ended[found] / 1e9
    return IterationCounters(groups=counters, started_s=started, ended_s=ended)
