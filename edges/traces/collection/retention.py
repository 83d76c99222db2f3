"""Selects the traces to keep and the traces to query.

Kept are slow and failed ones, examples for reports, and a random sample. Queried are these and a
random sample, of which an even sample of the found ones is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, lgamma

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
#: Traces to be kept may take at most one of this many queries; the rest is a random sample.
_KEPT_SHARE = 4
#: Percentiles of service time that bound the strata whose found fractions are compared.
_STRATA = (0, 50, 90, 95, 99, 100)
#: Probability below which the found fraction of a stratum is not chance; there are ten tests.
_CHANCE = 1e-5


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
    """Return the first iteration of each type of error, and one with median service time.

    `bad` and the result are positions in `rows`, each once. First iterations, which summaries name,
    come before medians; frequent types before rare types. Types beyond `_CLASSES` are left out.
    """
    numbers, counts = np.unique(rows.error[bad], return_counts=True)
    first, median = [], []
    for number in numbers[np.argsort(-counts, kind="stable")][:_CLASSES].tolist():
        same = bad[rows.error[bad] == number]
        ordered = same[np.argsort(rows.service[same], kind="stable")]
        first.append(int(same[np.argmin(rows.iteration[same])]))
        median.append(int(ordered[len(ordered) // 2]))
    return np.array(list(dict.fromkeys((*first, *median))), np.int64)


def queried_rows(
    rows: TracedIterations, reasons: NDArray[np.uint8], most: int
) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
    """Return (random sample, reasons to keep) for queries of about `most` traces in all.

    Both have an entry per iteration; traces in the sample or with a reason are queried. `reasons`
    are as `Retention.choose` returns them; for traces that are not queried they become 0. If there
    are more iterations than `most`, at most a quarter of `most` keep reasons other than `RANDOM`:
    examples first, then the traces with the longest service times.
    """
    own = np.flatnonzero((reasons > 0) & (reasons != RANDOM))
    if len(rows) > most:
        # examples first, then the slowest
        order = np.lexsort((-rows.service[own], reasons[own] != EXAMPLE))
        own = own[order[: most // _KEPT_SHARE]]
    drawn = rows.drawn((most - len(own)) / len(rows))
    wanted = drawn.copy()
    wanted[own] = True
    return drawn, np.where(wanted, reasons, 0).astype(np.uint8)


@dataclass(frozen=True, kw_only=True)
class EvenSample:
    """Found traces of a random sample, thinned so that no duration is overrepresented."""

    #: By iteration.
    chosen: NDArray[np.bool_]
    #: Numbers of iterations that were found, and that were chosen of them.
    found: int
    used: int
    #: Smallest and largest found fraction of a stratum, if they differ by more than chance; else
    #: None.
    uneven: tuple[float, float] | None


def even_sample(
    rows: TracedIterations, drawn: NDArray[np.bool_], found: NDArray[np.bool_]
) -> EvenSample:
    """Choose among found traces of a random sample so that no duration is overrepresented.

    `drawn` and `found` have a boolean per iteration: in the sample, and found. Backends that sample
    by duration (tail sampling) have slow traces more often. If the fractions found in strata of
    service time differ by more than chance, each stratum of the workload is thinned to the smallest
    fraction (0 if a stratum has none), by bits of the ids. Failures and warm-up are not thinned.
    """
    chosen = drawn & found
    lowest, highest = 1.0, 0.0
    for workload in np.unique(rows.workload[drawn]).tolist():
        mine = drawn & (rows.workload == workload) & ~rows.warming & (rows.outcome == Outcome.OK)
        at = np.flatnonzero(mine)
        at = at[np.argsort(rows.service[at], kind="stable")]
        bounds = [-(-len(at) * percent // 100) for percent in _STRATA]
        strata = [at[low:high] for low, high in pairwise(bounds) if low < high]
        there = [int(found[stratum].sum()) for stratum in strata]
        if not _differ(there, list(map(len, strata))):
            continue
        shares = [number / len(stratum) for number, stratum in zip(there, strata, strict=True)]
        lowest, highest = min(lowest, *shares), max(highest, *shares)
        for stratum, share in zip(strata, shares, strict=True):
            if share:
                chosen[stratum] &= _uniform(rows, stratum) < min(shares) / share
    return EvenSample(
        chosen=chosen,
        found=int((drawn & found).sum()),
        used=int(chosen.sum()),
        uneven=(lowest, highest) if lowest < highest else None,
    )


def _differ(found: Sequence[int], sizes: Sequence[int]) -> bool:
    """Return whether the fractions found in strata differ by more than chance.

    `found` and `sizes`: numbers of found and of all iterations, per stratum. Exact for each
    stratum, both tails of the hypergeometric distribution: often few are missing.
    """
    in_all, there = sum(sizes), sum(found)
    return any(
        min(
            _at_least(number, size, there, in_all),
            _at_least(size - number, size, in_all - there, in_all),
        )
        < _CHANCE
        for number, size in zip(found, sizes, strict=True)
    )


def _at_least(number: int, size: int, marked: int, in_all: int) -> float:
    """Return the probability that a random draw of `size` items has `number` or more marked items.

    Drawn without replacement from `in_all` items, of which `marked` are marked.
    """
    if number <= size + marked - in_all:
        return 1.0
    whole = _log_choices(in_all, size)
    return sum(
        exp(_log_choices(marked, one) + _log_choices(in_all - marked, size - one) - whole)
        for one in range(number, min(size, marked) + 1)
    )


def _log_choices(count: int, chosen: int) -> float:
    return lgamma(count + 1) - lgamma(chosen + 1) - lgamma(count - chosen + 1)


def _uniform(rows: TracedIterations, at: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return for each iteration at positions `at` a number from 0 to 1 from bits of its trace id.

    Uniform over trace ids, the same in every call, and independent of `TracedIterations.drawn`.
    """
    halves = np.ascontiguousarray(rows.traces[at, 12:16]).view(">u4").ravel()
    found: NDArray[np.float64] = halves / 2**32
    return found
