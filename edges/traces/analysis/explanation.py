"""Explains why the slow traces of a run are slow: causes, examples, and messages for users."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from osbench.common.values.outcomes import Outcome
from osbench.coordinator.formatting import plain
from osbench.edges.traces.analysis.bands import (
    Band,
    BandExample,
    compare,
    exemplar,
    exemplars,
)
from osbench.edges.traces.analysis.coverage import is_ours
from osbench.edges.traces.analysis.features import Features, Ints
from osbench.edges.traces.analysis.quantiles import (
    LEAST,
    MIDDLE,
    far_out,
    limits,
    rows_between,
    slow_bands,
    usable,
)
from osbench.edges.traces.analysis.resource_causes import (
    IterationCounters,
    ResourceCause,
    resource_causes,
    resource_sentence,
)
from osbench.edges.traces.analysis.sentences import (
    UNANSWERED,
    gaps,
    no_verdict,
    too_few,
    why_slow,
)
from osbench.edges.traces.analysis.slow_causes import Middle
from osbench.edges.traces.model.clock_skew import Clocks

_SHOWN = 10
_RIGHT = Clocks()
_FARTHEST = 3


@dataclass(frozen=True, kw_only=True)
class Part:
    """Fraction that one key has in the variance of the durations of a group of traces.

    It is the covariance of the key's time and the duration, over the variance of the duration; it
    may be negative.
    """

    who: str
    what: str
    about: str
    share: float


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Successful traces with the same sequence of keys on their critical path: number, p50, p99.

    Times are seconds; `exemplar` is the id of a typical trace.
    """

    #: The keys on it, in order.
    path: tuple[str, ...]
    traces: int
    p50_s: float
    p99_s: float
    exemplar: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Explanation of one group of comparable traces: why the slow ones are slow.

    A group is a workload, or a kind of root span. Times are seconds.
    """

    name: str
    #: Unit of comparison, in the singular: `features.TRACE` or `ITERATION`.
    unit: str
    #: Traces that succeeded, that failed, and that were left out as incomplete.
    traces: int
    failed: int
    incomplete: int
    #: Incomplete traces among the explained ones; 0 unless most traces are incomplete.
    gaps: int
    p50_s: float
    p95_s: float
    p99_s: float
    sentence: str
    bands: tuple[Band, ...]
    #: Number of outliers, left out of the comparison, and examples of them.
    far: int
    farthest: tuple[BandExample, ...]
    #: Failed traces compared with the middle of the successful ones; None without failures.
    failures: Band | None
    #: Largest first; the shares of all keys sum to 1.
    variance: tuple[Part, ...]
    shapes: tuple[Shape, ...]
    #: Typical traces of the middle.
    ordinary: tuple[BandExample, ...]
    #: Counters of the system under test that are clearly higher while the described traces run.
    resources: tuple[ResourceCause, ...] = ()
    #: Number of counters that were compared; 0 without any.
    watched: int = 0

    @property
    def described_band(self) -> Band | None:
        """Band of slow traces that the text describes; None if no band has enough traces.

        This is the first band with a clear cause, else the first with enough traces.
        """
        enough = [band for band in self.bands if band.enough]
        return next((band for band in enough if band.clear), enough[0] if enough else None)


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Explanations of all groups of traces, as `explain` returns them.

    `answers` has one per group with traces, groups with a clear cause first. `sentence` is the text
    of the first, after its name if there are several, or says that there is no trace.
    """

    sentence: str
    answers: tuple[Answer, ...]


def explain(
    features: Features,
    clocks: Clocks = _RIGHT,
    seed: int = 0,
    counters: IterationCounters | None = None,
) -> Explanation:
    """Explain every group of traces, groups with a clear cause first, then larger ones.

    `clocks` has the clock offsets by which the traces were corrected: if an offset is unsteady,
    groups with its hosts get no verdict. `counters`: counters of the system under test with the
    times of the rows. Groups without traces are left out; `answers` is empty if none is left. The
    same `seed` gives the same result.
    """
    answers = [
        _without_verdict(
            features,
            number,
            _with_counters(features, number, _answer(features, number, name, seed), counters),
            clocks,
        )
        for number, name in enumerate(features.groups)
    ]
    answers = [answer for answer in answers if answer.traces or answer.failed]
    if not answers:
        return Explanation(sentence="There is no complete trace to explain.", answers=())
    # groups with a clear cause first, then by the number of traces
    answers.sort(key=lambda answer: (not _is_clear(answer), -answer.traces))
    first = answers[0]
    prefix = f"{plain(first.name)}: " if len(answers) > 1 else ""
    return Explanation(sentence=f"{prefix}{first.sentence}", answers=tuple(answers))


def _without_verdict(features: Features, number: int, answer: Answer, clocks: Clocks) -> Answer:
    """Return `answer`, without any clear cause if a host has an unsteady clock.

    Its text then says that there is no verdict. `number` is the number of the group.
    """
    hosts: set[str] = set()
    if clocks.unsteady:
        entries = features.group[features.rows()] == number
        hosts = {features.places[at][1] for at in np.unique(features.place[entries]).tolist()}
    wrong = [one for one in clocks.unsteady if hosts & {one.reference, one.host}]
    if not wrong:
        return answer
    failures = _unclear(answer.failures) if answer.failures is not None else None
    return replace(
        answer,
        bands=tuple(map(_unclear, answer.bands)),
        failures=failures,
        sentence=no_verdict(*clocks.odd(wrong[0])),
    )


def _unclear(band: Band) -> Band:
    causes = tuple(replace(cause, clear=False) for cause in band.causes)
    return replace(band, causes=causes, repeated=())


def _with_counters(
    features: Features, number: int, answer: Answer, counters: IterationCounters | None
) -> Answer:
    band = answer.described_band
    found = counters.groups.get(number) if counters is not None else None
    if counters is None or band is None or found is None:
        return answer
    _, near, _, _ = _row_parts(features, number)
    slow = rows_between(near, *limits(band.name))
    others = near[~np.isin(near, slow)]
    times = [(counters.started_s[rows], counters.ended_s[rows]) for rows in (slow, others)]
    causes = resource_causes(found, *times)
    host = band.clear.host if band.clear is not None else ""
    return replace(
        answer,
        resources=causes,
        watched=len(found.series),
        sentence=answer.sentence + resource_sentence(causes, host),
    )


def _is_clear(answer: Answer) -> bool:
    band = answer.described_band
    return band is not None and band.clear is not None


def _answer(features: Features, number: int, name: str, seed: int) -> Answer:
    rows, near, beyond, failed = _row_parts(features, number)
    ok, far = np.concatenate((near, beyond)), len(beyond)
    middle = Middle(features=features, base=rows_between(near, *MIDDLE), all=near, seed=seed)
    bands = tuple(
        compare(middle, label, rows_between(near, *limits(label)), limits(label))
        for label in slow_bands(len(near))
    )
    answer = Answer(
        name=name,
        unit=features.unit,
        traces=len(ok),
        failed=len(failed),
        incomplete=rows - len(ok) - len(failed),
        gaps=int((~features.whole[np.concatenate((ok, failed))]).sum()),
        p50_s=_at(features, ok, 0.5),
        p95_s=_at(features, ok, 0.95),
        p99_s=_at(features, ok, 0.99),
        sentence="",
        bands=bands,
        far=far,
        farthest=tuple(exemplar(features, at) for at in beyond[::-1][:_FARTHEST].tolist()),
        failures=compare(middle, "failed", failed, (math.nan, math.nan)) if len(failed) else None,
        variance=variance(features, near),
        shapes=shapes(features, ok),
        ordinary=exemplars(features, middle.base),
    )
    band = answer.described_band
    sentence = (
        why_slow(band, features.unit)
        if band
        else too_few(len(near), len(rows_between(near, LEAST, 100)), features.unit)
    )
    sentence += gaps(answer.gaps, rows)
    if _is_unanswered(features, np.concatenate((ok, failed))):
        sentence += UNANSWERED
    return replace(answer, sentence=sentence)


def _is_unanswered(features: Features, rows: Ints) -> bool:
    places = np.unique(features.place[features.entries_of(rows)]).tolist()
    return all(is_ours(features.keys[features.places[at][0]].who) for at in places)


def members(features: Features, band: str) -> frozenset[str]:
    """Return the ids of the traces that are in a band of their group, of all groups together.

    `band` is `failed` or a name that `limits` accepts. Outliers and unusable incomplete traces are
    in no band. Raises ValueError for another name.
    """
    between = None if band == "failed" else limits(band)
    found: list[str] = []
    for number in range(len(features.groups)):
        _, near, _, failed = _row_parts(features, number)
        chosen = rows_between(near, *between) if between else failed
        found += [features.traces[at] for at in chosen.tolist()]
    return frozenset(found)


def _row_parts(features: Features, number: int) -> tuple[int, Ints, Ints, Ints]:
    """Return the number of traces of group `number`, and their rows in three parts.

    The number includes incomplete traces, the parts only if most are incomplete. The parts:
    successful traces without outliers, successful outliers (both fastest first), failed traces.
    """
    rows = np.flatnonzero(features.group == number)
    used = usable(features, rows)
    succeeded = features.outcome[used] == Outcome.OK
    ok, failed = used[succeeded], used[~succeeded]
    ok = ok[np.argsort(features.total[ok], kind="stable")]
    near = len(ok) - far_out(features, ok)
    return len(rows), ok[:near], ok[near:], failed


def variance(features: Features, rows: Ints, shown: int = _SHOWN) -> tuple[Part, ...]:
    """Return the keys with the largest fractions of the variance of durations, at most `shown`.

    `rows`: the traces. Largest first. The fractions of all keys sum to 1; some may be negative.
    Empty with fewer than two traces, or if all took equally long.
    """
    if len(rows) < 2:
        return ()
    total = np.zeros(len(features))
    total[rows] = features.total[rows] - features.total[rows].mean()
    spread = float((total**2).sum())
    if not spread:
        return ()
    by_place = np.bincount(
        features.place,
        features.time * total[features.rows()],
        minlength=len(features.places),
    )
    by_key = np.bincount(features.key_of_place(), by_place, minlength=len(features.keys))
    order = np.argsort(-by_key, kind="stable")[:shown].tolist()
    return tuple(
        Part(
            who=features.keys[key].who,
            what=features.keys[key].what,
            about=features.keys[key].about,
            share=float(by_key[key]) / spread,
        )
        for key in order
        if by_key[key]
    )


def shapes(features: Features, rows: Ints, shown: int = _SHOWN) -> tuple[Shape, ...]:
    """Return the most frequent sequences of keys on critical paths of `rows`, at most `shown`.

    Most frequent first, each with percentiles of its traces. Sequences above the limit of the table
    are one entry, "(other shapes)".
    """
    found = []
    numbers, counts = np.unique(features.shape[rows], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:shown]
    for number in numbers[order].tolist():
        those = rows[features.shape[rows] == number]
        those = those[np.argsort(features.total[those], kind="stable")]
        path = features.shapes[number] if number >= 0 else ()
        found.append(
            Shape(
                path=tuple(str(features.keys[key]) for key in path) or ("(other shapes)",),
                traces=len(those),
                p50_s=_at(features, those, 0.5),
                p99_s=_at(features, those, 0.99),
                exemplar=exemplars(features, those)[0].trace_id,
            )
        )
    return tuple(found)


def _at(features: Features, ordered: Ints, share: float) -> float:
    if not len(ordered):
        return 0.0
    place = max(math.ceil(len(ordered) * share) - 1, 0)
    return float(features.total[ordered[place]]) / 1e9
