"""Statistics of an overload: a drill whose fault is the load itself, planned and not by a hook."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from osbench.common.plugin.runner import Runner
from osbench.common.protocol.columns import Columns
from osbench.common.task import Workload
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.report.model import json_codec
from osbench.coordinator.results.accounting.delayed_iterations import touched_share
from osbench.coordinator.results.accounting.drill_figures import DrillFigures
from osbench.coordinator.results.accounting.drill_recovery import ENOUGH, Recovery, recoveries
from osbench.coordinator.results.accounting.drill_statistics import AFTER, FAULT, DrillStatistics
from osbench.edges.overload.holding import held_figures
from osbench.edges.overload.latency_loop import LatencyLoop
from osbench.edges.overload.observation import Observation, watched_blocks
from osbench.edges.overload.overload_figures import (
    HeldFigure,
    OverloadFigures,
    PhaseState,
)
from osbench.edges.overload.overload_plan import OverloadPlan
from osbench.edges.overload.overload_runner import Overload
from osbench.edges.overload.overload_sentences import generator_text, sentences_of
from osbench.edges.overload.overload_verdict import verdict_on
from osbench.edges.overload.recovery_end import first_return, full_recovery
from osbench.edges.overload.service_rows import (
    ServiceRows,
    StretchSums,
    with_service_times,
)

#: Parts of the planned observation: it may end early, and its halves are not known before.
_PARTS = 32
#: Traces whose spans are compared, of a stretch, and of a part of the observation.
_TRACED, _TRACED_PART = 20_000, 40_000 // _PARTS
#: Blocks of time before and after the overload, for trends.
_BEFORE, _AFTER = 12, 24
#: Begins and ends of moments.
Moments = tuple[tuple[float, float], ...]
STRETCHES = ("before", "overload", "after", "end")


def statistics_of(runner: Runner, workload: Workload) -> DrillStatistics:
    """Return the statistics of a load by the runner `overload`, without any iteration."""
    assert isinstance(runner, Overload)
    return OverloadStatistics(runner.plan, workload.warmup_s)


class OverloadStatistics(DrillStatistics):
    """Counts the iterations of a planned overload by phase, in bounded memory."""

    def __init__(self, plan: OverloadPlan, warmup_s: float = 0.0) -> None:
        super().__init__({}, warmup_s)
        self._plan = plan
        self._rows_before, self._rows_since = ServiceRows(), ServiceRows()
        self._before, self._since = self._rows_before, self._rows_since
        self._fault, self._after = ServiceRows(), ServiceRows()
        for phase, at_s in ((FAULT, plan.begin_s), (AFTER, plan.return_s)):
            self.begin(phase, at_s)
            self.end_hook(phase, "")
        self._loop = LatencyLoop()
        #: Begins of the overload, of the return and of the parts of the observation, s after t0.
        parts = np.linspace(plan.return_s, plan.end_s, _PARTS, endpoint=False)
        self._begins = np.array([plan.begin_s, *parts])
        #: Sums before the first of them, and from each on.
        self._sums = [StretchSums() for _ in range(_PARTS + 2)]
        #: Place in them by trace id (16 bytes), and number of ids by place.
        self._traced: dict[bytes, int] = {}
        self._noted: Counter[int] = Counter()
        #: Counters and calls by span, once the load is over.
        self._others: tuple[HeldFigure, ...] = ()

    @property
    def stretches(self) -> dict[str, tuple[float, float]]:
        """Begin and end of each of `STRETCHES`, seconds after t0."""
        plan = self._plan
        end_s = max(plan.return_s, min(plan.end_s, self._last_due_ns / 1e9))
        middle_s = (plan.return_s + end_s) / 2
        ends = (min(self._warmup_s, plan.begin_s), plan.begin_s, plan.return_s, middle_s, end_s)
        return dict(zip(STRETCHES, pairwise(ends), strict=True))

    def add(self, columns: Columns, lacking: NDArray[np.bool_] | None = None) -> None:
        """Count result rows; the judge gets service times, since osbench's queue is its own."""
        if not len(columns):
            return
        super().add(with_service_times(columns), lacking)
        self._loop.add(columns)
        places = np.digitize(columns.due / 1e9, self._begins)
        ran = columns.outcome <= Outcome.TIMED_OUT
        if lacking is not None:
            ran &= ~lacking
        for place in np.unique(places).tolist():
            here = places == place
            self._sums[place].arrivals += int(np.count_nonzero(here))
            self._sums[place].add(columns, ran & here)
            self._note_traces(columns, here, place)

    def _note_traces(self, columns: Columns, rows: NDArray[np.bool_], place: int) -> None:
        left = (_TRACED if place < 2 else _TRACED_PART) - self._noted[place]
        if not len(columns.traced) or left <= 0:
            return
        here = np.isin(columns.traced, columns.iteration[rows])
        for trace in columns.traces[here][:left]:
            self._traced[trace.tobytes()] = place
            self._noted[place] += 1

    @property
    def _stretch_by_place(self) -> list[str]:
        """Name of the stretch of each place in the sums: a part is of the half of its middle."""
        to_s, part_s = self.stretches["after"][1], float(self._begins[2] - self._begins[1])
        before, overload, after, end = STRETCHES
        parts = (after if one + part_s / 2 <= to_s else end for one in self._begins[1:])
        return [before, overload, *parts]

    @property
    def traced(self) -> dict[bytes, str]:
        """Name of the stretch by trace id (16 bytes), of the first iterations in each."""
        names = self._stretch_by_place
        return {trace: names[place] for trace, place in self._traced.items()}

    def _stretch_sums(self) -> dict[str, StretchSums]:
        found = {name: StretchSums() for name in STRETCHES}
        for name, sums in zip(self._stretch_by_place, self._sums, strict=True):
            found[name] += sums
        return found

    def note_held(self, others: Sequence[HeldFigure]) -> None:
        """Store counters and calls by span in the stretches, whether they changed or not."""
        self._others = tuple(others)
        self._changes += 1

    def _figures(self) -> tuple[DrillFigures, DrillFigures]:
        measured, without = super()._figures()
        (as_seen, moments), (undelayed, _) = self._recoveries()
        found = replace(self._overload(as_seen, undelayed), moments=moments)
        found = replace(found, sentences=self._sentences(found, as_seen))
        alone = self._overload(undelayed, undelayed)
        alone = replace(alone, sentences=self._sentences(alone, undelayed))
        generator = generator_text(measured.generator, found)
        return (
            replace(measured, generator=generator, overload=json_codec.to_json(found)),
            replace(
                without,
                # a criterion that fails for the generator's sake is disputed
                overload={**json_codec.to_json(alone), "is_excused": found.is_generators},
            ),
        )

    def _recoveries(self) -> list[tuple[Recovery, Moments]]:
        """Return the recovery as measured and without delays, and moments of slowness after each.

        Moments are seconds after the return.
        """
        plan = self._plan
        lasted_s = self._last_due_ns / 1e9 - plan.begin_s
        early, since = self._rows_before, self._rows_since
        ran, well = int(early.ran().sum()), int(early.well().sum())
        bad = (ran - well) / ran if ran else 0.0

        def judged_until(until_s: float) -> tuple[Recovery, Recovery]:
            some = since if until_s >= lasted_s else since.between(0.0, until_s)
            return recoveries(early, some, until_s, self._lateness, plan.begin_s)

        found = []
        returned_s = plan.return_s - plan.begin_s
        for at, one in enumerate(judged_until(lasted_s)):

            def judge(until_s: float, at: int = at) -> Recovery:
                return judged_until(until_s)[at]

            end = partial(
                full_recovery,
                since=since,
                bad_before=bad,
                returned_s=returned_s,
                touched=self._touched() if at else 0.0,
            )
            first, moments = first_return(end(one), returned_s, lasted_s, judge)
            found.append((end(first), moments))
        return found

    def _touched(self) -> float:
        """Return the share of iterations after the return that the generator may have delayed."""
        width_s = self._rows_since.width_s
        bins = max(1, int((self._last_due_ns / 1e9 - self._plan.return_s) / width_s))
        late, _ = self._lateness.by_bin(self._plan.return_s, width_s, bins)
        return float(touched_share(float(late.mean())))

    def _sentences(self, found: OverloadFigures, recovery: Recovery) -> tuple[str, ...]:
        return tuple(sentences_of(found, recovery.limits))

    def _overload(self, measured: Recovery, without: Recovery) -> OverloadFigures:
        plan = self._plan
        rows, sums = self._stretch_rows(), self._stretch_sums()
        states = {name: self._state(name, rows[name], sums[name]) for name in STRETCHES}
        seen = Observation(
            plan=plan,
            last_due_s=self._last_due_ns / 1e9,
            measured=measured,
            without=without,
            phases=states,
            arrivals_per_s=self._rates(sums),
            before=watched_blocks(self._rows_before, _BEFORE, 0.0, 0),
            after=watched_blocks(
                self._rows_since.between(plan.return_s - plan.begin_s, math.inf),
                _AFTER,
                plan.return_s,
                sums["before"].arrivals + sums["overload"].arrivals,
            ),
            halves=self._halves,
        )
        verdict = verdict_on(seen)
        return OverloadFigures(
            **vars(verdict),
            held_per_s=float(plan.held_per_s),
            overload_per_s=float(plan.overload_per_s),
            begin_s=plan.begin_s,
            return_s=plan.return_s,
            watched_s=seen.watched_s,
            drains_s=plan.drains_s,
            phases=tuple(states.values()),
            held_by=held_figures(tuple(states.values()), self._others),
            loop=tuple(self._loop.points(seen.last_due_s)),
        )

    def _stretch_rows(self) -> dict[str, ServiceRows]:
        """Return the iterations of each of `STRETCHES`, to the precision of bins of time."""
        begin_s = self._plan.begin_s
        return {
            name: self._rows_before
            if name == "before"
            else self._rows_since.between(from_s - begin_s, to_s - begin_s)
            for name, (from_s, to_s) in self.stretches.items()
        }

    def _state(self, name: str, rows: ServiceRows, sums: StretchSums) -> PhaseState:
        from_s, to_s = self.stretches[name]
        length_s = max(to_s - from_s, 1e-9)
        count, ran, well = (int(one.sum()) for one in (rows.counts(), rows.ran(), rows.well()))
        p50_s, p90_s = rows.percentiles_s(50, 90)
        return PhaseState(
            name=name,
            from_s=from_s,
            to_s=to_s,
            ran_per_s=ran / length_s,
            ok_per_s=well / length_s,
            bad_share=(ran - well) / ran if ran else None,
            p50_s=p50_s,
            p90_s=p90_s,
            in_flight=sums.per_iteration(sums.busy_ns) / 1e9 * ran / length_s,
            requests=sums.per_iteration(sums.requests),
            connections=sums.per_iteration(sums.connections),
            own_share=(count - ran) / count if count else 0.0,
        )

    def _rates(self, sums: Mapping[str, StretchSums]) -> dict[str, float]:
        """Return arrivals per second by stretch; `watch` is all of the observation."""
        spans = self.stretches
        found = {
            name: sums[name].arrivals / max(spans[name][1] - spans[name][0], 1e-9)
            for name in ("before", "overload")
        }
        watched_s = max(spans["end"][1] - spans["after"][0], 1e-9)
        watched = sums["after"].arrivals + sums["end"].arrivals
        return {**found, "watch": watched / watched_s}

    def _halves(self) -> Recovery | None:
        """Judge the second half of the time before by its first; None if it is too short."""
        plan = self._plan
        middle_s = (self._warmup_s + plan.begin_s) / 2
        first = self._rows_before.between(0.0, middle_s)
        second = self._rows_before.between(middle_s, math.inf)
        if int(first.well().sum()) < ENOUGH or not second.counts().sum():
            return None
        lasted_s = plan.begin_s - middle_s
        return recoveries(first, second, lasted_s, self._lateness, middle_s)[1]
