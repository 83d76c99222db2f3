"""Compares two sides of runs: tests each percentile for a change, and draws a conclusion."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from osbench.common.errors import UsageError
from osbench.coordinator.formatting import count, duration, plain, three_digits
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.edges.history.comparison.block_drift import drift_remarks
from osbench.edges.history.comparison.compared_run import ComparedRun
from osbench.edges.history.comparison.comparison_result import (
    Basis,
    Caveat,
    ChangeRow,
    ChangeVerdict,
    ComparisonResult,
    Fact,
    WorkloadChanges,
)
from osbench.edges.history.comparison.evidence import Evidence, odd_runs
from osbench.edges.history.comparison.findable_changes import findable_sentence, signed_percent
from osbench.edges.history.comparison.rank_test import family_p, shift_interval
from osbench.edges.history.comparison.run_checks import caveats, failed_share
from osbench.edges.history.comparison.run_series import (
    COMPARED,
    SeriesKey,
    common_keys,
    common_workloads,
)
from osbench.edges.history.comparison.slower_calls import changed_calls
from osbench.edges.history.comparison.two_samples import Shifted, holm

#: Families of tests err in so many cases at most.
_SIGNIFICANT = 0.05
#: Zones and servers that are compared, at most.
_PARTS = 10
#: Verdicts that say of a workload that it has changed.
_CHANGED = (ChangeVerdict.WORSE, ChangeVerdict.BETTER, ChangeVerdict.MIXED)


@dataclass(frozen=True, kw_only=True)
class _Measured:
    """Values of one percentile in the runs of both sides, with the result of its test.

    Values are logarithms of seconds.
    """

    key: SeriesKey
    #: Logarithms of the runs' percentiles, or of the blocks' means.
    before: Sequence[float]
    after: Sequence[float]
    shifted: Shifted | None
    within: tuple[float, float] | None


@dataclass(frozen=True)
class _Chance:
    """Probability of a percentile's difference without a change, corrected for all tests."""

    #: Corrected for the number of tests; None without a test.
    p: float | None
    #: Significance that the test of this row alone has to fall below.
    level: float = _SIGNIFICANT
    #: The probability is by ranks.
    by_rank: bool = False


_UNTESTED = _Chance(None)


def compare_sides(
    evidence: Evidence,
    *,
    margin: float | None = None,
    anyway: bool = False,
    names: tuple[str, str] = ("", ""),
) -> ComparisonResult:
    """Compare two sides of runs; return verdicts for each percentile, each workload and all.

    `margin`: changes below this fraction count as none, None: no test of equivalence. `anyway`:
    compare in spite of caveats that forbid it. `names`: of the sides. Times are service times of
    successful iterations, and times of their actions. Raises UsageError if a run is given twice,
    the runs have no workload in common, or a caveat forbids it; DamagedRun if files are cut or
    changed.
    """
    before, after = evidence.before, evidence.after
    runs = [*before, *after]
    _check_distinct(before, after)
    workloads = _workloads_in_common(runs)
    found = caveats(before, after)
    if not anyway:
        _check_permitted(found)
    keys = [key for name in workloads for key in common_keys(runs, name)]
    rows = _rows(evidence, keys, margin)
    changes = tuple(_workload(evidence, name, rows) for name in workloads)
    verdict = _overall(rows)
    return ComparisonResult(
        before=tuple(run.run_id for run in before),
        after=tuple(run.run_id for run in after),
        names=names,
        verdict=verdict,
        sentence=_sentence(verdict, rows, evidence.basis, margin),
        basis=evidence.basis if rows else Basis.NOTHING,
        grounds=evidence.grounds,
        margin=margin,
        caveats=found,
        apart_in_time=evidence.apart_in_time,
        workloads=changes,
        block_size=evidence.block_size,
        remarks=(
            *_without_odd_runs(evidence, keys, margin),
            *_remarks(evidence, workloads, keys, rows),
        ),
    )


def _check_distinct(before: Sequence[ComparedRun], after: Sequence[ComparedRun]) -> None:
    names = [run.run_id for run in (*before, *after)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"{', '.join(twice)} is given twice; name each run on one side only")


def _workloads_in_common(runs: Sequence[ComparedRun]) -> list[str]:
    found = common_workloads(runs)
    if not found:
        raise UsageError("the runs have no workload in common: compare runs of the same task")
    return found


def _check_permitted(found: Sequence[Caveat]) -> None:
    forbidding = [one.text for one in found if one.refuses]
    if forbidding:
        raise UsageError(
            f"these runs should not be compared: {'; '.join(forbidding)}. Compare them in spite of "
            "that with --anyway"
        )


def _rows(evidence: Evidence, keys: Sequence[SeriesKey], margin: float | None) -> list[ChangeRow]:
    """Return a row with a verdict for each key, in order.

    `margin` as in `compare_sides`. If nothing changed, at most 5 % of comparisons have a verdict of
    change in any row.
    """
    measured = [_measure(evidence, key) for key in keys]
    tests = [one.shifted for one in measured if one.shifted is not None]
    chances = iter(_chances(evidence, measured, holm([test.p for test in tests])))
    same = iter(_same(tests, margin))
    return [
        _row(one, next(chances), next(same)) if one.shifted else _row(one, _UNTESTED, 1.0)
        for one in measured
    ]


def _measure(evidence: Evidence, key: SeriesKey) -> _Measured:
    shifted = evidence.shifted(key)
    before, after = evidence.levels(key, shifted)
    return _Measured(
        key=key, before=before, after=after, shifted=shifted, within=evidence.within(key)
    )


def _chances(
    evidence: Evidence, measured: Sequence[_Measured], by_spread: Sequence[float]
) -> list[_Chance]:
    """Return the probability of each test's difference: from spreads, and from ranks if possible.

    `by_spread`: the tests' p-values from spreads, corrected for their number.
    """
    level = _SIGNIFICANT / max(len(by_spread), 1)
    if not evidence.by_rank or len(by_spread) < len(measured):
        return [_Chance(p, level) for p in by_spread]
    by_rank = family_p([one.before for one in measured], [one.after for one in measured])
    # two tests, each at half the level
    return [
        _Chance(min(1.0, 2 * min(spread, rank)), level / 2, rank < spread)
        for spread, rank in zip(by_spread, by_rank, strict=True)
    ]


def _same(tests: Sequence[Shifted], margin: float | None) -> list[float]:
    """Return for each test the p-value of a change as great as the margin; 1 without a margin.

    `margin` is a fraction. A small p-value means that the two sides are equivalent.
    """
    if margin is None or not tests:
        return [1.0] * len(tests)
    raw = [test.equivalence_p(math.log1p(margin)) for test in tests]
    # that all are equivalent is one statement, which needs no correction
    return raw if max(raw) < _SIGNIFICANT else holm(raw)


def _row(one: _Measured, chance: _Chance, same_p: float) -> ChangeRow:
    middle = statistics.median if chance.by_rank else statistics.fmean
    before, after = middle(one.before), middle(one.after)
    verdict = ChangeVerdict.NO_EVIDENCE
    if same_p < _SIGNIFICANT:
        verdict = ChangeVerdict.EQUIVALENT
    elif chance.p is not None and chance.p < _SIGNIFICANT:
        verdict = ChangeVerdict.WORSE if after > before else ChangeVerdict.BETTER
    bounds = one.shifted.interval if one.shifted else one.within
    if chance.by_rank:
        bounds = shift_interval(one.before, one.after)
    findable = one.shifted.findable(chance.level) if one.shifted else None
    return ChangeRow(
        workload=one.key.workload,
        action=one.key.action,
        percent=one.key.percent,
        before_s=math.exp(before),
        after_s=math.exp(after),
        ratio=math.exp(after - before),
        interval=_ratios(bounds),
        p=chance.p,
        findable=None if findable is None else math.expm1(min(findable, 30.0)),
        verdict=verdict,
    )


def _ratios(bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    if bounds is None:
        return None
    # with two runs a side an interval can be wider than any number says something about
    low, high = (math.exp(min(max(bound, -30.0), 30.0)) for bound in bounds)
    return low, high


def _overall(rows: Sequence[ChangeRow]) -> ChangeVerdict:
    found = {row.verdict for row in rows}
    if {ChangeVerdict.WORSE, ChangeVerdict.BETTER} <= found:
        return ChangeVerdict.MIXED
    for verdict in (ChangeVerdict.WORSE, ChangeVerdict.BETTER):
        if verdict in found:
            return verdict
    if found == {ChangeVerdict.EQUIVALENT}:
        return ChangeVerdict.EQUIVALENT
    return ChangeVerdict.NO_EVIDENCE


def _workload(evidence: Evidence, name: str, rows: Sequence[ChangeRow]) -> WorkloadChanges:
    own = tuple(row for row in rows if row.workload == name)
    verdict = _overall(own)
    return WorkloadChanges(
        name=name,
        verdict=verdict,
        rows=own,
        facts=_facts(evidence, name),
        calls=changed_calls(evidence.before, evidence.after, name, changed=verdict in _CHANGED),
    )


def _facts(evidence: Evidence, name: str) -> tuple[Fact, ...]:
    sides = (evidence.before, evidence.after)
    rates, failures = [], []
    for side in sides:
        per_s = [run.workloads[name].throughput.ok_per_s for run in side]
        known = [rate for rate in per_s if rate is not None]
        rates.append(f"{three_digits(sum(known) / len(known))}/s" if known else "-")
        failed, ran = failed_share(side, name)
        failures.append(f"{failed:,} of {ran:,}")
    return (
        Fact(name="ok iterations", before=rates[0], after=rates[1]),
        Fact(name="failed or timed out", before=failures[0], after=failures[1]),
        *_part_facts(evidence, name),
    )


def _part_facts(evidence: Evidence, name: str) -> Iterator[Fact]:
    """Yield p95 of each zone or server that all runs have: the median of the runs of a side."""
    sides = [
        [_p95_of_parts(run.workloads[name]) for run in side]
        for side in (evidence.before, evidence.after)
    ]
    found = [values for side in sides for values in side]
    for label in list(found[0])[:_PARTS]:
        if all(label in values for values in found):
            before, after = (statistics.median(one[label] for one in side) for side in sides)
            more = f"{abs(after - before) * 1e3:.3g} ms {'more' if after > before else 'less'}"
            text = duration(after) if after == before else f"{duration(after)}, {more}"
            yield Fact(name=f"p95 of {label}", before=duration(before), after=text)


def _p95_of_parts(workload: WorkloadReport) -> dict[str, float]:
    return {
        f"{'zone' if one.of == 'iterations' else 'server'} {plain(row.name)}": row.p95
        for one in workload.breakdowns
        for row in one.rows
        if row.p95 is not None
    }


def _sentence(
    verdict: ChangeVerdict, rows: Sequence[ChangeRow], basis: Basis, margin: float | None
) -> str:
    if not rows:
        return "Too few iterations to compare any percentile."
    tested = len(rows)
    if verdict in (ChangeVerdict.WORSE, ChangeVerdict.BETTER, ChangeVerdict.MIXED):
        moved = [row for row in rows if row.verdict in (ChangeVerdict.WORSE, ChangeVerdict.BETTER)]
        told = {"worse": "Worse", "better": "Better", "mixed": "Some better, some worse"}[verdict]
        # the clearest one of the iteration as a whole; else of an action
        first = min(moved, key=lambda row: (bool(row.action), row.p or 0.0))
        more = len(moved) - 1
        rest = f"; {more} more of {tested} percentiles changed beyond chance" if more else ""
        return f"{told}: {first.label} {change_text(first)}{rest}."
    if verdict is ChangeVerdict.EQUIVALENT:
        return f"Equivalent: no percentile changed by {100 * (margin or 0):g} % or more."
    widest = max(rows, key=lambda row: abs(math.log(row.ratio)))
    if basis is Basis.TIME_BLOCKS:
        return (
            f"No evidence: the greatest difference is that {widest.label} {change_text(widest)},"
            " but the run-to-run spread is unknown."
        )
    known = [(row.findable, row.label) for row in rows if row.findable]
    told = findable_sentence(known)
    return (
        "No evidence of a change; the greatest difference is that"
        f" {widest.label} {change_text(widest)}.{told}"
    )


def change_text(row: ChangeRow) -> str:
    """Return the change of a percentile in words: "takes 12.0 % longer (95 %: +8.0 % to +16 %)".

    Without an interval, the part in brackets is left out.
    """
    text = f"takes {abs(row.ratio - 1):.1%} {'longer' if row.ratio >= 1 else 'less'}"
    text = text.replace("%", " %")
    if row.interval is None:
        return text
    low, high = (signed_percent(bound) for bound in row.interval)
    return f"{text} (95 %: {low} to {high})"


def _without_odd_runs(
    evidence: Evidence, keys: Sequence[SeriesKey], margin: float | None
) -> list[str]:
    """Return messages on runs unlike the others of their side, with the verdict without such runs.

    Empty if there are no such runs. `margin` as in `compare_sides`.
    """
    odd = odd_runs(evidence, keys)
    if not odd:
        return []
    names = {one.run_id for one in odd}
    rest = replace(
        evidence,
        before=[run for run in evidence.before if run.run_id not in names],
        after=[run for run in evidence.after if run.run_id not in names],
    )
    rows = _rows(rest, keys, margin)
    said = _sentence(_overall(rows), rows, rest.basis, margin).removesuffix(".")
    which = "; ".join(
        f"run {one.run_id} is unlike the others of its side: {one.label}"
        f" {signed_percent(one.ratio)}"
        for one in odd
    )
    found = [f"{which[:1].upper()}{which[1:]}. Without {'it' if len(odd) == 1 else 'them'}: {said}"]
    if not evidence.by_rank:
        found.append("With five runs a side a single outlier neither hides a change nor makes one")
    return found


def _remarks(
    evidence: Evidence,
    workloads: Sequence[str],
    keys: Sequence[SeriesKey],
    rows: Sequence[ChangeRow],
) -> tuple[str, ...]:
    found = []
    present = {(key.workload, key.percent) for key in keys if not key.action}
    for name in workloads:
        gone = [f"p{percent:g}" for percent in COMPARED if (name, percent) not in present]
        if gone:
            found.append(
                f"{' and '.join(gone)} of {name} left out: a run has too few iterations beyond, or"
                " it is 0"
            )
    if evidence.basis is Basis.BLOCKS:
        found += drift_remarks(evidence, keys)
    if rows and all(row.interval is None for row in rows):
        found.append("No intervals: the runs do not bound their percentiles")
    if any(row.p is not None for row in rows):
        unless = " and its surroundings did not change" if evidence.apart_in_time else ""
        found.append(
            f"The verdicts allow for {count(len(rows), 'percentile')} at once: if it did not change"
            f"{unless}, 5 % of comparisons at most name a change. Each interval is for its row"
            " alone"
        )
    return tuple(found)
