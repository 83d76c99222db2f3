"""Predicts the effect of faster spans on the percentiles of durations.

Each trace is replayed with the spans shorter: on its critical path, and through its wait graph if
branches are parallel. The traces are a random part of the iterations, so that percentiles of the
replayed traces estimate the percentiles of all. Intervals are the percentile bootstrap of pairs,
each trace as it was and as it would be (Efron and Tibshirani, An Introduction to the Bootstrap,
1993).

Queues are left out: a service that handles the same requests in less time has shorter queues, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.common.errors import OsbenchError, UsageError
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.formatting import count, duration, plain
from osbench.edges.traces.analysis.coverage import is_ours
from osbench.edges.traces.analysis.features import Features, Ints
from osbench.edges.traces.analysis.quantiles import usable
from osbench.edges.traces.analysis.span_changes import SpanChange
from osbench.edges.traces.model.span_keys import LATE_START, OTHER, WAIT_QUEUE, WAIT_SERVICE
from osbench.edges.traces.model.wait_graph import replayed_durations

Floats = NDArray[np.float64]

#: Percentiles that are predicted.
PERCENTS = (50.0, 95.0, 99.0)
#: Fewer traces predict no percentile.
FEWEST = 30
#: Most kinds of spans whose halving is tried: the kinds with the most time.
_TRIED = 60
_DRAWS = 300
#: Most traces that intervals are drawn from; more would make them hardly narrower.
_MOST = 20_000
_BOUNDS = (2.5, 97.5)
_SEED = 0


@dataclass(frozen=True, kw_only=True)
class PredictedValue:
    """A percentile, maximum or mean of durations before and after a change, and the gain.

    Seconds, each with its 95 % interval.
    """

    #: "p95", "max" or "mean".
    name: str
    before_s: float
    after_s: float
    gain_s: float
    before_interval: tuple[float, float]
    after_interval: tuple[float, float]
    gain_interval: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class DurationLimit:
    """Limit (seconds) of an SLA criterion on a percentile or the mean of durations."""

    criterion: str
    #: Percentile; 100 is the longest, None the mean.
    p: float | None
    max_s: float
    #: service or response.
    of: str = "service"


@dataclass(frozen=True, kw_only=True)
class Repair:
    """Effect of a change on one SLA limit: the fraction of the excess that would be gone.

    `shift` has the value that the limit bounds, before and after.
    """

    limit: DurationLimit
    shift: PredictedValue
    #: 0 to 1; None if the traces do not exceed the limit.
    share: float | None
    share_interval: tuple[float, float] | None


@dataclass(frozen=True, kw_only=True)
class PredictedLoad:
    """Kind of load, SLA limits and start lags of one group of traces, as far as they are known."""

    #: Arrivals do not wait for responses; None if not known.
    is_open: bool | None = None
    limits: tuple[DurationLimit, ...] = ()
    #: Nanoseconds from the scheduled start to the start by row of the table; 0 if not known.
    lag: Ints | None = None


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Predicted effect of changed spans on the durations of one group of traces."""

    name: str
    #: Unit of prediction, in the singular: `features.TRACE` or `ITERATION`.
    unit: str
    traces: int
    #: The changed spans as text, with the most time first.
    spans: tuple[str, ...]
    #: Traces that have one of them on their critical path.
    with_spans: int
    #: p50, p95 and p99; empty if there are too few traces.
    shifts: tuple[PredictedValue, ...]
    repairs: tuple[Repair, ...]
    sentence: str
    #: Effects that the numbers do not include.
    caveat: str


@dataclass(frozen=True, kw_only=True)
class Potential:
    """Seconds that halving the time of a kind of span takes off mean and percentiles.

    A kind is service (`who`), name (`what`) and detail (`about`).
    """

    who: str
    what: str
    about: str
    #: Mean own time on the critical path of a trace.
    time_s: float
    #: Off the mean of the slowest 5 %, by which places are ordered.
    tail_s: float
    p50_s: float
    p95_s: float
    p99_s: float

    def __str__(self) -> str:
        return " ".join(part for part in (self.who, self.what, self.about) if part)


def predict(
    features: Features, changes: Sequence[SpanChange], loads: Sequence[PredictedLoad] = ()
) -> tuple[Prediction, ...]:
    """Predict durations with changed spans, for each group with any of the spans on critical paths.

    All `changes` are made at once. `loads` are by number of the group. If no group has any of them,
    all groups with replayable traces are returned. Raises UsageError if a change matches no span or
    no trace can be replayed, OsbenchError if the digest is damaged.
    """
    left = _left_fractions(features, changes)
    found = []
    for number, name in enumerate(features.groups):
        rows = _rows(features, number)
        load = loads[number] if number < len(loads) else PredictedLoad()
        if len(rows):
            found.append(_prediction(features, name, rows, left, load))
    if not found:
        raise UsageError(
            "--what-if: no trace is complete and of a successful iteration; choose another run"
        )
    # groups that the change does not concern are left out, unless it concerns none
    return tuple(one for one in found if one.with_spans) or tuple(found)


def best_places(features: Features, group: str, shown: int = 5) -> tuple[Potential, ...]:
    """Return the kinds of spans whose halving takes most off the mean of the slowest 5 %.

    Returns at most `shown`, the largest gain first; empty with fewer than `FEWEST` replayable
    traces. Each is halved alone. Left out are waits, late starts, spans of osbench, kinds without a
    gain, and all but the 60 with the most time. Raises ValueError for an unknown group,
    OsbenchError if the digest is damaged.
    """
    rows = _rows(features, features.groups.index(group))
    if len(rows) < FEWEST:
        return ()
    means = features.mean(rows, features.time)
    order = np.argsort(-means, kind="stable").tolist()
    tried = [key for key in order if means[key] > 0 and _is_work(features, key)][:_TRIED]
    if not tried:
        return ()
    keys = features.key_of_place()
    left = np.ones((len(features.places) + 1, len(tried)))
    for column, key in enumerate(tried):
        left[:-1, column][keys == key] = 0.5
    saved = _saved_ns(features, rows, left)
    before = features.total[rows].astype(np.float64)
    after = before[:, None] - saved
    gains = {
        percent: _quantile(before, percent) - _quantile(after, percent) for percent in PERCENTS
    }
    tails = _tail(before) - _tail(after)
    found = [
        Potential(
            **features.keys[key]._asdict(),
            time_s=float(means[key]) / 1e9,
            tail_s=float(tails[column]) / 1e9,
            p50_s=float(gains[50.0][column]) / 1e9,
            p95_s=float(gains[95.0][column]) / 1e9,
            p99_s=float(gains[99.0][column]) / 1e9,
        )
        for column, key in enumerate(tried)
    ]
    # below that, rounding
    found = [one for one in found if max(one.tail_s, one.p50_s) > 1e-9]
    return tuple(sorted(found, key=lambda one: (-one.tail_s, -one.p50_s))[:shown])


def _is_work(features: Features, key: int) -> bool:
    """Return whether key number `key` is work of a service under test.

    False for waiting, late starts, the key `OTHER` and time of osbench itself.
    """
    one = features.keys[key]
    return one.what not in (WAIT_SERVICE, WAIT_QUEUE, LATE_START, OTHER) and not is_ours(one.who)


def _rows(features: Features, number: int) -> Ints:
    """Return the rows of a group's replayable traces: successful, complete, with a known graph.

    If most traces of the group are incomplete, incomplete ones are included.
    """
    rows = usable(features, np.flatnonzero(features.group == number))
    rows = rows[features.outcome[rows] == Outcome.OK]
    return features.graphs.replayable(features.traces, rows) if features.graphs else rows


def _left_fractions(features: Features, changes: Sequence[SpanChange]) -> Floats:
    """Return the fraction of self time that changes leave, 0 to 1: a column with a row per place.

    A place is a key of spans on a host. A further, last row is 1: time that no change shortens. If
    several changes match a span, their fractions are multiplied. Raises UsageError if a change
    matches no span; waits are not spans here.
    """
    keys = features.key_of_place()
    left = np.ones((len(features.places) + 1, 1))
    work = {
        number: key
        for number, key in enumerate(features.keys)
        if key.what not in (WAIT_SERVICE, WAIT_QUEUE)
    }
    for change in changes:
        matching = [number for number, key in work.items() if change.matches(key)]
        if not matching:
            known = sorted(work.values(), key=lambda key: (is_ours(key.who), str(key)))
            raise UsageError(change.unknown(known))
        left[:-1, 0][np.isin(keys, matching)] *= change.left
    return left


def _saved_ns(features: Features, rows: Ints, left: Floats) -> Floats:
    """Return nanoseconds by which traces get shorter: a row per trace, a column per change.

    `left` is of `_left_fractions`, with a column per change. Raises OsbenchError if the digest
    of a trace is damaged.
    """
    line = np.full(len(features), -1)
    line[rows] = np.arange(len(rows))
    at = line[features.rows()]
    inside = at >= 0
    places, times = features.place[inside], features.time[inside].astype(np.float64)
    saved = np.empty((len(rows), left.shape[1]))
    for column in range(left.shape[1]):
        gone = times * (1 - left[places, column])
        saved[:, column] = np.bincount(at[inside], gone, len(rows))
    if features.graphs is None:
        return saved
    whole = np.column_stack((np.ones(len(left)), left))
    for row, trace in enumerate(rows.tolist()):
        graph = features.graphs.graph(trace)
        if not len(graph):
            continue
        try:
            lengths = replayed_durations(graph, whole)
        except IndexError:
            raise OsbenchError(
                f"the digest of trace {plain(features.traces[trace])} is damaged; predict from "
                "another run"
            ) from None
        saved[row] = lengths[0] - lengths[1:]
    return saved


def _prediction(
    features: Features, name: str, rows: Ints, left: Floats, load: PredictedLoad
) -> Prediction:
    changed = left[:-1, 0] < 1
    entries = features.entries_of(rows)
    own = np.bincount(
        features.place[entries], features.time[entries], minlength=len(features.places)
    )
    touched = np.unique(features.rows()[entries & changed[features.place]])
    saved = _saved_ns(features, rows, left)[:, 0]
    by_key = np.bincount(features.key_of_place(), own * changed, len(features.keys))
    spans = [
        str(features.keys[key]) for key in np.argsort(-by_key, kind="stable") if by_key[key] > 0
    ]
    enough = len(rows) >= FEWEST
    before = features.total[rows].astype(np.float64)
    after = before - saved
    lag = load.lag[rows].astype(np.float64) if load.lag is not None else None
    shifts = _shifts(before, after, PERCENTS) if enough else ()
    repairs = tuple(_repairs(before, after, lag, load.limits)) if enough else ()
    return Prediction(
        name=name,
        unit=features.unit,
        traces=len(rows),
        spans=tuple(spans),
        with_spans=len(touched),
        shifts=shifts,
        repairs=repairs,
        sentence=_sentence(shifts, count(len(rows), features.unit), len(touched)),
        caveat=_caveat(load.is_open),
    )


def _repairs(
    before: Floats, after: Floats, lag: Floats | None, limits: Sequence[DurationLimit]
) -> list[Repair]:
    found = []
    for limit in limits:
        if limit.of == "response" and lag is None:
            continue
        add = lag if limit.of == "response" and lag is not None else 0.0
        (shift,) = _shifts(before + add, after + add, (limit.p,))
        excess = shift.before_s - limit.max_s
        share, interval = None, None
        if excess > 0:
            share = min(max(shift.gain_s / excess, 0.0), 1.0)
            low, high = (min(max(one / excess, 0.0), 1.0) for one in shift.gain_interval)
            interval = (low, high)
        found.append(Repair(limit=limit, shift=shift, share=share, share_interval=interval))
    return found


def _shifts(
    before: Floats, after: Floats, percents: Sequence[float | None]
) -> tuple[PredictedValue, ...]:
    chance = np.random.default_rng(_SEED)
    some = np.arange(len(before))
    if len(some) > _MOST:
        some = chance.choice(len(some), _MOST, replace=False)
    pairs = [_Resampled(before[some]), _Resampled(after[some])]
    drawn = np.empty((_DRAWS, 2, len(percents)))
    for draw in range(_DRAWS):
        picked = chance.integers(0, len(some), len(some))
        for side, one in enumerate(pairs):
            drawn[draw, side] = one.values(picked, percents)
    # intervals of more traces than are drawn from are narrower
    narrow = math.sqrt(len(some) / len(before))
    found = []
    for at, percent in enumerate(percents):
        first, last = (_value(one, percent) / 1e9 for one in (before, after))
        low, high = drawn[:, 0, at] / 1e9, drawn[:, 1, at] / 1e9
        found.append(
            PredictedValue(
                name=value_name(percent),
                before_s=first,
                after_s=last,
                gain_s=first - last,
                before_interval=_bounds(low, first, narrow),
                after_interval=_bounds(high, last, narrow),
                gain_interval=_bounds(low - high, first - last, narrow),
            )
        )
    return tuple(found)


class _Resampled:
    """Percentiles and means of resampled `durations`, quick because integer ranks are sorted."""

    def __init__(self, durations: Floats) -> None:
        order = np.argsort(durations, kind="stable")
        self._durations = durations
        self._sorted = durations[order]
        self._rank = np.empty(len(order), np.int64)
        self._rank[order] = np.arange(len(order))

    def values(self, picked: Ints, percents: Sequence[float | None]) -> list[float]:
        ranks = self._rank[picked]
        places = sorted({_place(len(ranks), one) for one in percents if one is not None})
        parted = np.partition(ranks, places) if places else ranks
        return [
            float(self._durations[picked].mean())
            if percent is None
            else float(self._sorted[parted[_place(len(ranks), percent)]])
            for percent in percents
        ]


def value_name(percent: float | None) -> str:
    """Return the name of a percentile: "p95", "max" for 100, "mean" for None."""
    if percent is None:
        return "mean"
    return "max" if percent == 100 else f"p{percent:g}"


def _value(durations: Floats, percent: float | None) -> float:
    if percent is None:
        return float(durations.mean())
    return float(_quantile(durations, percent))


def _quantile(durations: Floats, percent: float) -> Floats:
    place = _place(len(durations), percent)
    found: Floats = np.partition(durations, place, axis=0)[place]
    return found


def _tail(durations: Floats) -> Floats:
    place = _place(len(durations), 95)
    found: Floats = np.partition(durations, place, axis=0)[place:].mean(axis=0)
    return found


def _place(number: int, percent: float) -> int:
    return max(math.ceil(number * percent / 100) - 1, 0)


def _bounds(drawn: Floats, value: float, narrow: float) -> tuple[float, float]:
    low, high = np.percentile(drawn, _BOUNDS).tolist()
    return value + (low - value) * narrow, value + (high - value) * narrow


def _sentence(shifts: Sequence[PredictedValue], traces: str, touched: int) -> str:
    if not touched:
        return "No iteration waited for these spans: no time would change."
    if not shifts:
        return f"There are {traces}: a prediction takes {FEWEST}."
    parts = [f"{one.name} {duration(one.before_s)} -> {duration(one.after_s)}" for one in shifts]
    return f"{', '.join(parts)} ({traces})."


_QUEUES = "Left out: queues, which get shorter when work does."
_OPEN = f"{_QUEUES} Near saturation of this open load the true gain is larger: a lower bound."
_CLOSED = (
    f"{_QUEUES} Users of this closed load also come back sooner: more requests per second, which"
    " may take some of the gain."
)


def _caveat(is_open: bool | None) -> str:
    if is_open is None:
        return f"{_QUEUES} Under an open load near saturation the true gain is larger."
    return _OPEN if is_open else _CLOSED
