"""Computes percentiles over runs of one fingerprint (same task and load), and lasting changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from osbench.edges.history.comparison.change_points import ENOUGH, change_points
from osbench.edges.history.comparison.compared_run import ComparedRun
from osbench.edges.history.comparison.run_series import SeriesKey, common_keys, log_value

#: Trends of equal runs name a change in so many cases at most, all series together.
SIGNIFICANT = 0.01
#: Series at most; each of them needs clearer evidence the more there are.
_SERIES = 33


@dataclass(frozen=True, kw_only=True)
class TrendRun:
    """A run of a trend: id, start, tags, osbench's version and exit code."""

    run_id: str
    #: ISO 8601, UTC.
    started_at: str
    tags: tuple[str, ...]
    osbench: str
    exit_code: int


@dataclass(frozen=True, kw_only=True)
class TrendChange:
    """A lasting change of a percentile between two successive runs of a trend."""

    before_run: str
    after_run: str
    #: Geometric means of the percentile before and after it, seconds.
    before_s: float
    after_s: float
    p: float

    @property
    def ratio(self) -> float:
        """Mean after the change divided by the mean before; above 1 is slower."""
        return self.after_s / self.before_s


@dataclass(frozen=True, kw_only=True)
class TrendSeries:
    """A percentile of a workload or action, one value per run, and its lasting changes."""

    workload: str
    action: str
    percent: float
    #: Seconds, one per run; None if the run has too few iterations.
    values_s: tuple[float | None, ...]
    changes: tuple[TrendChange, ...]

    @property
    def label(self) -> str:
        """Percentile and action, or workload, such as "p95 of boot"."""
        return f"p{self.percent:g} of {self.action or self.workload}"


@dataclass(frozen=True, kw_only=True)
class RunsTrend:
    """The runs of one fingerprint, oldest first, with their percentiles and a conclusion."""

    fingerprint: str
    task: str
    deployment: str | None
    runs: tuple[TrendRun, ...]
    series: tuple[TrendSeries, ...]
    #: The conclusion as a message.
    sentence: str


def trend_of(runs: Sequence[ComparedRun]) -> RunsTrend:
    """Return the trend of runs of one fingerprint; `runs` are oldest first, at least one.

    It has up to `_SERIES` percentiles for which the newest run has enough iterations; percentiles
    of iterations come before percentiles of actions.
    """
    newest = runs[-1]
    keys = [key for name in newest.workloads for key in common_keys([newest], name)]
    # the iterations themselves come first, then the actions
    keys = sorted(keys, key=lambda key: bool(key.action))[:_SERIES]
    significance = SIGNIFICANT / max(len(keys), 1)
    series = tuple(_series(runs, key, significance) for key in keys)
    return RunsTrend(
        fingerprint=newest.fingerprint,
        task=str(newest.manifest.get("task", "")),
        deployment=newest.deployment,
        runs=tuple(_trend_run(run) for run in runs),
        series=series,
        sentence=_sentence(len(runs), series),
    )


def _series(runs: Sequence[ComparedRun], key: SeriesKey, significance: float) -> TrendSeries:
    logs = [log_value(run, key) for run in runs]
    known = [(run, value) for run, value in zip(runs, logs, strict=True) if value is not None]
    changes = [
        TrendChange(
            before_run=known[one.at - 1][0].run_id,
            after_run=known[one.at][0].run_id,
            before_s=math.exp(one.before),
            after_s=math.exp(one.after),
            p=one.p,
        )
        for one in change_points([value for _, value in known], significance)
    ]
    return TrendSeries(
        workload=key.workload,
        action=key.action,
        percent=key.percent,
        values_s=tuple(None if value is None else math.exp(value) for value in logs),
        changes=tuple(changes),
    )


def _trend_run(run: ComparedRun) -> TrendRun:
    return TrendRun(
        run_id=run.run_id,
        started_at=run.report.started_at or "",
        tags=run.report.tags,
        osbench=str(run.manifest.get("osbench", "")),
        exit_code=run.exit_code,
    )


def _sentence(runs: int, series: Sequence[TrendSeries]) -> str:
    if runs < ENOUGH:
        return f"{runs} of at least {ENOUGH} runs: too few to look for changes."
    changes = [(one, change) for one in series for change in one.changes]
    if not changes:
        return f"No lasting change over {runs} runs."
    one, change = min(changes, key=lambda pair: (bool(pair[0].action), pair[1].p))
    more = len({found.label for found, _ in changes}) - 1
    rest = f"; {more} more percentiles changed" if more else ""
    way = "longer" if change.ratio > 1 else "less"
    return (
        f"{one.label} takes {100 * abs(change.ratio - 1):.1f} % {way} since run"
        f" {change.after_run}{rest}."
    )
