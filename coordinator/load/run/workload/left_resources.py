"""Journals which resources of a drill are in error after its load, before they are removed."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial

import numpy as np

from osbench.common.errors import OsbenchError
from osbench.common.text.escaping import one_line
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.load.run.workload.workload_run import WorkloadRun
from osbench.coordinator.plugins.contexts.context_stack import Poll, run_polling
from osbench.coordinator.report.iterations import counted_blocks
from osbench.coordinator.results.accounting.drill_figures import LeftFigures, LeftKind

LOG = logging.getLogger(__name__)

#: Most pairs of iteration and kind whose phase is noted: a record of the journal has a bound.
MOST_PLACED = 40_000


def note_left(run: WorkloadRun, poll: Poll) -> None:
    """Search the resources that a drill has left in error, and journal them.

    Does nothing for other loads, before the load has ended, if they were searched already, and if
    no context can search. `poll` is called meanwhile. Raises StorageError.
    """
    drill = run.results.drill
    if drill is None or drill.left is not None or not (run.begun and run.closed):
        return
    services, wish = run.services, run.status.interruption
    result = services.contexts.in_error(run.number, poll=poll, patient=lambda: not wish.drains)
    if result is None:
        return
    states: dict[str, Counter[str]] = defaultdict(Counter)
    in_error: Counter[str] = Counter()
    created: Counter[tuple[int, int]] = Counter()
    for place, (kind, several) in enumerate(result.found.items()):
        for one in several:
            states[kind][one.state] += 1
            in_error[kind] += one.in_error
            created[one.iteration, place] += 1
    placed = dict(created.most_common(MOST_PLACED))
    try:
        rows, unplaced = run_polling(partial(_rows, run, placed), poll)
    except KeyboardInterrupt:
        rows, unplaced = [], "Ctrl-C ended the search for their iterations"
    if len(placed) < len(created):
        pairs = f"{MOST_PLACED:,} of {len(created):,} pairs of iteration and kind"
        unplaced = unplaced or f"only {pairs} are noted"
    left = LeftFigures(
        kinds=tuple(
            LeftKind(
                kind=kind,
                in_error=in_error[kind],
                changing=len(several) - in_error[kind],
                states=dict(states[kind].most_common()),
            )
            for kind, several in result.found.items()
        ),
        unlisted=result.unlisted,
        waited_s=result.waited_s,
        problem=result.problem,
        unplaced=unplaced,
    )
    services.port.decide([{"do": "left", "workload": run.number, **asdict(left), "rows": rows}])


def _rows(run: WorkloadRun, created: Mapping[tuple[int, int], int]) -> tuple[list[list[int]], str]:
    """Return rows for `DrillStatistics.leave`, of counted iterations after the warm-up.

    `created`: number of resources by iteration and place of their kind. The second value is "", or
    the reason why there are no rows.
    """
    places: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for (iteration, place), number in created.items():
        places[iteration].append((place, number))
    found: list[list[int]] = []
    numbers = np.array(sorted(places), np.int64)
    try:
        for one in counted_blocks(run.services.directory) if places else ():
            columns, warmup_ns = one.columns, run.results.warmup_ns
            ran = columns.outcome <= Outcome.TIMED_OUT
            warm = np.where(ran, columns.started, columns.due) >= warmup_ns
            here = np.isin(columns.iteration, numbers) & warm
            if one.workload == run.number and here.any():
                table = (columns.due, columns.ended, columns.outcome, columns.iteration)
                for row in np.column_stack([part[here] for part in table]).tolist():
                    found += ([*row, place, number] for place, number in places[row[3]])
    except OsbenchError as error:
        LOG.warning("%s: phases of resources in error are not known: %s", run.name, error)
        return [], one_line(str(error))
    return found, ""
