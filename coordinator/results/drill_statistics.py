"""Statistics of a drill: iterations by phase, and the time in which a load recovered from a fault.

Phases begin with records of the journal. An iteration that ended before the fault belongs to
`before`, whatever hook fires next. An iteration that was scheduled after the hook of `after` fired
belongs to `after`. All others belong to `fault`, also iterations that ran when it began.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.outcomes import Outcome
from osbench.common.protocol.columns import Columns
from osbench.coordinator.results.drill_figures import (
    Bounds,
    DrillFigures,
    LeftFigures,
    PhaseFigures,
)
from osbench.coordinator.statistics.block_intervals import block_intervals
from osbench.coordinator.statistics.latency_matrix import (
    Extent,
    LatencyMatrix,
    bounds_of,
    buckets_of,
)
from osbench.coordinator.statistics.off_stretches import (
    OffStretch,
    fewest_bad,
    last_off,
)
from osbench.coordinator.statistics.proportions import design_effect, share_interval, usual_number

Ints = NDArray[np.int64]

BEFORE, FAULT, AFTER = "before", "fault", "after"

#: Effect of the hook of a phase, in messages.
_DOES = {FAULT: "begins the fault", AFTER: "ends the fault"}

#: Iterations that have to succeed before a fault for its response times to be known.
ENOUGH = 40
#: Share of slow iterations that is as before: twice the five of a hundred beyond its p95.
USUALLY_SLOW = 0.1
#: Greatest share of failures before a fault that one can recover to.
_MOST_FAILING = 0.9
#: Bins of time at most that are looked at for a recovery.
_BINS = 300

_PERCENTS = (50.0, 95.0, 99.0)
_CODES = max(Outcome) + 1


class _Rows:
    """Counts iterations by bin of due time: outcomes, and response times of successes.

    Has the iterations of one phase, or of all phases since the fault.
    """

    def __init__(
        self, outcomes: LatencyMatrix | None = None, response: LatencyMatrix | None = None
    ) -> None:
        #: Codes of outcomes take the place of buckets.
        self.outcomes = outcomes or LatencyMatrix()
        self.response = response or LatencyMatrix()
        #: Resources left in error: due time (ns), iteration, kind and number of resources.
        self.left = np.zeros((0, 4), np.int64)

    def add(self, instants: Ints, outcome: NDArray[np.uint8], response: Ints) -> None:
        """Count iterations: due times (ns after the phase's time 0), outcome codes, response times.

        Response times are in ns.
        """
        if not len(instants):
            return
        self.outcomes.add_buckets(Extent.of(instants), Extent.of(outcome.astype(np.int64)))
        well = outcome == Outcome.OK
        if well.any():
            times = buckets_of(response[well])
            self.response.add_buckets(Extent.of(instants[well]), Extent.of(times))

    def between(self, begin_s: float, end_s: float) -> _Rows:
        """Return a copy with the iterations due between two times (s), rounded to bins.

        `begin_s` is time 0 of the copy.
        """
        found = _Rows(self.outcomes.between(begin_s, end_s), self.response.between(begin_s, end_s))
        inside = (self.left[:, 0] >= begin_s * 1e9) & (self.left[:, 0] < end_s * 1e9)
        found.left = self.left[inside]
        found.left[:, 0] -= round(begin_s * 1e9)
        return found

    def leaving(self) -> Ints:
        """Return the number of iterations that left resources in error, by bin of due time."""
        counts = self.counts()
        if not len(counts) or not len(self.left):
            return counts * 0
        instants = self.left[np.unique(self.left[:, 1], return_index=True)[1], 0]
        bins = np.minimum(instants // round(self.width_s * 1e9), len(counts) - 1)
        return np.minimum(np.bincount(bins, minlength=len(counts)), counts)

    @property
    def width_s(self) -> float:
        """Width of a bin of time, in seconds."""
        return self.outcomes.width_s

    def by_code(self) -> Ints:
        """Return counts of iterations: a row per bin of time, a column per code of outcome."""
        counts = self.outcomes.counts()
        found = np.zeros((len(counts), _CODES), np.int64)
        columns = min(_CODES, counts.shape[1])
        found[:, :columns] = counts[:, :columns]
        return found

    def bad(self) -> Ints:
        """Return the number of failed, timed out and dropped iterations in each bin."""
        found: Ints = self.by_code()[:, Outcome.OK + 1 :].sum(axis=1)
        return found

    def counts(self) -> Ints:
        """Return the number of iterations in each bin of due time."""
        return self.outcomes.by_time()

    def well(self) -> Ints:
        """Return the number of successful iterations in each bin."""
        found: Ints = self.by_code()[:, Outcome.OK]
        return found

    def slow(self, limit_ns: float) -> Ints:
        """Return the number of successful iterations in each bin that took `limit_ns` or more."""
        response = self.response
        counts = response.counts()
        above = bounds_of(np.arange(counts.shape[1]) + response.lowest)[0] >= limit_ns
        sums: Ints = counts[:, above].sum(axis=1)
        # fewer iterations reach less far, so that their bins may be narrower
        sums = _together(sums, round(self.width_s / response.width_s))
        found = np.zeros(self.outcomes.used, np.int64)
        found[: len(sums)] = sums
        return found


@dataclass(frozen=True, kw_only=True)
class _Usual:
    """Limits that the load before the fault exceeds only by chance.

    `failing` is the fraction of iterations that fail, `slow_ns` the response time of slow ones. The
    effects are design effects: variances of counts relative to independent iterations.
    """

    failing: float
    failing_effect: float
    slow_ns: float
    slow_effect: float


@dataclass(frozen=True, kw_only=True)
class _Recovery:
    """Time from the fault to recovery, with its interval; seconds.

    `at_s` is None if the load did not recover, or that is not known: `doubt` is the reason.
    `slow_s`: response time from which iterations counted as slow.
    """

    at_s: float | None = None
    ci: Bounds | None = None
    doubt: str = ""
    slow_s: float | None = None


class DrillStatistics:
    """Counts the iterations of one workload with a drill by phase, in bounded memory."""

    def __init__(self, hooks: Mapping[str, str], warmup_s: float = 0.0) -> None:
        """`hooks`: hook by the phase it begins; `warmup_s`: seconds left out of `before`."""
        self._hooks = hooks
        self._warmup_s = warmup_s
        #: Instants at which phases began, seconds after t0, by phase.
        self._begun: dict[str, float] = {}
        #: Phases whose hook is running, and errors of hooks by phase.
        self._running: set[str] = set()
        self._errors: dict[str, str] = {}
        self._before, self._since = _Rows(), _Rows()
        self._fault, self._after = _Rows(), _Rows()
        self._last_due_ns = 0
        self._rows = 0
        #: Resources left in error; None before they were searched.
        self.left: LeftFigures | None = None
        #: State of all of the above, and the figures that were made of it last.
        self._known: tuple[object, DrillFigures] = (None, DrillFigures())

    def begin(self, phase: str, at_s: float) -> None:
        """Begin a phase `at_s` seconds after t0, when its hook is about to fire.

        Ignored if the phase has begun already. `after` does not begin before `fault`: that is noted
        as an error of its hook.
        """
        if phase in self._begun:
            return
        if phase == AFTER and FAULT not in self._begun:
            self._errors[AFTER] = "fired before the fault"
            return
        self._begun[phase] = at_s
        self._running.add(phase)

    def end_hook(self, phase: str, error: str) -> None:
        """Note that the hook of a phase has ended; `error` is its message, "" for success.

        Ignored if the hook is not running.
        """
        if phase in self._running:
            self._running.discard(phase)
            if error:
                self._errors[phase] = f"failed: {error}"

    def break_off(self) -> None:
        """Count running hooks as failed: the coordinator process that ran them was killed."""
        for phase in self._running:
            self._errors[phase] = "failed: the coordinator was killed meanwhile"
        self._running.clear()

    def add(self, columns: Columns) -> None:
        """Count result rows in the phases they belong to; each iteration once.

        Iterations that ended before the fault count in `before`. Of the others, iterations due
        after `after` began count in `after`, and the rest in `fault`.
        """
        if not len(columns):
            return
        self._rows += len(columns)
        due, outcome, response = columns.due, columns.outcome, columns.response
        self._last_due_ns = max(self._last_due_ns, int(due.max()))
        for rows, here, from_ns in self._divided(due, columns.ended, outcome):
            instants = np.maximum(due[here] - from_ns, 0)
            rows.add(instants, outcome[here], response[here])

    def leave(self, left: LeftFigures, rows: Sequence[Sequence[int]]) -> None:
        """Count resources that were left in error, once the load is over.

        `rows`: due and end (ns after t0), outcome code and number of an iteration, index of a kind
        in `left.kinds`, number of its resources.
        """
        self.left = left
        table = np.array(rows, np.int64).reshape(-1, 6)
        if np.any((table[:, 4] < 0) | (table[:, 4] >= max(1, len(left.kinds)))):
            raise ValueError("expected a row per kind of resources, got another number")
        due, ended, outcome = table[:, :3].T
        for found, here, from_ns in self._divided(due, ended, outcome):
            instants = np.maximum(due[here] - from_ns, 0)
            found.left = np.column_stack((instants, table[here, 3:]))

    def _divided(
        self, due: Ints, ended: Ints, outcome: NDArray[Any]
    ) -> Iterator[tuple[_Rows, NDArray[np.bool_], int]]:
        """Yield the rows of each phase, which iterations they get, and their time 0.

        Time 0 is in ns after t0. Iterations since the fault also count in `fault` or `after`.
        """
        if FAULT not in self._begun:
            yield self._before, np.ones(len(due), np.bool_), 0
            return
        fault_ns = round(self._begun[FAULT] * 1e9)
        over = np.where(outcome <= Outcome.TIMED_OUT, ended, due) < fault_ns
        yield self._before, over, 0
        yield self._since, ~over, fault_ns
        late = np.zeros(len(due), np.bool_)
        if AFTER in self._begun:
            after_ns = round(self._begun[AFTER] * 1e9)
            late = ~over & (due >= after_ns)
            yield self._after, late, after_ns
        yield self._fault, ~over & ~late, fault_ns

    def figures(self) -> DrillFigures:
        """Return the figures of the drill so far.

        They are cached, and computed again only after new rows, phases or errors of hooks.
        """
        state = (self._rows, tuple(self._begun.items()), tuple(self._errors.items()), self.left)
        if self._known[0] != state:
            self._known = state, self._figures()
        return self._known[1]

    def _figures(self) -> DrillFigures:
        fault_s, after_s = self._begun.get(FAULT), self._begun.get(AFTER)
        end_s = self._last_due_ns / 1e9
        if fault_s is None:
            only = self._phase(BEFORE, self._before, self._warmup_s, end_s)
            problem = self._problem()
            return DrillFigures(phases=(only,), problem=problem, doubt=problem, left=self.left)
        recovery = self._recovery()
        end_s = max(end_s, fault_s)
        before, since = self._before, self._since
        bad_before, count_before = int(before.bad().sum()), int(before.counts().sum())
        bad, count = int(since.bad().sum()), int(since.counts().sum())
        beyond = beyond_ci = None
        if count_before:
            effect = design_effect(before.bad(), before.counts())
            low, high = usual_number(bad_before, count_before, count, effect)
            beyond = bad - count * bad_before / count_before
            beyond_ci = (bad - high, bad - low)
        parts = self._parts(fault_s, after_s, recovery.at_s, end_s)
        return DrillFigures(
            fault_s=fault_s,
            after_s=after_s,
            phases=(self._phase(BEFORE, before, min(self._warmup_s, fault_s), fault_s), *parts),
            bad=bad,
            bad_beyond=beyond,
            bad_beyond_ci=beyond_ci,
            recovery_s=recovery.at_s,
            recovery_ci=recovery.ci,
            doubt=recovery.doubt,
            problem=self._problem(),
            slow_s=recovery.slow_s,
            left=self.left,
        )

    def _parts(
        self, fault_s: float, after_s: float | None, recovery_s: float | None, end_s: float
    ) -> tuple[PhaseFigures, ...]:
        """Return the figures of the phases since the fault began: `fault` and, if any, `after`.

        Times are seconds after t0, `recovery_s` seconds after the fault. If no hook ends the fault,
        `after` begins with the recovery, if that is known.
        """
        if after_s is not None:
            return (
                self._phase(FAULT, self._fault, fault_s, after_s),
                self._phase(AFTER, self._after, after_s, max(after_s, end_s)),
            )
        if AFTER in self._hooks or recovery_s is None:
            return (self._phase(FAULT, self._since, fault_s, end_s),)
        split_s = min(fault_s + recovery_s, end_s)
        return (
            self._phase(FAULT, self._since.between(0, recovery_s), fault_s, split_s),
            self._phase(AFTER, self._since.between(recovery_s, math.inf), split_s, end_s),
        )

    def _phase(self, name: str, rows: _Rows, from_s: float, to_s: float) -> PhaseFigures:
        return _phase_figures(name, rows, from_s, to_s, self.left)

    def _problem(self) -> str:
        """Return a message on the first hook that has failed or not fired; "" if none has."""
        for phase, hook in self._hooks.items():
            named = f"the hook that {_DOES[phase]} (“{hook}”)"
            if phase in self._errors:
                return f"{named} {self._errors[phase]}"
            if phase not in self._begun:
                return f"{named} has not fired"
        return ""

    def _recovery(self) -> _Recovery:
        if not self._since.counts().sum():
            return _Recovery(doubt="no iteration was scheduled after the fault")
        if (succeeded := int(self._before.well().sum())) < ENOUGH:
            return _Recovery(
                doubt=f"{succeeded} iterations ended well before the fault: {ENOUGH} are needed to"
                " know what is usual"
            )
        usual = _usual(self._before)
        slow_s = usual.slow_ns / 1e9
        if usual.failing > _MOST_FAILING:
            return _Recovery(doubt="most iterations failed before the fault", slow_s=slow_s)
        bad, counts, slow, well, width_s = self._bins(usual.slow_ns)
        bins = len(counts)
        found = [
            one
            for one in (
                last_off(bad, counts, usual.failing, usual.failing_effect),
                last_off(slow, well, USUALLY_SLOW, usual.slow_effect),
            )
            if one is not None
        ]
        fewest = max(
            fewest_bad(bins, usual.failing, usual.failing_effect),
            fewest_bad(bins, USUALLY_SLOW, usual.slow_effect),
        )
        if not found:
            lasted_s = (self._last_due_ns / 1e9) - self._begun[FAULT]
            unseen_s = fewest * max(lasted_s, width_s) / int(counts.sum())
            return _Recovery(at_s=0.0, ci=(0.0, unseen_s), slow_s=slow_s)
        last = max(found, key=lambda one: one.end)
        if int(counts[last.end :].sum()) < fewest:
            return _Recovery(doubt="the load had not recovered when it ended", slow_s=slow_s)
        return _Recovery(at_s=last.end * width_s, ci=_bounds(found, width_s), slow_s=slow_s)

    def _bins(self, slow_ns: float) -> tuple[Ints, Ints, Ints, Ints, float]:
        """Return (bad, all, slow, successful iterations by bin since the fault, bin width in s).

        `slow_ns`: response time from which a success is slow. Bins are joined to at most `_BINS`.
        """
        since = self._since
        rows = (since.bad(), since.counts(), since.slow(slow_ns), since.well())
        times = 1
        while len(rows[1]) > _BINS * times:
            times *= 2
        bad, counts, slow, well = (_together(one, times) for one in rows)
        return bad, counts, slow, well, times * since.width_s


def _usual(before: _Rows) -> _Usual:
    bad, counts = before.bad(), before.counts()
    effect = design_effect(bad, counts)
    found = block_intervals(before.response, (95.0,))
    assert found is not None
    interval = found.estimates[0].interval_ns
    slow_ns = interval[1] if interval else math.inf
    if math.isinf(slow_ns):
        sums = before.response.summed()
        greatest = np.flatnonzero(sums)[-1:] + before.response.lowest
        slow_ns = float(bounds_of(greatest)[1][0])
    return _Usual(
        failing=share_interval(int(bad.sum()), int(counts.sum()), effect)[1],
        failing_effect=effect,
        slow_ns=slow_ns,
        slow_effect=design_effect(before.slow(slow_ns), before.well()),
    )


def _bounds(found: list[OffStretch], width_s: float) -> Bounds:
    """Return the interval of the recovery, in seconds after the fault; bins are `width_s` wide.

    `found`: last stretches in which failures or slow iterations were unusual. The interval goes
    from a bin before the earliest end of the last stretch to a bin after the latest end of all.
    """
    last = max(found, key=lambda one: one.end)
    latest = max(one.latest_end for one in found)
    return max(0.0, (last.earliest_end - 1) * width_s), (latest + 1) * width_s


def _together(counts: Ints, times: int) -> Ints:
    """Return the sums of groups of `times` successive bins; the last group may be smaller."""
    if times <= 1 or not len(counts):
        return counts
    found: Ints = np.add.reduceat(counts, np.arange(0, len(counts), times))
    return found


def _phase_figures(
    name: str, rows: _Rows, from_s: float, to_s: float, left: LeftFigures | None
) -> PhaseFigures:
    codes = rows.by_code().sum(axis=0).tolist()
    ok, bad, counts = codes[Outcome.OK], rows.bad(), rows.counts()
    count, lasted_s = int(counts.sum()), to_s - from_s
    share = interval = None
    if count:
        share = int(bad.sum()) / count
        interval = share_interval(int(bad.sum()), count, design_effect(bad, counts))
    return PhaseFigures(
        name=name,
        from_s=from_s,
        to_s=to_s,
        ok=ok,
        failed=codes[Outcome.FAILED],
        timed_out=codes[Outcome.TIMED_OUT],
        dropped=sum(codes[Outcome.TIMED_OUT + 1 :]),
        bad_share=share,
        bad_ci=interval,
        ok_per_s=ok / lasted_s if lasted_s > 0 else None,
        **_times(rows),
        **(_left(rows, left) if left is not None else {}),
    )


def _left(rows: _Rows, left: LeftFigures) -> Mapping[str, Any]:
    sums = np.zeros(len(left.kinds), np.int64)
    np.add.at(sums, rows.left[:, 2], rows.left[:, 3])
    named = zip(left.kinds, sums.tolist(), strict=True)
    found: dict[str, Any] = {"left": {one.kind: number for one, number in named if number}}
    counts = rows.counts()
    known = left.kinds and not (left.doubt or left.unplaced)
    if known and (count := int(counts.sum())):
        leaving = rows.leaving()
        number = int(leaving.sum())
        found["leaving_share"] = number / count
        found["leaving_ci"] = share_interval(number, count, design_effect(leaving, counts))
    return found


def _times(rows: _Rows) -> Mapping[str, Any]:
    found = block_intervals(rows.response, _PERCENTS)
    if found is None:
        return {}
    times: dict[str, Any] = {"ci": {}}
    for one in found.estimates:
        key, interval = f"p{one.percent:g}", one.interval_ns
        times[f"{key}_s"] = one.value_ns / 1e9
        times["ci"][key] = interval and tuple(
            None if math.isinf(bound) else bound / 1e9 for bound in interval
        )
    return times
