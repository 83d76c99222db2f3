"""Checks whether the newest run of a trend is slower than earlier runs, beyond their spread."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from osbench.coordinator.formatting import duration, plain
from osbench.coordinator.results.statistics.student_t import upper_p
from osbench.edges.history.comparison.change_points import ENOUGH, change_points
from osbench.edges.history.comparison.compared_run import ComparedRun
from osbench.edges.history.comparison.findable_changes import findable_sentence
from osbench.edges.history.comparison.slower_calls import changed_calls
from osbench.edges.history.comparison.trends import (
    SIGNIFICANT,
    RunsTrend,
    TrendSeries,
    trend_of,
)
from osbench.edges.history.comparison.two_samples import Shifted

#: A lasting change that began so many runs ago, at most, may have become clear by the newest.
_RECENT = 4
#: Logarithm of the greatest growth in a message.
_MOST = 30.0


@dataclass(frozen=True, kw_only=True)
class WorseFigure:
    """A percentile that is slower in the newest run than in the runs before. Times are seconds."""

    workload: str
    action: str
    percent: float
    #: Geometric mean of the runs before it, since their last change, and how many they are.
    before_s: float
    runs: int
    now_s: float
    #: Probability of such a run if nothing has changed.
    p: float

    @property
    def label(self) -> str:
        """Percentile and action, or workload, such as "p95 of boot"."""
        return _label(self)


def _label(one: WorseFigure | TrendSeries) -> str:
    return f"p{one.percent:g} of {one.action or one.workload}"


@dataclass(frozen=True, kw_only=True)
class TrendCheck:
    """The result of checking the newest run of a trend, with the percentiles that are worse."""

    fingerprint: str
    task: str
    run_id: str
    #: Of the newest run, ISO 8601, UTC.
    started_at: str
    #: There are enough runs for a verdict.
    enough: bool
    #: Clearest first.
    worse: tuple[WorseFigure, ...]
    sentence: str
    #: Calls that take longer within the first of them; "" if not known.
    calls: str = ""


def check_trend(runs: Sequence[ComparedRun]) -> TrendCheck:
    """Check the newest run of one fingerprint; `runs` are oldest first, at least one.

    A run is worse if a percentile exceeds the prediction of a t-test from the runs since their last
    lasting change, or if a lasting change for the worse became clear with it. Nothing is worse with
    fewer than `ENOUGH` runs. All percentiles together err in 1 % of runs without a change. A run
    that continues earlier worse runs is not reported. Raises DamagedRun if files of a run are cut
    or changed.
    """
    trend = trend_of(runs)
    enough = len(runs) >= ENOUGH
    level = SIGNIFICANT / max(2 * len(trend.series), 1)
    found = [_worse(one, level) for one in trend.series] if enough else []
    worse = sorted((one for one in found if one), key=lambda one: (bool(one.action), one.p))
    calls = ""
    if worse:
        before = runs[max(len(runs) - 1 - worse[0].runs, 0) : -1]
        calls = changed_calls(before, runs[-1:], worse[0].workload, changed=True)
    return TrendCheck(
        fingerprint=trend.fingerprint,
        task=trend.task,
        run_id=runs[-1].run_id,
        started_at=trend.runs[-1].started_at,
        enough=enough,
        worse=tuple(worse),
        sentence=_sentence(trend, worse, level),
        calls=calls,
    )


def _worse(series: TrendSeries, level: float) -> WorseFigure | None:
    """Return a percentile's figures if the newest run is worse at significance `level`, or None."""
    logs = [None if value is None else math.log(value) for value in series.values_s]
    known = [value for value in logs if value is not None]
    if logs[-1] is None or len(known) < ENOUGH:
        return None
    *earlier, now = known
    changes = change_points(earlier, level)
    base = _base(earlier, level)
    p = _p(base, now)
    if p >= level:
        # a change may be too small for one run, and clear by several
        later = change_points(known, level)
        last = later[-1] if later else None
        is_news = last is not None and (not changes or last.at > changes[-1].at)
        if last is None or not is_news or last.at < len(known) - _RECENT:
            return None
        if last.after <= last.before:
            return None
        base, p = known[: last.at][-len(base) :], last.p
    return WorseFigure(
        workload=series.workload,
        action=series.action,
        percent=series.percent,
        before_s=math.exp(statistics.fmean(base)),
        runs=len(base),
        now_s=math.exp(now),
        p=p,
    )


def _base(earlier: Sequence[float], level: float) -> Sequence[float]:
    """Return the logarithms since their last lasting change."""
    changes = change_points(earlier, level)
    return earlier[changes[-1].at if changes else 0 :]


def _findable(series: TrendSeries, level: float) -> float | None:
    """Return the growth that 80 % of checks find, as a fraction; None with too few runs."""
    known = [math.log(value) for value in series.values_s if value is not None]
    base = _base(known[:-1], level)
    if len(known) < ENOUGH or len(base) < ENOUGH - 1:
        return None
    error = statistics.stdev(base) * math.sqrt(1 + 1 / len(base))
    # the check is one-sided
    least = Shifted(by=0.0, error=error, freedom=len(base) - 1).findable(2 * level)
    return math.expm1(min(least, _MOST))


def _p(base: Sequence[float], now: float) -> float:
    """Return the probability of a value of `now` or more, if it is from the same runs as `base`.

    One-sided t-test of logarithms; 1 if `base` is too short for a test.
    """
    if len(base) < ENOUGH - 1:
        return 1.0
    spread = statistics.stdev(base) * math.sqrt(1 + 1 / len(base))
    above = now - statistics.fmean(base)
    if not spread:
        return 0.0 if above > 0 else 1.0
    return upper_p(above / spread, len(base) - 1)


def _sentence(trend: RunsTrend, worse: Sequence[WorseFigure], level: float) -> str:
    runs = len(trend.runs)
    if runs < ENOUGH:
        return f"{runs} of at least {ENOUGH} runs: too few to check the last one."
    if not worse:
        found = [(_findable(one, level), _label(one)) for one in trend.series]
        known = [(least, name) for least, name in found if least]
        return f"Run {trend.runs[-1].run_id} is like the runs before it.{findable_sentence(known)}"
    first = worse[0]
    more = f"; and {len(worse) - 1} other percentiles" if len(worse) > 1 else ""
    return (
        f"Run {trend.runs[-1].run_id} is worse: {plain(first.label)} takes {duration(first.now_s)},"
        f" {100 * (first.now_s / first.before_s - 1):.0f} % more than in the {first.runs} runs"
        f" before it ({duration(first.before_s)} on average){more}."
    )
