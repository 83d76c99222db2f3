"""Selects the traces to keep: slow and failed ones, examples for reports, and a random sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.collection.traced_iterations import Ints, TracedIterations

#: Reasons to keep a trace; 0 if it is not kept. Examples are iterations of each type of error, and
#: next to the percentiles that reports have.
SLOW, FAILED, RANDOM, EXAMPLE = 1, 2, 3, 4

#: Percentiles of successful iterations that have examples, and how many: some may lack spans.
_PERCENTS = (50, 95, 99)
_NEAREST = 3
#: Classes of errors at most, of a workload, that have an example.
_CLASSES = 50


@dataclass(frozen=True, kw_only=True)
class Retention:
    """Rules for keeping traces: number of the slowest and of failed, fraction of others, bytes."""

    #: For each workload: number of the slowest successful traces, and of failed ones.
    slowest: int
    failed: int
    #: Fraction of all other iterations that is kept, 0 to 1.
    share: float
    #: Bytes on disk; above half of them no random trace is kept, above nine tenths only examples.
    limit: int

    def choose(self, rows: TracedIterations) -> NDArray[np.uint8]:
        """Return for each traced iteration the reason to keep its trace; 0 if it is not kept.

        Reasons are `SLOW`, `FAILED`, `RANDOM` and `EXAMPLE`. Iterations of the warm-up are not
        kept. The result is the same in every call.
        """
        kept = np.where(rows.drawn(self.share), RANDOM, 0).astype(np.uint8)
        kept[rows.warming] = 0
        for workload in np.unique(rows.workload).tolist():
            mine = (rows.workload == workload) & ~rows.warming
            ok = np.flatnonzero(mine & (rows.outcome == Outcome.OK))
            slow = ok[np.argsort(-rows.service[ok], kind="stable")][: self.slowest]
            kept[slow] = SLOW
            bad = np.flatnonzero(mine & (rows.outcome != Outcome.OK))
            examples = _one_of_each(rows, bad)[: self.failed]
            if self.slowest:
                kept[_near_percentiles(rows, ok)] = EXAMPLE
            if len(bad) > self.failed:
                left = np.setdiff1d(bad, examples)
                more = self.failed - len(examples)
                bad = left[np.linspace(0, len(left) - 1, more).astype(int)]
            kept[bad] = FAILED
            kept[examples] = EXAMPLE
        return kept

    def has_room(self, reason: int, size: int) -> bool:
        """Return whether a trace may be kept for `reason` if kept traces have `size` bytes already.

        Random traces may be added up to half of `limit`, examples up to all of it, others up to
        nine tenths.
        """
        tenths = {RANDOM: 5, EXAMPLE: 10}.get(reason, 9)
        return size < self.limit * tenths // 10


def _near_percentiles(rows: TracedIterations, ok: Ints) -> Ints:
    """Return the successful iterations nearest to p50, p95 and p99 of service and of response time.

    Up to `_NEAREST` for each of the six, possibly twice. `ok` and the result are positions in
    `rows`.
    """
    found = [ok[:0]]
    for times in (rows.service[ok], rows.response[ok]):
        ordered = ok[np.argsort(times, kind="stable")]
        for percent in _PERCENTS:
            place = max(-(-len(ok) * percent // 100) - 1, 0)
            low = max(place - _NEAREST // 2, 0)
            found.append(ordered[low : low + _NEAREST])
    return np.concatenate(found)


def _one_of_each(rows: TracedIterations, bad: Ints) -> Ints:
    """Return two iterations of each type of error: the first, and that of median service time.

    `bad` and the result are positions in `rows`. First iterations, which summaries name, come
    before medians; frequent types before rare types. Types beyond `_CLASSES` are left out.
    """
    numbers, counts = np.unique(rows.error[bad], return_counts=True)
    first, median = [], []
    for number in numbers[np.argsort(-counts, kind="stable")][:_CLASSES].tolist():
        same = bad[rows.error[bad] == number]
        ordered = same[np.argsort(rows.service[same], kind="stable")]
        first.append(int(same[np.argmin(rows.iteration[same])]))
        median.append(int(ordered[len(ordered) // 2]))
    return np.array(list(dict.fromkeys((*first, *median))), np.int64)
