"""Compares traces of two runs, or of two parts of a run: keys whose time grew or shrank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from osbench.common.values.outcomes import Outcome
from osbench.coordinator.formatting import count, duration, spaced
from osbench.edges.traces.analysis.bootstrap import difference
from osbench.edges.traces.analysis.features import Features, Ints
from osbench.edges.traces.analysis.quantiles import ENOUGH, far_out, usable
from osbench.edges.traces.analysis.sentences import gaps, words
from osbench.edges.traces.model.span_keys import SpanKey

#: From when to when after t0 its iterations were due, seconds; several times.
LoadPart = Sequence[tuple[float, float]]
LoadParts = tuple[LoadPart, LoadPart]

_MOST = 5000
_TESTED = 60
_SIGNIFICANT = 0.05
#: Fraction of the total growth: a smaller change does not explain the growth.
_WORTH_SAYING = 0.01


@dataclass(frozen=True, kw_only=True)
class Change:
    """Change of the time of one key (service, name, detail) between two runs or parts of a run.

    Times are mean seconds per trace, calls mean numbers per trace.
    """

    who: str
    what: str
    about: str
    before_s: float
    after_s: float
    added_s: float
    interval_s: tuple[float, float]
    calls_before: float
    calls_after: float
    #: The two parts of the growth: more calls, each as long as before; longer calls.
    more_calls_s: float
    slower_calls_s: float
    #: p-value of the difference, corrected for the number of keys.
    p: float

    @property
    def key(self) -> SpanKey:
        """Service, name and detail of the spans (or of the wait) whose time changed."""
        return SpanKey(self.who, self.what, self.about)

    @property
    def real(self) -> bool:
        """Return whether the change is significant: its corrected p-value is below 0.05."""
        return self.p < _SIGNIFICANT


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Comparison of the successful traces of one group, such as a workload, in two runs or parts.

    Times are seconds; outliers are left out. `changes` has at most 20 keys, 0 for too few traces.
    """

    name: str
    traces_before: int
    traces_after: int
    #: Outliers of each run, left out of the means.
    far: tuple[int, int]
    #: Incomplete traces among the compared ones; 0 unless most traces of a run are incomplete.
    gaps: tuple[int, int]
    mean_before_s: float
    mean_after_s: float
    added_s: float
    interval_s: tuple[float, float]
    p50_s: tuple[float, float]
    p95_s: tuple[float, float]
    p99_s: tuple[float, float]
    sentence: str
    #: Largest absolute change first.
    changes: tuple[Change, ...]

    @property
    def grown(self) -> list[Change]:
        """Significant changes that take more time, largest first, without changes below 1 %.

        That is 1 % of the growth of the total. Empty if the total did not grow beyond chance.
        """
        if self.interval_s[0] <= 0:
            return []
        least_s = _WORTH_SAYING * self.added_s
        return [one for one in self.changes if one.real and one.added_s > least_s]


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


def compare_runs(before: Features, after: Features, seed: int = 0) -> list[Comparison]:
    """Compare the groups of traces (such as workloads) that both runs have by name.

    `before` and `after` are the feature tables of the runs. One result per group, in the order of
    `before`. The same `seed` gives the same result.
    """
    both = (before, after)
    return [
        _comparison(before, after, name, [_rows(one, name) for one in both], seed)
        for name in before.groups
        if name in after.groups
    ]


def compare_parts(
    features: Features, name: str, before: Ints, after: Ints, seed: int = 0
) -> Comparison:
    """Compare the traces of group `name` whose iterations are in `before` and in `after`.

    The same `seed` gives the same result. Raises ValueError if there is no group `name`.
    """
    rows = _rows(features, name)
    parts = [rows[np.isin(features.iteration[rows], part)] for part in (before, after)]
    return _comparison(features, features, name, parts, seed)


def _comparison(
    before: Features, after: Features, name: str, found_rows: list[Ints], seed: int
) -> Comparison:
    rows, far = [], []
    for features, ordered in zip((before, after), found_rows, strict=True):
        far.append(far_out(features, ordered))
        rows.append(ordered[: len(ordered) - far[-1]])
    totals = [
        features.total[some] / 1e9 for features, some in zip((before, after), rows, strict=True)
    ]
    enough = min(map(len, rows)) >= ENOUGH
    means = [float(total.mean()) if len(total) else 0.0 for total in totals]
    changes: list[Change] = []
    interval = (0.0, 0.0)
    if enough:
        changes, interval = _changes(before, after, rows, seed)
    figures = {
        "name": name,
        "traces_before": len(rows[0]),
        "traces_after": len(rows[1]),
        "far": tuple(far),
        "gaps": tuple(
            int((~features.whole[some]).sum())
            for features, some in zip((before, after), rows, strict=True)
        ),
        "mean_before_s": means[0],
        "mean_after_s": means[1],
        "added_s": means[1] - means[0],
        "interval_s": interval,
        "changes": tuple(changes[:20]),
        **{f"p{p}_s": tuple(_percentile(total, p) for total in totals) for p in (50, 95, 99)},
    }
    draft = Comparison(**figures, sentence="")  # type: ignore[arg-type]  # one dict of several types
    notes = (
        gaps(lost, len(some), f"traces {when}")
        for lost, some, when in zip(draft.gaps, rows, ("before", "after"), strict=True)
    )
    return replace(draft, sentence="".join((_sentence(draft, enough, before.unit), *notes)))


def _rows(features: Features, name: str) -> Ints:
    """Return the rows of the successful traces of the group `name`, fastest first.

    Incomplete traces are left out, unless most are incomplete. Raises ValueError if there is no
    such group.
    """
    number = features.groups.index(name)
    chosen = (features.group == number) & (features.outcome == Outcome.OK)
    rows = usable(features, np.flatnonzero(chosen))
    return rows[np.argsort(features.total[rows], kind="stable")]


def _changes(
    before: Features, after: Features, rows: list[Ints], seed: int
) -> tuple[list[Change], tuple[float, float]]:
    keys = list(dict.fromkeys((*before.keys, *after.keys)))
    place = {key: at for at, key in enumerate(keys)}
    times: list[NDArray[np.float64]] = []
    means: list[NDArray[np.float64]] = []
    calls: list[NDArray[np.float64]] = []
    for features, some in zip((before, after), rows, strict=True):
        columns = [place[key] for key in features.keys]
        # means over all traces, so that they sum to the total
        for found, values in ((means, features.time), (calls, features.calls)):
            found.append(np.zeros(len(keys)))
            found[-1][columns] = features.mean(some, values)
        thin = some
        if len(some) > _MOST:
            thin = some[np.linspace(0, len(some) - 1, _MOST).astype(int)]
        table = np.zeros((len(thin), len(keys)))
        table[:, columns] = features.dense(thin, features.time) / 1e9
        times.append(table)
    means = [found / 1e9 for found in means]
    order = np.argsort(-np.abs(means[1] - means[0]), kind="stable")
    tested, rest = order[:_TESTED], order[_TESTED:]
    tables = [np.column_stack((table[:, tested], table[:, rest].sum(axis=1))) for table in times]
    tests = int((means[0] + means[1] > 0).sum())
    drawn = difference(tables[1], tables[0], seed, two_sided=True, tests=tests)
    changes = [
        _change(
            keys[key],
            (float(means[0][key]), float(means[1][key])),
            (float(calls[0][key]), float(calls[1][key])),
            (float(drawn.low[column]), float(drawn.high[column])),
            float(drawn.p[column]),
        )
        for column, key in enumerate(tested.tolist())
    ]
    return changes, (drawn.total_low, drawn.total_high)


def _change(
    key: SpanKey,
    means: tuple[float, float],
    calls: tuple[float, float],
    interval: tuple[float, float],
    p: float,
) -> Change:
    before, after = means
    # calls that did not occur before count as additional calls
    each = before / calls[0] if calls[0] else after / calls[1] if calls[1] else 0.0
    more = (calls[1] - calls[0]) * each
    return Change(
        who=key.who,
        what=key.what,
        about=key.about,
        before_s=before,
        after_s=after,
        added_s=after - before,
        interval_s=interval,
        calls_before=calls[0],
        calls_after=calls[1],
        more_calls_s=more,
        slower_calls_s=after - before - more,
        p=p,
    )


def _sentence(found: Comparison, enough: bool, unit: str) -> str:
    if not enough:
        return (
            f"Too few {unit}s to compare: {count(found.traces_before)} and"
            f" {count(found.traces_after)}, {ENOUGH} are needed of each."
        )
    low, high = found.interval_s
    interval = f"(95 %: {spaced_difference(low)} to {spaced_difference(high)})"
    if low <= 0 <= high:
        added = spaced_difference(found.added_s)
        return f"No difference beyond chance: {added} on average {interval}."
    more = "more" if found.added_s > 0 else "less"
    text = (
        f"{unit.capitalize()}s take {spaced(found.mean_after_s)} on average,"
        f" {spaced(abs(found.added_s))} {more} than before {interval}"
    )
    same_way = [change for change in found.changes if change.added_s * found.added_s > 0]
    first = next((change for change in same_way if change.real), None)
    if first is None:
        return f"{text}; no one part of them has changed beyond chance."
    return f"{text}: {100 * first.added_s / found.added_s:.0f} % of that is {words(first.key)}."


def signed_duration(seconds: float) -> str:
    """Return a difference in seconds as text with its sign and unit, such as +1.20ms."""
    return f"{'-' if seconds < 0 else '+'}{duration(abs(seconds))}"


def spaced_difference(seconds: float) -> str:
    """Return a difference in seconds as text with its sign, a space before the unit."""
    return f"{'-' if seconds < 0 else '+'}{spaced(abs(seconds))}"


def _percentile(total: NDArray[np.float64], percent: float) -> float:
    return float(np.percentile(total, percent)) if len(total) else 0.0
