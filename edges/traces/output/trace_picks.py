"""Chooses the traces that a report shows: slowest, next to percentiles, of each error, over
time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.collection.traced_iterations import Ints, TracedIterations

#: Kinds of picks.
MAX, P99, P95, P50, ERROR, SLOW = "max", "p99", "p95", "p50", "error", "slow"

#: Traces of all workloads that a report shows at most.
LIMIT = 60
#: Parts of the load whose slowest iteration is shown.
_PARTS = 12
_PERCENTILES = (P99, P95, P50)


class PickedTrace(NamedTuple):
    """An iteration whose trace a report shows as an example.

    `order` ranks it among the examples of its workload; label and kind say why it was chosen.
    """

    #: Smaller ones are shown first, of all workloads.
    order: int
    label: str
    kind: str
    #: Position among the traced iterations.
    at: int


def chosen_traces(
    rows: TracedIterations,
    responses: Mapping[int, bool],
    latencies: Sequence[Mapping[str, float]],
    examples: Sequence[Mapping[str, int]],
) -> list[list[PickedTrace]]:
    """Return the chosen iterations of each workload, at most `LIMIT` in all; each at most once.

    `rows` are iterations whose traces are kept; iterations of the warm-up are not chosen.
    `responses` has by workload whether response times count, instead of service times; `latencies`
    the percentiles, seconds, of all successful iterations. `examples` are the iterations that the
    summary names for types of errors; if the trace of one is not kept, the median of the type's
    kept traces is chosen.
    """
    picks_of_all = []
    for workload, percentiles in enumerate(latencies):
        times = rows.response if responses.get(workload) else rows.service
        mine = np.flatnonzero((rows.workload == workload) & ~rows.warming)
        picks_of_all.append(
            _distinct(_candidates(rows, mine, times, percentiles, examples[workload]))
        )
    first = sorted(
        (pick.order, number, pick) for number, picks in enumerate(picks_of_all) for pick in picks
    )[:LIMIT]
    among = {(number, pick.at) for _, number, pick in first}
    return [
        [pick for pick in picks if (number, pick.at) in among]
        for number, picks in enumerate(picks_of_all)
    ]


def _candidates(
    rows: TracedIterations,
    mine: Ints,
    times: Ints,
    percentiles: Mapping[str, float],
    examples: Mapping[str, int],
) -> Iterator[PickedTrace]:
    ok = mine[rows.outcome[mine] == Outcome.OK]
    # of equal times the lowest number
    ok = ok[np.lexsort((rows.iteration[ok], times[ok]))]
    order = 0
    if len(ok):
        slowest = ok[times[ok] == times[ok[-1]]]
        yield PickedTrace(0, "slowest ok", MAX, int(slowest[0]))
        for order, name in enumerate(_PERCENTILES, 1):
            if percentiles.get(name) is not None:
                apart = np.abs(times[ok] - percentiles[name] * 1e9)
                yield PickedTrace(order, f"near {name}", name, int(ok[np.argmin(apart)]))
    order = len(_PERCENTILES) + 1
    bad = mine[rows.outcome[mine] != Outcome.OK]
    numbers, counts = np.unique(rows.error[bad], return_counts=True)
    for number in numbers[np.argsort(-counts, kind="stable")].tolist():
        same = bad[rows.error[bad] == number]
        same = same[np.lexsort((rows.iteration[same], times[same]))]
        name = rows.errors[number]
        named = same[rows.iteration[same] == examples.get(name, -1)]
        at = named[0] if len(named) else same[len(same) // 2]
        yield PickedTrace(order, name, ERROR, int(at))
        order += 1
    yield from _slow_parts(rows, ok, times, order)


def _slow_parts(rows: TracedIterations, ok: Ints, times: Ints, order: int) -> Iterator[PickedTrace]:
    """Yield the slowest successful iteration of `_PARTS` equal periods, until the last start.

    Periods without one are skipped. `ok` has positions of successful iterations, `times` the times
    of all; `order` is the rank of the first period.
    """
    if not len(ok):
        return
    last = int(rows.started[ok].max()) + 1
    parts = np.clip(rows.started[ok], 0, None) * _PARTS // last
    for number in np.unique(parts).tolist():
        within = ok[parts == number]
        slowest = within[times[within] == times[within].max()]
        begin_s, end_s = (last * at / _PARTS / 1e9 for at in (number, number + 1))
        label = f"slowest, {begin_s:.3g} to {end_s:.3g} s"
        yield PickedTrace(order + number, label, SLOW, int(slowest[0]))


def _distinct(picks: Iterator[PickedTrace]) -> list[PickedTrace]:
    seen: set[int] = set()
    found = []
    for pick in picks:
        if pick.at not in seen:
            seen.add(pick.at)
            found.append(pick)
    return found
