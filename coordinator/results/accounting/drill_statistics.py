"""Statistics of a drill: iterations by phase, and the time in which a load recovered from a fault.

Phases begin with records of the journal. An iteration that ended before the fault belongs to
`before`, whatever hook fires next. An iteration that was scheduled after the hook of `after` fired
belongs to `after`. All others belong to `fault`, also iterations that ran when it began.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.protocol.columns import Columns
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.formatting import count as counted
from osbench.coordinator.formatting import duration
from osbench.coordinator.results.accounting.delayed_iterations import LatenessOverTime
from osbench.coordinator.results.accounting.drill_figures import (
    DrillFigures,
    LeftFigures,
    PhaseFigures,
)
from osbench.coordinator.results.accounting.drill_recovery import Recovery, recoveries
from osbench.coordinator.results.accounting.drill_rows import LACKING, PhaseRows
from osbench.coordinator.results.statistics.block_intervals import block_intervals
from osbench.coordinator.results.statistics.proportions import (
    design_effect,
    share_interval,
    usual_number,
)

Ints = NDArray[np.int64]

BEFORE, FAULT, AFTER = "before", "fault", "after"

#: Effect of the hook of a phase, in messages.
_DOES = {FAULT: "begins the fault", AFTER: "ends the fault"}

_PERCENTS = (50.0, 90.0, 99.0)


class DrillStatistics:
    """Counts the iterations of one workload with a drill by phase, in bounded memory."""

    def __init__(self, hooks: Mapping[str, str], warmup_s: float = 0.0) -> None:
        """`hooks`: names of hooks by the phase each begins; `warmup_s`: left out of `before`."""
        self._hooks = hooks
        self._warmup_s = warmup_s
        #: Instants at which phases began, seconds after t0, by phase.
        self._begun: dict[str, float] = {}
        #: Phases whose hook is running, and errors of hooks by phase.
        self._running: set[str] = set()
        self._errors: dict[str, str] = {}
        self._before, self._since = PhaseRows(), PhaseRows()
        self._fault, self._after = PhaseRows(), PhaseRows()
        self._lateness = LatenessOverTime()
        self._last_due_ns = 0
        #: Calls that have changed the counts.
        self._changes = 0
        #: Resources left in error; None before they were searched.
        self.left: LeftFigures | None = None
        #: State of all of the above, and the figures that were made of it last: as measured, and
        #: without the generator's delays.
        self._known: tuple[object, DrillFigures, DrillFigures] = (
            None,
            DrillFigures(),
            DrillFigures(),
        )

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
            self._errors[phase] = "failed: the coordinator was killed during the hook"
        self._running.clear()

    def add(self, columns: Columns, lacking: NDArray[np.bool_] | None = None) -> None:
        """Count result rows in the phases they belong to; each iteration once.

        Iterations that ended before the fault, and drops that were due before it, count in
        `before`. Of the others, iterations due after `after` began count in `after`, and the rest
        in `fault`. `lacking`: which ones failed because the load generator lacked resources.
        """
        if not len(columns):
            return
        self._changes += 1
        due, outcome, response = columns.due, columns.outcome, columns.response
        self._last_due_ns = max(self._last_due_ns, int(due.max()))
        codes = outcome if lacking is None else np.where(lacking, LACKING, outcome)
        for rows, here, from_ns in self._divided(due, columns.ended, outcome):
            instants = np.maximum(due[here] - from_ns, 0)
            rows.add(instants, codes[here], response[here])

    def add_lateness(self, worker: str, columns: Columns, lags: Ints) -> None:
        """Count late wake-ups of a worker (ns), which came in one block with these rows."""
        if len(columns):
            self._changes += 1
            until_ns = max(int(columns.ended.max()), int(columns.due.max()))
            self._lateness.add(worker, until_ns, lags)

    def leave(self, left: LeftFigures, rows: Sequence[Sequence[int]]) -> None:
        """Store the resources that were left in error, once the load is over.

        `rows`: due and end (ns after t0), outcome code and number of an iteration, index of a kind
        in `left.kinds`, number of its resources. Raises ValueError for another kind or length.
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
    ) -> Iterator[tuple[PhaseRows, NDArray[np.bool_], int]]:
        """Yield (rows of a phase, mask of the iterations they get, their time 0 in ns after t0).

        Iterations since the fault come twice: all of them together, and in `fault` or `after`.
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
        """Return the figures of the drill so far, cached until something is added or noted."""
        return self._all_figures()[0]

    def figures_without_delays(self) -> DrillFigures:
        """Return the figures as they may have been without the load generator's delays.

        Iterations that the generator itself has failed do not count as bad.
        """
        return self._all_figures()[1]

    def _all_figures(self) -> tuple[DrillFigures, DrillFigures]:
        state = (self._changes, tuple(self._begun.items()), tuple(self._errors.items()), self.left)
        if self._known[0] != state:
            self._known = state, *self._figures()
        return self._known[1:]

    def _figures(self) -> tuple[DrillFigures, DrillFigures]:
        fault_s, after_s = self._begun.get(FAULT), self._begun.get(AFTER)
        end_s = self._last_due_ns / 1e9
        if fault_s is None:
            only = self._phase(BEFORE, self._before, self._warmup_s, end_s)
            problem = self._problem()
            found = DrillFigures(phases=(only,), problem=problem, doubt=problem, left=self.left)
            return found, found
        before, since = self._before, self._since
        recovery, without = recoveries(
            before, since, lasted_s=end_s - fault_s, lateness=self._lateness, fault_s=fault_s
        )
        end_s = max(end_s, fault_s)
        bad_before, count_before = int(before.bad().sum()), int(before.counts().sum())
        bad, count, own = (int(one.sum()) for one in (since.bad(), since.counts(), since.own()))
        beyond = beyond_ci = None
        if count_before:
            effect = design_effect(before.bad(), before.counts())
            low, high = usual_number(bad_before, count_before, count, effect)
            beyond = bad - count * bad_before / count_before
            beyond_ci = (bad - high, bad - low)
        parts = self._parts(fault_s, after_s, recovery.at_s, end_s)
        found = DrillFigures(
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
            limits=recovery.limits,
            unseen_s=recovery.unseen_s,
            generator="; ".join(_doubts_of_generator(recovery, without, own)),
            left=self.left,
        )
        return found, replace(
            found,
            bad=bad - own,
            recovery_s=without.at_s,
            recovery_ci=without.ci,
            doubt=without.doubt,
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

    def _phase(self, name: str, rows: PhaseRows, from_s: float, to_s: float) -> PhaseFigures:
        return _phase_figures(name, rows, from_s, to_s, self.left)

    def _problem(self) -> str:
        for phase, hook in self._hooks.items():
            named = f"the hook that {_DOES[phase]} (“{hook}”)"
            if phase in self._errors:
                return f"{named} {self._errors[phase]}"
            if phase not in self._begun:
                return f"{named} has not fired"
        return ""


def _doubts_of_generator(recovery: Recovery, without: Recovery, own: int) -> Iterator[str]:
    """Yield messages on effects that the load generator itself may have caused.

    `recovery` is as measured, `without` as it may have been without its delays; `own` iterations
    are bad by the generator itself.
    """
    if recovery.late_before:
        yield "the generator was late all the time before the fault, which makes limits wide"
    if recovery.stretch_s is not None and _is_earlier(without, recovery):
        begin_s, end_s = recovery.stretch_s
        yield (
            f"trouble from {duration(begin_s)} to {duration(end_s)} after the fault began may be"
            f" the generator's own doing: its processes were late by up to"
            f" {duration(recovery.lag_s)} then; without that,"
            + (f" recovered after {duration(without.at_s)}" if without.at_s else " nothing lasted")
        )
    if own:
        yield (
            f"{counted(own, 'iteration')} did not succeed because the generator lacked resources or"
            " time to start them"
        )


def _is_earlier(without: Recovery, recovery: Recovery) -> bool:
    if without.at_s is None or without.stretch_s == recovery.stretch_s:
        return False
    return recovery.at_s is None or without.at_s < recovery.at_s


def _phase_figures(
    name: str, rows: PhaseRows, from_s: float, to_s: float, left: LeftFigures | None
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
        failed=codes[Outcome.FAILED] + codes[LACKING],
        timed_out=codes[Outcome.TIMED_OUT],
        dropped=sum(codes[Outcome.TIMED_OUT + 1 : LACKING]),
        bad_share=share,
        bad_ci=interval,
        ok_per_s=ok / lasted_s if lasted_s > 0 else None,
        **_times(rows),
        **(_left_figures(rows, left) if left is not None else {}),
    )


def _left_figures(rows: PhaseRows, left: LeftFigures) -> Mapping[str, Any]:
    sums = np.zeros(len(left.kinds), np.int64)
    np.add.at(sums, rows.left[:, 2], rows.left[:, 3])
    named = zip(left.kinds, sums.tolist(), strict=True)
    figures: dict[str, Any] = {
        "left": {resource.kind: number for resource, number in named if number}
    }
    counts = rows.counts()
    known = left.kinds and not (left.doubt or left.unplaced)
    if known and (count := int(counts.sum())):
        leaving = rows.leaving()
        number = int(leaving.sum())
        figures["leaving_share"] = number / count
        figures["leaving_ci"] = share_interval(number, count, design_effect(leaving, counts))
    return figures


def _times(rows: PhaseRows) -> Mapping[str, Any]:
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
