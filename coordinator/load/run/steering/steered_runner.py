"""A runner whose load is changed while it goes on: a pure function of the plan and the changes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from osbench.common.plugin.runner import Runner, SearchingRunner, Step, Totals, split
from osbench.common.plugin.scripted_runner import ScriptedRunner
from osbench.coordinator.plugins.runners.rates import Curve, Ramp, Stages, exact
from osbench.coordinator.plugins.runners.runner_schema import HORIZON_S
from osbench.coordinator.plugins.runners.schedule import Schedule, schedule
from osbench.coordinator.results.accounting.load_change import LoadChange

#: Arrivals of a changed rate, at most; a plan has no more, either.
MOST_ARRIVALS = 10**10
#: No load lasts longer, seconds.
LONGEST_S = 1e10


class SteeredRunner(Runner):
    """The runner of a plan with the changes of its load, by users or by a search.

    A changed rate holds until another change, or the end of the load: the last stage, or the number
    of iterations that the task requests.
    """

    def __init__(self, planned: Runner, changes: Sequence[LoadChange]) -> None:
        """`planned`: the task's runner. `changes` of its load: oldest first, may grow later."""
        super().__init__(planned.config)
        self._plan = planned
        #: Changes of the planned load that were requested, oldest first.
        self.changes = changes
        #: As the plan says it: steered loads are of the same kind.
        self.is_open = planned.OPEN
        #: Trials are its changes: it ends with the last of them.
        self.is_search = isinstance(planned, SearchingRunner)
        #: The runner's own code starts iterations, in threads of one worker process.
        self.is_scripted = isinstance(planned, ScriptedRunner)

    @property
    def timeout_s(self) -> float:
        """Timeout of one iteration, seconds; 0 for none. Changes do not affect it."""
        return self._plan.timeout_s

    @property
    def concurrency(self) -> int:
        """The most virtual users of plan and changes; changes of an open load do not count."""
        if self.is_open:
            return self._plan.concurrency
        levels = (int(one.level) for one in self.changes if one.level is not None)
        return max([self._plan.concurrency, *levels])

    @property
    def planned(self) -> int | None:
        """The number of planned iterations; changes count only for an open load."""
        if not self.is_open or not self.changes:
            return self._plan.planned
        return self._planned(len(self.changes))

    @property
    def lasts_s(self) -> float | None:
        """Seconds after t0 until which iterations start, as configured; None if no time ends it."""
        return self._plan.lasts_s

    @property
    def is_paused(self) -> bool:
        """Return whether the load is paused until another change. A search is never paused."""
        return not self.is_search and bool(self.changes) and self.changes[-1].level == 0

    def users(self, elapsed_s: float) -> int:
        """Return the virtual users that are requested `elapsed_s` seconds after t0."""
        level = self.changes[-1].level if self.changes else None
        return self._plan.users(elapsed_s) if level is None else int(level)

    def asked(self) -> Sequence[tuple[float, float]]:
        """Return the requested load over time, with its changes."""
        points = list(self._plan.asked())
        for change in self.changes:
            level = level_at(points, change.at_s)
            points = points[: bisect_left(points, change.at_s, key=lambda point: point[0])]
            points += [(change.at_s, level)] if points else []
            points += change.asked
        return points

    def step(self, elapsed_s: float, totals: Totals, capacity: Sequence[int]) -> Step:
        """Return the load to be offered at `elapsed_s`, as planned or as changed."""
        if not self.changes:
            return self._plan.step(elapsed_s, totals, capacity)
        if self.is_open:
            return self._open_step(elapsed_s, totals)
        step = self._plan.step(elapsed_s, totals, capacity)
        step, last = replace(step, users=split(self.users(elapsed_s), capacity)), self.changes[-1]
        return replace(step, stop_s=last.at_s) if last.last else step

    # open loads: part k is the load after change k; part 0 is the plan

    def _open_step(self, elapsed_s: float, totals: Totals) -> Step:
        last = len(self.changes)
        part = last
        # a coordinator that was killed may have left arrivals of an earlier part to be given out
        while part and self.changes[part - 1].number > totals.allotted:
            part -= 1
        arrivals = self._arrivals(part, elapsed_s, totals.allotted)
        if part < last:
            arrivals = arrivals[: self.changes[part].number - totals.allotted]
        return Step(arrivals=arrivals, done=self._is_over(elapsed_s, totals))

    def _is_over(self, elapsed_s: float, totals: Totals) -> bool:
        if self.is_search:
            last = self.changes[-1]
            return last.last and totals.settled >= last.number
        planned = self._planned(len(self.changes))
        # a pause that is over in time has arrivals after it
        lasting = self.is_paused and elapsed_s < (self.lasts_s or 0.0)
        reached = min(totals.allotted, totals.settled)
        return planned is not None and reached >= planned and not lasting

    def _arrivals(self, part: int, elapsed_s: float, allotted: int) -> Sequence[float]:
        """Return due times (seconds after t0) of the next arrivals in part `part`, ascending.

        The first `allotted` arrivals of the load are given out already. Part 0 is the plan, part k
        the load after change k. Covers some seconds beyond `elapsed_s`. Empty while the load is
        paused.
        """
        change = self.changes[part - 1] if part else None
        if change is None or change.level is None:
            late_s, number, skipped = 0.0, 0, 0
            if change is not None:
                late_s, number, skipped = change.late_s, change.number, change.skipped
            rank = skipped + allotted - number
            totals = Totals(allotted=rank, settled=rank)
            found = self._plan.step(elapsed_s - late_s, totals, ()).arrivals
            if late_s:
                found = [due_s + late_s for due_s in found]
            return found if self.lasts_s is not None else self._within_times(found, allotted)
        if not change.level:
            return ()
        begun_s, rank = elapsed_s - change.at_s, allotted - change.number
        dues = self._schedule(change).due(rank, None, begun_s + HORIZON_S)
        return self._within_times((dues + change.at_s).tolist(), allotted)

    def _within_times(self, arrivals: Sequence[float], allotted: int) -> Sequence[float]:
        """Return `arrivals` without those beyond the planned number of iterations.

        The first `allotted` arrivals came before them. Unchanged if a time ends the load, or if no
        number is planned.
        """
        if self.lasts_s is not None or self._plan.planned is None:
            return arrivals
        return arrivals[: max(0, self._plan.planned - allotted)]

    def _planned(self, part: int) -> int | None:
        """Return the total number of arrivals if `part` holds to the end; None if it is unlimited.

        Part 0 is the plan, part k the load after change k. Includes the arrivals before the part.
        """
        if self.is_search and part and self.changes[part - 1].last:
            return self.changes[part - 1].number
        if self.lasts_s is None or not part:
            return self._plan.planned
        change = self.changes[part - 1]
        if change.level is None:
            planned = self._plan.planned
            return None if planned is None else change.number + max(0, planned - change.skipped)
        if not change.level:
            return change.number
        return change.number + (self._schedule(change).count or 0)

    def _schedule(self, change: LoadChange) -> Schedule:
        assert change.level is not None
        length_s = None if self.lasts_s is None else self.lasts_s - change.at_s
        # the gaps differ from the gaps of the plan
        seed = (int(self.config.get("seed", 0)) + change.number) % 2**63
        return _schedule(change.level, length_s, str(self.config.get("arrivals", "even")), seed)

    def back_to_plan(self, at_s: float, number: int) -> tuple[int, float]:
        """Return the fields (`skipped`, `late_s`) of a `LoadChange` at `at_s` back to the plan.

        `number` arrivals were given out before. `skipped`: arrivals of the plan that are used up;
        `late_s`: seconds by which later ones are delayed. A load with stages goes on as planned for
        that time; a load with a number of iterations, from the last arrival before the changes.
        """
        rank = self._left_at(number)
        if self.lasts_s is not None:
            return self._ranks_before(at_s, rank), 0.0
        due_s = self._due_of_plan(rank)
        return rank, 0.0 if due_s is None else at_s - due_s

    def _left_at(self, number: int) -> int:
        """Return how many arrivals of the plan are used up, after `number` arrivals in all.

        Arrivals that were skipped count; arrivals of changed rates do not.
        """
        ends = [*(change.number for change in self.changes), number]
        for change, end in reversed(list(zip(self.changes, ends[1:], strict=True))):
            if change.level is None:
                return change.skipped + end - change.number
        return ends[0]

    def _due_of_plan(self, rank: int) -> float | None:
        """Return when arrival `rank` of the plan, counted from 0, is due, seconds after t0.

        None if the plan has no such arrival.
        """
        elapsed_s = 0.0
        while elapsed_s < LONGEST_S:
            found = self._plan.step(elapsed_s, Totals(allotted=rank, settled=rank), ()).arrivals
            if len(found):
                return float(found[0])
            elapsed_s = 2 * elapsed_s + HORIZON_S
        return None

    def _ranks_before(self, instant_s: float, rank: int) -> int:
        """Return how many arrivals of the plan are due before `instant_s`, seconds after t0.

        At least `rank`, from which it counts on.
        """
        while True:
            found = self._plan.step(instant_s, Totals(allotted=rank, settled=rank), ()).arrivals
            before = bisect_left(found, instant_s)
            rank += before
            if before < len(found) or not before:
                return rank


@lru_cache(maxsize=8)
def _schedule(rate: float, length_s: float | None, arrivals: str, seed: int) -> Schedule:
    level = exact(rate)
    curve: Curve = (
        Ramp(start=level, end=level)
        if length_s is None
        else Stages(level, [(exact(max(0.0, length_s)), level)])
    )
    return schedule(curve, {"arrivals": arrivals, "seed": seed})


def level_at(points: Sequence[tuple[float, float]], instant_s: float) -> float:
    """Return the load at `instant_s` seconds by linear interpolation of `points`; 0 without points.

    `points`: (seconds, level) in order of time. Constant before the first and after the last.
    """
    if not points:
        return 0.0
    after = next((at for at, point in enumerate(points) if point[0] > instant_s), None)
    if after is None:
        return points[-1][1]
    if not after:
        return points[0][1]
    (from_s, begin), (to_s, end) = points[after - 1 : after + 1]
    return begin + (end - begin) * (instant_s - from_s) / (to_s - from_s)
