"""Compares two sides of runs: tests every percentile, and says what follows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from osbench.common.errors import UsageError
from osbench.coordinator.comparison.compared_run import ComparedRun
from osbench.coordinator.comparison.comparison_result import (
    Basis,
    ChangeRow,
    ChangeVerdict,
    ComparisonResult,
    Fact,
    WorkloadChanges,
)
from osbench.coordinator.comparison.evidence import Evidence
from osbench.coordinator.comparison.run_checks import caveats, failed_share
from osbench.coordinator.comparison.run_series import (
    COMPARED,
    SeriesKey,
    common_keys,
    common_workloads,
    log_values,
)
from osbench.coordinator.comparison.slower_calls import changed_calls
from osbench.coordinator.formatting import three_digits
from osbench.coordinator.statistics.two_samples import Shifted, holm

#: Families of tests err in so many cases at most.
_SIGNIFICANT = 0.05


@dataclass(frozen=True, kw_only=True)
class _Measured:
    """A row before anything is concluded."""

    key: SeriesKey
    before: float
    after: float
    shifted: Shifted | None
    within: tuple[float, float] | None


def compare_sides(
    evidence: Evidence,
    *,
    margin: float | None = None,
    anyway: bool = False,
    names: tuple[str, str] = ("", ""),
) -> ComparisonResult:
    """Compare two sides. Raises UsageError where they cannot be, or must not be, compared.

    `margin`: the share of change that counts as none. `anyway`: compare in spite of what forbids
    it. Times are service times of iterations that succeeded, and of their actions.
    """
    before, after = evidence.before, evidence.after
    runs = [*before, *after]
    _check_distinct(before, after)
    workloads = common_workloads(runs)
    if not workloads:
        raise UsageError("the runs have no workload in common")
    found = caveats(before, after)
    forbidding = [one.text for one in found if one.refuses]
    if forbidding and not anyway:
        raise UsageError(
            f"these runs should not be compared: {'; '.join(forbidding)}."
            " With --anyway they are compared in spite of that"
        )
    keys = [key for name in workloads for key in common_keys(runs, name)]
    rows = _concluded([_measure(evidence, key) for key in keys], margin)
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
        workloads=changes,
        remarks=_remarks(workloads, keys, rows),
    )


def _check_distinct(before: Sequence[ComparedRun], after: Sequence[ComparedRun]) -> None:
    names = [run.run_id for run in (*before, *after)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"{', '.join(twice)} is given twice: a run can be on one side only")


def _measure(evidence: Evidence, key: SeriesKey) -> _Measured:
    before, after = (log_values(side, key) for side in (evidence.before, evidence.after))
    return _Measured(
        key=key,
        before=float(np.mean(before)),
        after=float(np.mean(after)),
        shifted=evidence.shifted(key),
        within=evidence.within(key),
    )


def _concluded(measured: Sequence[_Measured], margin: float | None) -> list[ChangeRow]:
    """The rows with their verdicts, which hold for all of them together."""
    tests = [one.shifted for one in measured if one.shifted is not None]
    corrected = iter(holm([test.p for test in tests]))
    same = [1.0] * len(tests)
    if margin is not None:
        log_margin = math.log1p(margin)
        raw = [test.equivalence_p(log_margin) for test in tests]
        # that all are equivalent is one statement, which needs no correction
        same = raw if max(raw, default=1.0) < _SIGNIFICANT else holm(raw)
    equal = iter(same)
    return [
        _row(one, next(corrected), next(equal)) if one.shifted else _row(one, None, 1.0)
        for one in measured
    ]


def _row(one: _Measured, p: float | None, same_p: float) -> ChangeRow:
    by = one.after - one.before
    verdict = ChangeVerdict.NO_EVIDENCE
    if same_p < _SIGNIFICANT:
        verdict = ChangeVerdict.EQUIVALENT
    elif p is not None and p < _SIGNIFICANT:
        verdict = ChangeVerdict.WORSE if by > 0 else ChangeVerdict.BETTER
    bounds = one.shifted.interval if one.shifted else one.within
    return ChangeRow(
        workload=one.key.workload,
        action=one.key.action,
        percent=one.key.percent,
        before_s=math.exp(one.before),
        after_s=math.exp(one.after),
        ratio=math.exp(by),
        interval=_ratios(bounds),
        p=p,
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
    return WorkloadChanges(
        name=name,
        verdict=_overall(own),
        rows=own,
        facts=_facts(evidence, name),
        calls=changed_calls(evidence.before, evidence.after, name),
    )


def _facts(evidence: Evidence, name: str) -> tuple[Fact, ...]:
    sides = (evidence.before, evidence.after)
    rates, failures = [], []
    for side in sides:
        per_s = [run.workloads[name]["throughput"]["ok_per_s"] for run in side]
        known = [rate for rate in per_s if rate is not None]
        rates.append(f"{three_digits(sum(known) / len(known))}/s" if known else "-")
        failed, ran = failed_share(side, name)
        failures.append(f"{failed:,} of {ran:,}")
    return (
        Fact(name="ok iterations", before=rates[0], after=rates[1]),
        Fact(name="failed or timed out", before=failures[0], after=failures[1]),
    )


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
        return f"{told}: {first.label} {changed(first)}{rest}."
    if verdict is ChangeVerdict.EQUIVALENT:
        return f"Equivalent: no percentile changed by {100 * (margin or 0):g} % or more."
    widest = max(rows, key=lambda row: abs(math.log(row.ratio)))
    if basis is Basis.TIME_BLOCKS:
        return (
            f"No evidence: the greatest difference is that {widest.label} {changed(widest)},"
            " but the run-to-run spread is unknown."
        )
    return (
        "No evidence of a change; the greatest difference is that"
        f" {widest.label} {changed(widest)}."
    )


def changed(row: ChangeRow) -> str:
    """What a percentile did, with its interval: "takes 12 % longer (95 %: 8 % to 16 %)"."""
    text = f"takes {abs(row.ratio - 1):.1%} {'longer' if row.ratio >= 1 else 'less'}"
    text = text.replace("%", " %")
    if row.interval is None:
        return text
    low, high = (signed_percent(bound) for bound in row.interval)
    return f"{text} (95 %: {low} to {high})"


def signed_percent(ratio: float) -> str:
    """A ratio as a change: +12 %, -3.4 %."""
    change = 100 * (ratio - 1)
    if abs(change) >= 1000:
        return f"x {three_digits(ratio)}"
    return f"{change:+.1f} %" if abs(change) < 9.95 else f"{change:+.0f} %"


def _remarks(
    workloads: Sequence[str], keys: Sequence[SeriesKey], rows: Sequence[ChangeRow]
) -> tuple[str, ...]:
    found = []
    present = {(key.workload, key.percent) for key in keys if not key.action}
    for name in workloads:
        gone = [f"p{percent:g}" for percent in COMPARED if (name, percent) not in present]
        if gone:
            found.append(
                f"{' and '.join(gone)} of {name} left out: a run has too few iterations beyond"
            )
    if rows and all(row.interval is None for row in rows):
        found.append("No intervals: the runs are too short for ten independent blocks of time")
    if any(row.p is not None for row in rows):
        found.append(
            f"The verdicts allow for {len(rows)} percentiles at once: where nothing changed, 5 % of"
            " comparisons at most name a change. Each interval is that of its row alone"
        )
    return tuple(found)
